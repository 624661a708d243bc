"""verify: every planted fault is found where it is, and no verdict claims a witness that it lacks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kshell
from kshell.cli import main
from kshell.errors import EXIT_DATA, EXIT_FINDING, EXIT_OK, EXIT_SOURCE, SourceError
from kshell.protocol.verify import SNAPSHOT_IN_LOG
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.choose import demo_directory
from kshell.sources.directory import files
from kshell.sources.directory.files import ON_CORRUPTION
from kshell.sources.directory.source import DirectorySource
from tests import builders
from tests.commands.shell import opened, rows, run
from tests.commands.test_loggers import live
from tests.server import Quorum
from tests.sources.test_checkpoints import leaked  # noqa: F401  # a fixture

NODES = builders.recorded()
SMALL = builders.FIXTURES / "4.3.1" / "controller-3000"


def checks(directory: Path, line: str = "verify") -> dict[str, dict[str, Any]]:
    return {row["file"]: row for row in rows(opened(directory), line)}


def code(directory: Path, line: str = "verify") -> int:
    return run(opened(directory), line).exit_code


@pytest.mark.parametrize("node", NODES, ids=builders.node_name)
def test_what_kafka_wrote_is_whole_and_every_snapshot_is_what_a_replay_gives(node: Path) -> None:
    found = checks(node, "verify --deep")
    assert {row["verdict"] for row in found.values()} == {"whole"}
    assert code(node, "verify --deep") == EXIT_OK
    assert {row["certainty"] for row in found.values() if row["kind"] == "segment"} == {"confirmed"}
    assert set(os.listdir(node / "__cluster_metadata-0")) <= set(found)
    snapshots = [row for row in found.values() if row["kind"] == "snapshot" and not row["file"].startswith("0" * 20)]
    replayed = [row for row in snapshots if "replay of the log gives the same values" in row["witness"]]
    if (node / "__cluster_metadata-0" / builders.LOG).exists():
        assert replayed == snapshots


def test_counts_are_those_of_dump() -> None:
    found = checks(SMALL)
    records = sum(row["records"] for row in found.values() if row["kind"] == "segment")
    assert records == len(rows(opened(SMALL), "dump"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_flipped_bit_is_found_or_the_verdict_does_not_claim_a_witness(data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(NODES))
    with tempfile.TemporaryDirectory() as folder:
        directory = builders.copy_of(node, Path(folder))
        if data.draw(st.booleans()):
            (directory / "leader-epoch-checkpoint").unlink()
        files = sorted(path for path in directory.iterdir() if path.suffix in (".log", ".checkpoint"))
        path = data.draw(st.sampled_from(files))
        raw = bytearray(path.read_bytes())
        batch = data.draw(st.sampled_from(builders.batches(bytes(raw))))
        # The header is where checksums do not look.
        at = batch.position + data.draw(st.one_of(st.integers(0, 21), st.integers(0, batch.size - 1)))
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(raw)
        row = checks(directory)[path.name]
        if row["certainty"] == "confirmed":
            assert row["verdict"] == "damaged"
            assert code(directory) == EXIT_FINDING
        if row["verdict"] == "damaged":
            assert row["firstBadByte"] is not None and row["reason"]


@pytest.mark.parametrize("size", [0, 864, 5000], ids=["empty", "after a batch", "in a batch"])
def test_a_log_that_ends_before_its_snapshot_lacks_records(tmp_path: Path, size: int) -> None:
    directory = builders.copy_of(builders.FIXTURES / "4.2.1-rolled" / "controller-3001", tmp_path)
    log = max(directory.glob("*.log"))
    os.truncate(log, size)
    row = checks(directory)[log.name]
    assert row["verdict"] == "incomplete" and "the end of the log is missing" in row["reason"]
    assert "normal" not in row["reason"]
    assert code(directory) == code(directory, "verify --deep") == EXIT_FINDING
    notes = opened(directory).loaded.notes
    assert any("before the end of snapshot" in note and "compare-logs" in note for note in notes)
    assert not any("normal while a server writes" in note for note in notes)


def test_a_snapshot_that_a_follower_has_fetched_begins_an_empty_segment(tmp_path: Path) -> None:
    directory = builders.copy_of(builders.FIXTURES / "4.2.1-rolled" / "controller-3001", tmp_path)
    for log in directory.glob("*.log"):
        log.unlink()
    (directory / f"{947:020}.log").touch()
    assert code(directory) == EXIT_OK
    assert not any("missing" in note or "no log" in note for note in opened(directory).loaded.notes)


def test_the_first_bad_byte_is_the_batch_that_was_changed(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    path = directory / builders.LOG
    raw = bytearray(path.read_bytes())
    batch = builders.batches(bytes(raw))[5]
    raw[batch.position + 70] ^= 1
    path.write_bytes(raw)
    row = checks(directory)[builders.LOG]
    assert (row["verdict"], row["firstBadByte"], row["certainty"]) == ("damaged", batch.position, "confirmed")
    assert row["batches"] == len(builders.batches(bytes(raw))) - 1


def lone(folder: Path, *parts: bytes) -> Path:
    return builders.write_log(folder, *parts)


def topics(base_offset: int, epoch: int = 1) -> bytes:
    record = builders.value("TOPIC", name=f"t{base_offset}", topicId=builders.uuid(base_offset))
    return builders.batch([record], base_offset, epoch)


def test_a_lone_log_says_that_nothing_confirms_its_epochs(tmp_path: Path) -> None:
    opening = builders.control_batch([builders.leader_change()])
    row = checks(lone(tmp_path / "a", opening, topics(1), topics(2)))[builders.LOG]
    assert (row["verdict"], row["certainty"]) == ("whole", "consistent")
    assert "no leader-epoch-checkpoint" in row["witness"] and "no second witness" in row["witness"]
    row = checks(lone(tmp_path / "b", opening, topics(1), builders.control_batch([builders.leader_change()], 2, 7)))[
        builders.LOG
    ]
    assert (row["verdict"], row["certainty"]) == ("whole", "unconfirmed")
    assert "nothing confirms epoch 7" in row["witness"]


def test_a_lone_batch_of_a_file_without_a_name_confirms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "renamed.log"
    path.write_bytes(topics(9))
    row = checks(path)["renamed.log"]
    assert (row["verdict"], row["certainty"]) == ("whole", "unconfirmed")


def test_where_the_checkpoint_and_the_log_disagree_either_may_be_wrong(tmp_path: Path) -> None:
    lone(tmp_path, builders.control_batch([builders.leader_change()]), topics(1), topics(2))
    builders.write_epochs(tmp_path, (2, 0))
    row = checks(tmp_path)[builders.LOG]
    assert (row["verdict"], row["certainty"], row["firstBadByte"]) == ("damaged", "unconfirmed", 0)
    assert "either of them may be wrong" in row["witness"]


def test_a_torn_end_is_no_finding(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    path = directory / builders.LOG
    raw = path.read_bytes()
    last = builders.batches(raw)[-1]
    path.write_bytes(raw[:-7])
    row = checks(directory)[builders.LOG]
    assert (row["verdict"], row["firstBadByte"]) == ("torn", last.position)
    assert code(directory) == EXIT_OK


def test_a_missing_segment_is_named_by_the_one_after_it(tmp_path: Path) -> None:
    directory = builders.copy_of(Path(demo_directory()), tmp_path)
    segments = sorted(directory.glob("*.log"))
    assert len(segments) > 2
    segments[1].unlink()
    row = checks(directory)[segments[2].name]
    assert row["verdict"] == "incomplete" and "was expected" in row["reason"]
    assert code(directory) == EXIT_FINDING


def test_a_log_without_its_beginning_is_incomplete(tmp_path: Path) -> None:
    directory = builders.copy_of(Path(demo_directory()), tmp_path)
    for path in (*directory.glob("*.checkpoint"), directory / builders.LOG):
        path.unlink()
    first = min(path.name for path in directory.glob("*.log"))
    assert "no snapshot reaches it" in checks(directory)[first]["reason"]
    assert code(directory) == EXIT_FINDING


def test_a_snapshot_under_another_name_is_found_by_the_log(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    path = sorted(directory.glob("*.checkpoint"))[-1]
    end = int(path.name[:20])
    there = next(b for b in builders.batches((directory / builders.LOG).read_bytes()) if b.last_offset >= end)
    other = path.with_name(f"{there.last_offset + 1:020d}{path.name[20:]}")
    path.rename(other)
    row = checks(directory)[other.name]
    assert row["verdict"] == "damaged" and "the log's batch that ends at offset" in row["reason"]
    assert row["certainty"] == "unconfirmed"


@pytest.mark.parametrize("node", NODES, ids=builders.node_name)
@pytest.mark.parametrize("name", [builders.LOG, f"{77:020d}.log"])
def test_a_snapshot_under_the_name_of_a_segment_is_refused(node: Path, name: str, tmp_path: Path) -> None:
    directory = builders.copy_of(node, tmp_path)
    raw = sorted(directory.glob("*.checkpoint"))[-1].read_bytes()
    for path in (*directory.glob("*.checkpoint"), *directory.glob("*.log")):
        path.unlink()
    (directory / name).write_bytes(raw)
    row = checks(directory)[name]
    assert (row["kind"], row["verdict"], row["certainty"]) == ("segment", "damaged", "confirmed")
    assert (row["firstBadByte"], row["batches"]) == (0, 0)
    assert "the file is a snapshot, not a segment" in row["reason"]
    assert code(directory) == EXIT_FINDING
    # Nothing of it counts, however it is read; and whoever reads it is told.
    for how in ON_CORRUPTION:
        loaded = DirectorySource(str(directory / name), on_corruption=how).load()
        (damage,) = loaded.damage
        assert (damage.message, loaded.torn) == (f"{directory / name}: byte 0: {SNAPSHOT_IN_LOG}", None)
        assert not builders.metadata(loaded.image)
    session = opened(directory)
    assert rows(session, "dump") == []
    assert [error.message for error in session.found_damage] == [f"{directory / name}: byte 0: {SNAPSHOT_IN_LOG}"]
    assert session.exit_code() == EXIT_DATA


def test_what_follows_a_snapshot_under_the_name_of_a_segment_is_no_state_of_the_cluster(tmp_path: Path) -> None:
    """A whole snapshot and the log after it are there, and between them one that is named like the log's next part."""
    topic = [builders.value("TOPIC", name="t", topicId=builders.uuid(1))]
    builders.write_snapshot(tmp_path, builders.snapshot(topic), 5)
    stray = [builders.value("TOPIC", name=f"no-{number}", topicId=builders.uuid(number)) for number in range(2, 9)]
    wrong = builders.write_log(tmp_path, builders.snapshot(stray, per_batch=2))
    builders.write_log(tmp_path, builders.batch([builders.value("NO_OP")], 9), base_offset=9)
    session = opened(tmp_path)
    assert [row["name"] for row in rows(session, "topics")] == ["t"]
    assert [damage.message for damage in session.loaded.damage] == [f"{wrong}: byte 0: {SNAPSHOT_IN_LOG}"]
    assert checks(tmp_path)[wrong.name]["verdict"] == "damaged"


@pytest.mark.parametrize("node", builders.recorded(log_from_zero=True), ids=builders.node_name)
def test_a_segment_under_the_name_of_a_snapshot_is_refused(node: Path, tmp_path: Path) -> None:
    directory = builders.copy_of(node, tmp_path)
    for path in directory.glob("*.checkpoint"):
        path.unlink()
    epoch = builders.batches((directory / builders.LOG).read_bytes())[0].epoch
    name = f"{9:020d}-{epoch:010d}.checkpoint"
    (directory / builders.LOG).rename(directory / name)
    row = checks(directory)[name]
    assert (row["kind"], row["verdict"], row["firstBadByte"]) == ("snapshot", "damaged", 0)
    assert "the snapshot does not begin with its header" in row["reason"]
    assert code(directory) == EXIT_FINDING


@pytest.mark.parametrize(
    ("late", "verdict", "certainty"),
    [
        (0, "whole", "confirmed"),
        (109, "whole", "consistent"),
        (60_001, "damaged", "unconfirmed"),
        (-1, "damaged", "unconfirmed"),
    ],
)
def test_a_snapshot_may_say_a_time_a_little_after_the_logs(
    tmp_path: Path, late: int, verdict: str, certainty: str
) -> None:
    """As a busy controller of Kafka 3.3.2 wrote one. A replay confirms it, as any other."""
    values = [builders.value("TOPIC", name="t", topicId=builders.uuid(1))]
    lone(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch(values, 1))
    raw = builders.snapshot(values, timestamp=builders.TIME + late)
    path = builders.write_snapshot(tmp_path, raw, 2)
    row = checks(tmp_path)[path.name]
    assert (row["verdict"], row["certainty"]) == (verdict, certainty)
    if verdict == "whole":
        assert checks(tmp_path, "verify --deep")[path.name]["certainty"] == "confirmed"


def test_a_value_that_is_not_the_logs_is_found_by_replay_alone(tmp_path: Path) -> None:
    values = [builders.value("TOPIC", name="t", topicId=builders.uuid(1))]
    lone(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch(values, 1))
    other = [builders.value("TOPIC", name="other", topicId=builders.uuid(1))]
    path = builders.write_snapshot(tmp_path, builders.snapshot(other), 2)
    assert checks(tmp_path)[path.name]["verdict"] == "whole"
    row = checks(tmp_path, "verify --deep")[path.name]
    assert row["verdict"] == "damaged" and "/image/topics/byName/t" in row["reason"]
    assert code(tmp_path, "verify --deep") == EXIT_FINDING


def test_kafkas_own_slip_is_called_so(leaked: Path) -> None:  # noqa: F811  # the fixture
    found = [row for row in checks(leaked, "verify --deep").values() if row["verdict"] == "slip"]
    assert len(found) == 1
    assert "Kafka keeps the configs of a topic that was created and removed" in found[0]["reason"]
    assert code(leaked, "verify --deep") == EXIT_OK


def test_a_lost_scram_user_is_kafkas_slip_only_where_one_was_removed(tmp_path: Path) -> None:
    users = [
        builders.value(
            "USER_SCRAM_CREDENTIAL", name=name, mechanism=1, salt=b"s", storedKey=b"k", serverKey=b"v", iterations=4096
        )
        for name in ("alice", "bob")
    ]
    removed = builders.value("REMOVE_USER_SCRAM_CREDENTIAL", name="bob", mechanism=1)
    for name, extra, verdict in (("a", [removed], "slip"), ("b", [], "damaged")):
        folder = tmp_path / name
        log = [*users, *extra]
        lone(folder, builders.control_batch([builders.leader_change()]), builders.batch(log, 1))
        path = builders.write_snapshot(folder, builders.snapshot([]), 1 + len(log))
        assert checks(folder, "verify --deep")[path.name]["verdict"] == verdict


def test_records_that_break_their_declaration_are_found_by_decoding(tmp_path: Path) -> None:
    good = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    lone(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch([good, good[:-3]], 1))
    assert code(tmp_path) == EXIT_OK
    row = checks(tmp_path, "verify --deep")[builders.LOG]
    assert row["verdict"] == "damaged" and "from offset 2 on" in row["reason"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("leader-epoch-checkpoint", "0\n2\n1 0\n", "line 2"),
        ("quorum-state", "{", "not JSON"),
        ("partition.metadata", "version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBBB", "topic id"),
        ("quorum-state", "", "is empty"),
        ("partition.metadata", "", "is empty"),
        ("../meta.properties", "", "is empty"),
        ("../meta.properties", "x9=7\n", "no line that Kafka writes"),
    ],
)
def test_a_small_file_of_another_form_is_damaged(tmp_path: Path, name: str, text: str, reason: str) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    (directory / name).write_text(text)
    row = checks(directory)[name.removeprefix("../")]
    assert row["verdict"] == "damaged" and reason in row["reason"]
    assert code(directory) == EXIT_FINDING


def test_a_log_that_was_emptied_is_incomplete(tmp_path: Path) -> None:
    builders.write_log(tmp_path)
    assert checks(tmp_path)[builders.LOG]["verdict"] == "whole", "as on a node that was formatted"
    builders.write_epochs(tmp_path, (1, 0))
    row = checks(tmp_path)[builders.LOG]
    assert (row["verdict"], code(tmp_path)) == ("incomplete", EXIT_FINDING)
    assert "knows of epoch 1, from offset 0 on" in row["reason"]


def test_a_log_that_ends_before_the_checkpoint_says_so(tmp_path: Path) -> None:
    lone(tmp_path, builders.control_batch([builders.leader_change()]), topics(1))
    builders.write_epochs(tmp_path, (1, 0), (2, 40))
    row = checks(tmp_path)["leader-epoch-checkpoint"]
    assert row["certainty"] == "unconfirmed" and "records are missing at the end" in row["reason"]


def test_indexes_and_leftovers_are_listed_and_not_checked(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex", "notes.txt"):
        (directory / name).write_bytes(b"x")
    found = checks(directory)
    assert found["00000000000000000000.index"]["verdict"] == found["notes.txt"]["verdict"] == "not-checked"
    assert code(directory) == EXIT_OK


def test_what_cannot_be_read_is_no_finding_but_no_answer_either(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    os.mkfifo(directory / "00000000000000000009-0000000001.checkpoint")
    assert checks(directory)["00000000000000000009-0000000001.checkpoint"]["verdict"] == "not-read"
    assert code(directory) == EXIT_SOURCE
    (directory / "quorum-state").write_text("{")
    assert code(directory) == EXIT_FINDING  # that one is certain


def test_a_link_to_nothing_where_a_file_of_the_log_was_is_no_good_answer(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    (directory / "00000000000000000009.log").symlink_to(tmp_path / "nowhere")
    found = checks(directory)["00000000000000000009.log"]
    assert (found["verdict"], found["reason"]) == ("not-read", "a link to a file that does not exist: left out")
    assert code(directory) == EXIT_SOURCE


def test_a_text_file_that_this_user_may_not_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    opened_before = files._open_file

    def refuse(path: str) -> int:
        if path.endswith("quorum-state"):
            raise files.permission(path)
        return opened_before(path)

    monkeypatch.setattr(files, "_open_file", refuse)  # root, as whom tests may run, may read all
    found = checks(directory)["quorum-state"]
    assert (found["verdict"], found["reason"]) == ("not-read", "permission denied")
    assert code(directory) == EXIT_SOURCE


def test_a_codec_that_is_not_installed_leaves_the_answer_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    record = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    lone(
        tmp_path,
        builders.control_batch([builders.leader_change()]),
        builders.batch([record], 1, codec=4, compressed=b"(\xb5/\xfd"),
    )
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert code(tmp_path) == EXIT_OK
    assert checks(tmp_path, "verify --deep")[builders.LOG]["verdict"] == "not-read"
    assert code(tmp_path, "verify --deep") == EXIT_DATA


def test_a_hostile_directory_does_not_end_the_check(tmp_path: Path) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    (directory / "a\x1b[31mb\n").write_text("x")
    shutil.copyfile(directory / builders.LOG, directory / f"{0:020d}-{1:010d}.checkpoint")
    row = checks(directory)[f"{0:020d}-{1:010d}.checkpoint"]
    assert row["verdict"] == "damaged" and "header" in row["reason"]
    from kshell.render import render

    assert "\x1b" not in "".join(render(run(opened(directory), "verify"), "wide", width=200))


def test_brokers_have_no_files() -> None:
    from kshell.client.settings import Settings
    from kshell.engine.session import Session

    with pytest.raises(SourceError, match="brokers report only the present state"):
        run(Session(BrokerSource("localhost:1", Settings.of({}))), "verify")


def test_what_an_observer_fetched_is_checked_like_a_directory() -> None:
    with Quorum(controllers=2, brokers=0) as quorum:
        quorum.append(builders.value("TOPIC", name="t", topicId=builders.uuid(1)))
        session = live(quorum)
        found = rows(session, "verify --deep")
        assert [(row["kind"], row["verdict"], row["records"]) for row in found] == [("segment", "whole", 2)]
        assert run(session, "verify --deep").exit_code == EXIT_OK


def test_damage_that_the_session_has_met_before_does_not_change_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = builders.copy_of(SMALL, tmp_path)
    raw = bytearray((directory / builders.LOG).read_bytes())
    raw[-3] ^= 1
    (directory / builders.LOG).write_bytes(raw)
    assert main(["-d", str(directory), "--keep-going", "-c", "ls /image"]) == EXIT_DATA
    assert main(["-d", str(directory), "-c", "verify"]) == EXIT_FINDING
    with kshell.open(directory=str(directory)) as session:
        assert session.run("ls /image").exit_code == EXIT_DATA
        assert session.run("verify").exit_code == EXIT_FINDING
    assert builders.LOG in capsys.readouterr().out


def test_files_are_checked_as_they_are_whatever_moment_is_shown(tmp_path: Path) -> None:
    """A state has a moment, a file has none: the rest of a log is neither missing nor sound unseen."""
    now, then = rows(opened(demo_directory()), "verify"), opened(demo_directory()).reshape(point="100")
    assert rows(then, "verify") == now and then.remarks == ["files are checked as they are now, also behind offset 100"]
    copy = Path(shutil.copytree(SMALL, tmp_path / "d"))
    log = next((copy / "__cluster_metadata-0").glob("*.log"))
    raw = bytearray(log.read_bytes())
    raw[-1] ^= 1
    log.write_bytes(raw)
    earlier = opened(copy).reshape(point="5")
    assert run(earlier, "verify").exit_code == EXIT_FINDING
