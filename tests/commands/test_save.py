"""``save``: what was written reads as the source does, byte for byte where it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from kshell.engine import plain
from kshell.engine.session import Session
from kshell.errors import CommandError, DataError
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.tree.hash import image_hash
from tests import builders
from tests.commands.shell import opened, rows, run
from tests.full_disk import file_size_limit
from tests.leaves import values
from tests.test_fixtures import DIRECTORIES, ident


def save(session: Session, line: str) -> dict[str, object]:
    return plain.value(run(session, line))  # type: ignore[no-any-return]


@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_it_reads_as_the_source_and_has_its_files(directory: Path, tmp_path: Path) -> None:
    facts = save(opened(directory), f"save {tmp_path / 'saved'}")
    saved = tmp_path / "saved"
    assert values(opened(saved, show_secrets=True)) == values(opened(directory, show_secrets=True))
    assert facts["hash"] == image_hash(opened(directory).image)
    for name in os.listdir(saved / METADATA_DIRECTORY):
        if name.endswith((".log", ".checkpoint")):
            here, there = (path / METADATA_DIRECTORY / name for path in (saved, directory))
            assert here.read_bytes() == there.read_bytes()[: here.stat().st_size], name
    assert [row for row in rows(opened(saved), "verify") if row["verdict"] not in ("whole", "torn")] == []


@pytest.mark.parametrize("offset", range(3, 207, 17))
def test_it_can_be_of_an_earlier_moment(offset: int, tmp_path: Path) -> None:
    sample = opened(demo_directory())
    facts = save(sample, f"save {tmp_path / 'saved'} --as-of {offset}")
    then = opened(demo_directory(), show_secrets=True).reshape(point=str(offset))
    saved = opened(tmp_path / "saved", show_secrets=True)
    assert facts["hash"] == image_hash(then.image)
    assert {path: leaf for path, leaf in values(saved).items() if path != "/image/provenance"} == {
        path: leaf for path, leaf in values(then).items() if path != "/image/provenance"
    }
    assert saved.loaded.log_end_offset == offset + 1


def test_the_manifest_names_every_file_with_its_hash(tmp_path: Path) -> None:
    save(opened(demo_directory()), f"save {tmp_path / 'saved'}")
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    files = {path for path in (tmp_path / "saved").rglob("*") if path.is_file() and path.name != "manifest.json"}
    assert {tmp_path / "saved" / file["name"] for file in manifest["files"]} == files
    for file in manifest["files"]:
        content = (tmp_path / "saved" / file["name"]).read_bytes()
        assert (file["size"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert manifest["clusterId"] == rows_of_status()["clusterId"]


def rows_of_status() -> dict[str, object]:
    return plain.value(run(opened(demo_directory()), "status"))["cluster"]  # type: ignore[no-any-return]


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    save(opened(demo_directory()), f"save {tmp_path / 'saved'}")
    for path in [tmp_path / "saved", *(tmp_path / "saved").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(CommandError, match="exists, and is not an empty directory"):
        run(opened(demo_directory()), f"save {tmp_path}")
    assert os.listdir(tmp_path) == ["mine"]


def test_a_snapshot_whose_name_says_no_offset_is_refused(tmp_path: Path) -> None:
    """Kafka would believe an invented one."""
    snapshot = tmp_path / "copy.checkpoint"
    snapshot.write_bytes(builders.snapshot([builders.value("TOPIC", name="t", topicId=builders.uuid(1))]))
    session = opened(snapshot)
    with pytest.raises(DataError, match=r"copy\.checkpoint: its name does not say at which offset of the log it ends"):
        run(session, f"save {tmp_path / 'saved'}")
    assert os.listdir(tmp_path) == ["copy.checkpoint"]
    session.image  # noqa: B018  # reads it
    assert any("so its own 3 records are counted" in note for note in session.notes())


def test_a_bootstrap_file_is_to_be_copied(tmp_path: Path) -> None:
    bootstrap = tmp_path / "bootstrap.checkpoint"
    bootstrap.write_bytes(builders.snapshot([builders.value("TOPIC", name="t", topicId=builders.uuid(1))], epoch=0))
    with pytest.raises(DataError) as raised:
        run(opened(bootstrap), f"save {tmp_path / 'saved'}")
    assert "copy it unchanged" in (raised.value.hint or "")


def test_nothing_is_left_where_the_disk_is_full(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="saved: File too large"), file_size_limit(4096):
        run(opened(demo_directory()), f"save {tmp_path / 'saved'}")
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_into_the_source(tmp_path: Path) -> None:
    builders.write_log(tmp_path / "d", builders.control_batch([builders.leader_change()]))
    with pytest.raises(CommandError, match="the source's own directory"):
        run(opened(tmp_path / "d"), f"save {tmp_path / 'd' / 'copy'}")


def test_damage_before_the_newest_snapshot_leaves_the_state_whole(tmp_path: Path) -> None:
    def topic(number: int) -> bytes:
        return builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number))

    folder = tmp_path / "d"
    builders.write_snapshot(folder, builders.snapshot([topic(1), topic(2)]), end_offset=4)
    early = builders.batch([topic(1)], 1) + builders.batch([topic(2)], 2) + builders.control_batch([], 3)
    late = builders.batch([topic(3)], 4)
    head = builders.control_batch([builders.leader_change()], 0)
    broken = bytearray(head + early[:0] + builders.batch([topic(1)], 1) + builders.batch([topic(2)], 2))
    broken[len(head) + 70] ^= 1
    tail = builders.batch([topic(9)], 3) + late
    builders.write_log(folder, bytes(broken) + tail)
    source = opened(folder, show_secrets=True)
    result = run(source, f"save {tmp_path / 'saved'}")
    assert result.exit_code == 4  # what is damaged is not in the copy, which a script must see
    assert any("the log is saved from offset 4 on" in remark for remark in source.remarks)
    assert not any("saved up to there" in remark for remark in source.remarks)
    assert values(opened(tmp_path / "saved", show_secrets=True)) == values(opened(folder, show_secrets=True))
    assert not opened(tmp_path / "saved").loaded.damage


def test_what_a_reader_would_skip_ends_the_copy(tmp_path: Path) -> None:
    """A gap in a log is nothing that Kafka, or kshell, loads."""
    names = [builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number)) for number in range(1, 4)]
    parts = [builders.batch([name], offset) for offset, name in enumerate(names)]
    broken = bytearray(parts[1])
    broken[-1] ^= 1
    builders.write_log(tmp_path / "d", parts[0], bytes(broken), parts[2])
    session = Session(DirectorySource(str(tmp_path / "d"), on_corruption="skip"))
    assert len(rows(session, "topics")) == 2
    result = run(session, f"save {tmp_path / 'saved'}")
    assert result.exit_code == 4
    assert any("saved up to there" in remark for remark in session.remarks)
    assert [row["name"] for row in rows(opened(tmp_path / "saved"), "topics")] == ["t1"]
