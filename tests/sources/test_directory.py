"""Directories as they come: whole, cut, damaged, changing, unreadable."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import (
    CorruptDataError,
    IncompleteLogError,
    MissingCodecError,
    SourceNotFoundError,
    SourcePermissionError,
)
from kshell.metadata.image import EMPTY
from kshell.protocol.batches import pack, write_batch
from kshell.sources.directory import source as module
from kshell.sources.directory.sidecar_files import meta_properties
from kshell.sources.directory.source import DirectorySource
from kshell.sources.source import Loaded
from tests.builders import (
    FIXTURES,
    LOG,
    TIME,
    batch,
    control,
    control_batch,
    copy_of,
    leader_change,
    node_name,
    recorded,
    replayed,
    snapshot,
    value,
    write_epochs,
    write_log,
    write_snapshot,
)
from tests.rights import locked


def config(number: int) -> bytes:
    return value("CONFIG", resourceType=4, resourceName="", name=f"key-{number}", value=str(number))


def configs(start: int, end: int) -> list[bytes]:
    return [config(number) for number in range(start, end)]


def load(path: Path, **more: Any) -> Loaded:
    return DirectorySource(str(path)).load(**more)


def keys(loaded: Loaded) -> list[int]:
    """The numbers of the configs in the image."""
    return sorted(int(name[4:]) for name in loaded.image["configs"].get(("BROKER", ""), {}))


def clean(loaded: Loaded) -> Loaded:
    assert (loaded.damage, loaded.torn, loaded.problems) == ([], None, [])
    return loaded


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "__cluster_metadata-0"
    path.mkdir(parents=True)
    return path


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_every_recorded_directory_loads_without_a_complaint(node: Path) -> None:
    loaded = clean(load(node))
    assert loaded.snapshot is not None
    assert loaded.snapshot.end_offset == max(file.end_offset or 0 for file in loaded.listing.snapshots)
    assert loaded.image["features"]["metadata.version"].value > 0
    assert load(node / "__cluster_metadata-0").image == loaded.image


def test_a_log_directory_a_metadata_directory_and_lone_files(inner: Path) -> None:
    log = write_log(inner, control_batch([leader_change()]), batch(configs(0, 3), 1))
    whole = write_snapshot(inner, snapshot(configs(0, 2)), 3)
    assert keys(clean(load(inner.parent))) == keys(clean(load(inner))) == [0, 1, 2]
    assert keys(clean(load(log))) == [0, 1, 2]
    lone = clean(load(whole))
    assert keys(lone) == [0, 1]
    assert lone.image.provenance == (2, 1, TIME)
    assert lone.log_end_offset is None


def test_a_renamed_lone_file(tmp_path: Path) -> None:
    log = tmp_path / "copy.log"
    log.write_bytes(batch(configs(0, 2), 77))
    assert clean(load(log)).image.provenance.offset == 78
    other = tmp_path / "copy.checkpoint"
    other.write_bytes(snapshot(configs(0, 2), epoch=5))
    assert clean(load(other)).image.provenance == (3, 5, TIME)


def test_a_snapshot_of_epoch_0_is_read_under_any_name_with_a_note(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "a", snapshot(configs(0, 1), epoch=0), 9, 4)
    for loaded in (load(path), load(tmp_path / "a")):
        assert any("epoch 4" in note and "epoch 0" in note for note in loaded.notes)
    other = write_snapshot(tmp_path / "b", snapshot(configs(0, 1), epoch=3), 9, 4)
    for wrong in (other, tmp_path / "b"):
        with pytest.raises(CorruptDataError, match="epoch 3"):
            load(wrong)


@pytest.mark.parametrize(
    "name", ["{0}.checkpoint.part", "{0}.checkpoint.deleted", "x{0}.checkpoint", "{0}.checkpoint~"]
)
def test_files_that_are_not_kafkas_final_ones_are_never_read(inner: Path, name: str) -> None:
    write_log(inner, control_batch([leader_change()]), batch(configs(0, 2), 1))
    (inner / name.format("00000000000000000003-0000000001")).write_bytes(b"not a snapshot")
    for other in ("00000000000000000003.log.deleted", "00000000000000000000.index", "00000000000000000000.timeindex"):
        (inner / other).write_bytes(b"not a log")
    loaded = clean(load(inner))
    assert keys(loaded) == [0, 1]
    assert len(loaded.listing.segments) == 1
    assert loaded.listing.snapshots == ()


@pytest.mark.parametrize("make", [lambda p: p / "absent", lambda p: p, lambda p: p / "file.txt"])
def test_where_nothing_is_found(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(SourceNotFoundError) as caught:
        load(make(tmp_path))
    assert caught.value.exit_code == 3
    assert str(make(tmp_path)) in caught.value.message


def test_a_formatted_directory_that_was_never_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=x\n")
    with pytest.raises(SourceNotFoundError) as caught:
        load(tmp_path)
    assert "no server has run on it yet" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["orders-0", "replication-offset-checkpoint"])
def test_a_log_directory_of_a_server_that_ran_is_not_called_new(tmp_path: Path, name: str) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=x\n")
    (tmp_path / name).touch()
    with pytest.raises(SourceNotFoundError) as caught:
        load(tmp_path)
    assert (caught.value.hint or "").startswith("a server has run on this log directory")


def test_a_metadata_directory_without_files_is_not_asked_for_itself(inner: Path) -> None:
    inner.mkdir(exist_ok=True)
    with pytest.raises(SourceNotFoundError) as caught:
        load(inner)
    assert "its log and snapshots are not in it" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["copy.tar.gz", "00000000000000000000.log.gz", "node.zip"])
def test_an_archive_is_to_be_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(SourceNotFoundError) as caught:
        load(tmp_path / name)
    assert "unpack it" in (caught.value.hint or "")


@pytest.mark.parametrize("part", ["", "00000000000000000000.log"])
def test_the_records_of_a_topic_are_no_metadata(tmp_path: Path, part: str) -> None:
    folder = tmp_path / "orders-0"
    write_log(folder, batch(configs(0, 2)))
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: GK8Sd1RmQECkmrtmTxH2Lw\n")
    with pytest.raises(SourceNotFoundError, match="has the records of a topic"):
        load(folder / part)
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert keys(load(folder / part)) == [0, 1]


def test_a_log_that_was_emptied_is_not_called_new(inner: Path) -> None:
    write_log(inner)
    (inner.parent / "bootstrap.checkpoint").write_bytes(b"x")
    write_epochs(inner, (1, 0), (4, 303))
    notes = load(inner).notes
    assert any("knows of epoch 4, from offset 303 on: the log's records are gone" in note for note in notes)
    assert not any("no server has written" in note for note in notes)


@pytest.mark.parametrize("typed", ["link", "node/../__cluster_metadata-0"])
def test_what_is_above_a_directory_behind_a_link_is_above_the_directory_itself(
    tmp_path: Path, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ``node/..`` is where the system goes, which follows the link first."""
    folder = tmp_path / "real" / "__cluster_metadata-0"
    write_log(folder, batch(configs(0, 2)))
    (tmp_path / "real/inside").mkdir()
    (tmp_path / "real/meta.properties").write_text("version=1\nnode.id=7\n")
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=8\n")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "node").symlink_to(tmp_path / "real/inside")
    monkeypatch.chdir(tmp_path)
    assert meta_properties(load(Path(typed)).listing)["node.id"] == "7"


def test_metadata_on_another_disk_belongs_to_the_log_directory_with_the_link(tmp_path: Path) -> None:
    write_log(tmp_path / "ssd/__cluster_metadata-0", batch(configs(0, 2)))
    (tmp_path / "ssd/meta.properties").write_text("version=1\nnode.id=8\n")
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka/meta.properties").write_text("version=1\nnode.id=7\n")
    (tmp_path / "kafka/__cluster_metadata-0").symlink_to(tmp_path / "ssd/__cluster_metadata-0")
    for typed in ("kafka", "kafka/__cluster_metadata-0", "kafka/__cluster_metadata-0/"):
        assert meta_properties(load(tmp_path / typed).listing)["node.id"] == "7"
    assert meta_properties(load(Path(f"{tmp_path}/kafka/__cluster_metadata-0/")).listing)["node.id"] == "7"


def test_a_link_for_convenience_leads_to_what_belongs_to_the_metadata(tmp_path: Path) -> None:
    write_log(tmp_path / "real/__cluster_metadata-0", batch(configs(0, 2)))
    (tmp_path / "real/meta.properties").write_text("version=1\nnode.id=7\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/__cluster_metadata-0").symlink_to(tmp_path / "real/__cluster_metadata-0")
    for typed in ("home", "home/__cluster_metadata-0"):
        assert meta_properties(load(tmp_path / typed).listing)["node.id"] == "7"


def test_something_else_with_a_files_name_is_passed_over(inner: Path) -> None:
    write_log(inner, batch(configs(0, 2)))
    (inner / "00000000000000000009.log").mkdir()
    os.mkfifo(inner / "00000000000000000009-0000000001.checkpoint")
    assert keys(clean(load(inner))) == [0, 1]


def test_an_empty_log_beside_a_bootstrap_file(inner: Path) -> None:
    write_log(inner)
    (inner.parent / "bootstrap.checkpoint").write_bytes(snapshot(configs(0, 1), 0))
    loaded = clean(load(inner.parent))
    assert loaded.image == EMPTY
    assert any("the metadata log is empty" in note and "bootstrap.checkpoint" in note for note in loaded.notes)
    (inner.parent / "bootstrap.checkpoint").unlink()
    assert not any("bootstrap" in note for note in load(inner).notes)


def test_a_directory_that_kafka_4_4_has_formatted(inner: Path) -> None:
    """No ``bootstrap.checkpoint`` (KIP-1170): the records are in a snapshot of offset 0, and count once in the log."""
    path = write_snapshot(inner, snapshot(configs(0, 2), epoch=0), 0, 0)
    loaded = clean(load(inner.parent))
    assert keys(loaded) == []
    (note,) = (note for note in loaded.notes if "the metadata log is empty" in note)
    assert note.endswith(f"what the first one will write is in {path}")
    lone = clean(load(path))
    assert keys(lone) == [0, 1] and not any("empty" in note for note in lone.notes)
    write_log(inner, batch(configs(1, 3)))
    whole = clean(load(inner))
    assert keys(whole) == [1, 2] and not any("empty" in note for note in whole.notes)


# --- snapshots and the log after them --------------------------------------------------------------------------------


def test_the_newest_snapshot_then_the_log_after_it(inner: Path) -> None:
    write_log(inner, batch(configs(0, 10)))
    write_snapshot(inner, snapshot(configs(100, 102)), 3)
    write_snapshot(inner, snapshot(configs(200, 202)), 7)
    loaded = clean(load(inner))
    assert keys(loaded) == [7, 8, 9, 200, 201]
    assert (loaded.image.provenance.offset, loaded.log_end_offset) == (9, 10)


@pytest.mark.parametrize("what", ["flip", "no footer", "no header", "empty", "cut", "after the footer"])
def test_a_damaged_snapshot_gives_way_to_the_one_before_it(inner: Path, what: str) -> None:
    write_log(inner, batch(configs(0, 10)))
    write_snapshot(inner, snapshot(configs(0, 3)), 3)
    good = bytearray(snapshot(configs(200, 202)))
    header = len(control_batch([control(3)]))
    raw = {
        "flip": bytes(good[:80]) + b"\xff" + bytes(good[81:]),
        "no footer": bytes(good[: -len(control_batch([control(4)]))]),
        "no header": batch(configs(200, 202)) + control_batch([control(4)], 2),
        "empty": b"",
        "cut": bytes(good[:-1]),
        "after the footer": bytes(good) + batch(configs(300, 301), 4),
    }[what]
    assert header < len(good)
    path = write_snapshot(inner, raw, 7)
    loaded = load(inner)
    assert keys(loaded) == list(range(10))
    assert loaded.snapshot is not None
    assert loaded.snapshot.end_offset == 3
    (damage,) = loaded.damage
    assert isinstance(damage, CorruptDataError)
    assert damage.file == str(path)
    assert damage.exit_code == 4


@pytest.mark.parametrize("content", [b"\x00\x01" + bytes(9), b"\x00\x00\x00", None])
def test_a_snapshot_header_that_cannot_be_decoded_is_typed(inner: Path, content: bytes | None) -> None:
    """A header of a later version is no damage; whatever it is, nothing but kshell's own errors comes out."""
    parts = [control_batch([(b"\x00\x00\x00\x03", content)]), batch(configs(0, 1), 1), control_batch([control(4)], 2)]
    write_snapshot(inner, b"".join(parts), 9)
    try:
        loaded = load(inner)
    except CorruptDataError as error:
        assert error.position == 0
    else:
        assert keys(loaded) == [0]


def test_only_damaged_snapshots_and_no_log(inner: Path) -> None:
    path = write_snapshot(inner, snapshot(configs(0, 2))[:-3], 3)
    with pytest.raises(CorruptDataError) as caught:
        load(inner)
    assert caught.value.file == str(path)


def test_a_log_that_starts_above_0_needs_a_snapshot(inner: Path) -> None:
    log = write_log(inner, batch(configs(5, 9), 5), base_offset=5)
    with pytest.raises(IncompleteLogError, match="starts at offset 5") as caught:
        load(inner)
    assert str(log) in caught.value.message
    assert caught.value.hint
    write_snapshot(inner, snapshot(configs(0, 5)), 5)
    assert keys(clean(load(inner))) == list(range(9))
    assert keys(clean(load(log))) == [5, 6, 7, 8]


def test_a_gap_between_the_snapshot_and_the_log_ends_at_the_snapshot(inner: Path) -> None:
    write_snapshot(inner, snapshot(configs(0, 5)), 5)
    write_log(inner, batch(configs(8, 9), 8), base_offset=8)
    loaded = load(inner)
    assert [type(damage) for damage in loaded.damage] == [IncompleteLogError]
    assert keys(loaded) == [0, 1, 2, 3, 4]
    assert loaded.image.provenance.offset == 4


def test_a_gap_between_segments_ends_the_log(inner: Path) -> None:
    write_log(inner, batch(configs(0, 2)))
    write_log(inner, batch(configs(5, 6), 5), base_offset=5)
    loaded = load(inner)
    assert keys(loaded) == [0, 1]
    (damage,) = loaded.damage
    assert isinstance(damage, IncompleteLogError)
    assert "starts at offset 5, 2 was expected" in damage.message


def test_several_segments(inner: Path) -> None:
    for start in range(0, 20, 4):
        write_log(
            inner,
            batch(configs(start, start + 2), start),
            batch(configs(start + 2, start + 4), start + 2),
            base_offset=start,
        )
    assert keys(clean(load(inner))) == list(range(20))
    write_snapshot(inner, snapshot(configs(0, 9)), 9)
    assert keys(clean(load(inner))) == list(range(20))


def test_the_log_start_may_lie_inside_the_first_segment(inner: Path) -> None:
    write_snapshot(inner, snapshot(configs(0, 6), 2), 6, 2)
    write_log(
        inner,
        batch(configs(4, 6), 4, 1),
        control_batch([leader_change()], 6, 2),
        batch(configs(7, 9), 7, 2),
        base_offset=4,
    )
    write_epochs(inner, (2, 6))
    assert keys(clean(load(inner))) == [0, 1, 2, 3, 4, 5, 7, 8]


def test_an_epoch_at_the_log_end_without_a_record_is_normal(inner: Path) -> None:
    write_log(inner, control_batch([leader_change()]), batch(configs(1, 3), 1))
    write_epochs(inner, (1, 0), (2, 3))
    assert keys(clean(load(inner))) == [1, 2]


@pytest.mark.parametrize("until", [0, 2, 4, 5, 9, 50])
def test_until_an_offset(inner: Path, until: int) -> None:
    write_log(inner, batch(configs(0, 4)), batch(configs(4, 10), 4))
    write_snapshot(inner, snapshot(configs(0, 5)), 5)
    assert keys(clean(load(inner, until=until))) == list(range(min(until, 9) + 1))


def test_before_the_oldest_snapshot_without_its_log(inner: Path) -> None:
    path = write_snapshot(inner, snapshot(configs(0, 5)), 5)
    with pytest.raises(IncompleteLogError):
        load(inner, until=2)
    with pytest.raises(IncompleteLogError):
        load(path, until=2)
    write_log(inner, batch(configs(5, 7), 5), base_offset=5)
    with pytest.raises(IncompleteLogError):
        load(inner, until=2)
    assert keys(clean(load(inner, until=4))) == [0, 1, 2, 3, 4]


# --- damage ----------------------------------------------------------------------------------------------------------


def flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]


def test_damage_before_the_snapshots_end_is_stepped_over(inner: Path) -> None:
    first, second = batch(configs(0, 3)), batch(configs(3, 6), 3)
    path = write_log(inner, flipped(first, 70), second, batch(configs(6, 8), 6))
    write_snapshot(inner, snapshot(configs(0, 4)), 4)
    loaded = load(inner)
    assert keys(loaded) == list(range(8))
    assert [(d.file, d.position) for d in loaded.damage if isinstance(d, CorruptDataError)] == [(str(path), 0)]


def test_damage_after_the_snapshots_end_ends_the_log(inner: Path) -> None:
    first, second = batch(configs(0, 3)), batch(configs(3, 6), 3)
    path = write_log(inner, first, flipped(second, 70), batch(configs(6, 8), 6))
    write_snapshot(inner, snapshot(configs(0, 2)), 2)
    loaded = load(inner)
    assert keys(loaded) == [0, 1, 2]
    assert loaded.image.provenance.offset == 2
    assert [(d.file, d.position) for d in loaded.damage if isinstance(d, CorruptDataError)] == [(str(path), len(first))]


def test_a_torn_tail_is_normal_in_the_last_segment_only(inner: Path) -> None:
    last = batch(configs(4, 6), 4)
    write_log(inner, batch(configs(0, 2)), batch(configs(2, 4), 2))
    path = write_log(inner, last[:-1], base_offset=4)
    loaded = load(inner)
    assert (keys(loaded), loaded.damage) == ([0, 1, 2, 3], [])
    assert loaded.torn is not None
    assert (loaded.torn[0], loaded.torn[1].position, loaded.torn[1].bytes_left) == (str(path), 0, len(last) - 1)
    assert any("torn tail" in note and "byte 0" in note for note in loaded.notes)
    write_log(inner, base_offset=6)
    loaded = load(inner)
    assert loaded.torn is None
    assert [(d.file, d.position) for d in loaded.damage if isinstance(d, CorruptDataError)] == [(str(path), 0)]


@pytest.mark.parametrize("zeros", [1, 60, 61, 62, 4096])
def test_a_tail_of_zeros_is_torn(inner: Path, zeros: int) -> None:
    whole = batch(configs(0, 2))
    path = write_log(inner, whole, bytes(zeros))
    loaded = load(inner)
    assert (keys(loaded), loaded.damage) == ([0, 1], [])
    assert loaded.torn is not None
    assert (loaded.torn[0], loaded.torn[1].position) == (str(path), len(whole))


def test_zeros_with_something_after_them_are_damage(inner: Path) -> None:
    whole = batch(configs(0, 2))
    write_log(inner, whole, bytes(200), b"\x01")
    loaded = load(inner)
    assert [d.position for d in loaded.damage if isinstance(d, CorruptDataError)] == [len(whole)]


def test_records_that_do_not_fill_a_good_batch_are_damage(inner: Path) -> None:
    whole = batch(configs(0, 2))
    odd = write_batch([(None, b"a")], base_offset=2, epoch=1, timestamp=TIME, codec=0, compressed=b"\x7f\x00")
    path = write_log(inner, whole, odd, batch(configs(3, 4), 3))
    loaded = load(inner)
    assert keys(loaded) == [0, 1]
    assert [(Path(d.file).name, d.position) for d in loaded.damage if isinstance(d, CorruptDataError)] == [
        (path.name, len(whole))
    ]


def test_a_good_batch_with_broken_records_leaves_the_state_before_it(inner: Path) -> None:
    whole = batch(configs(0, 2))
    body = pack([(None, config(2)), (None, config(3))])[:-1] + b"\x05"
    odd = write_batch([(None, b"")] * 2, base_offset=2, epoch=1, timestamp=TIME, compressed=body)
    write_log(inner, whole, odd)
    loaded = load(inner)
    assert keys(loaded) == [0, 1]
    assert (loaded.image.provenance.offset, loaded.log_end_offset) == (1, 2)
    assert len(loaded.damage) == 1


def test_damage_after_until_is_nobodys_concern(inner: Path) -> None:
    bad = batch(configs(4, 6), 4)
    write_log(inner, batch(configs(0, 2)), batch(configs(2, 4), 2), bad[:-1] + bytes([bad[-1] ^ 1]))
    assert len(load(inner).damage) == 1
    for until in range(4):
        assert keys(clean(load(inner, until=until))) == list(range(until + 1))
    assert len(load(inner, until=4).damage) == 1


def test_damage_right_after_the_snapshot_that_until_names(inner: Path) -> None:
    write_snapshot(inner, snapshot(configs(0, 4)), 4)
    bad = batch(configs(4, 6), 4)
    write_log(inner, bad[:-1] + bytes([bad[-1] ^ 1]), base_offset=4)
    assert keys(clean(load(inner, until=3))) == [0, 1, 2, 3]


@pytest.mark.parametrize(("count", "claimed"), [(2, 5), (5, 2), (2, 3)])
def test_a_snapshot_batch_that_counts_wrong_is_damage(inner: Path, count: int, claimed: int) -> None:
    """The header counts 5 records over 5 offsets, and there are 2: the CRC is good."""
    body = pack([(None, one) for one in configs(0, count)])
    odd = write_batch([(None, b"")] * claimed, base_offset=1, epoch=1, timestamp=TIME, compressed=body)
    header = control_batch([control(3, lastContainedLogTimestamp=TIME)])
    path = write_snapshot(inner, header + odd + control_batch([control(4)], 1 + claimed), 9)
    with pytest.raises(CorruptDataError) as caught:
        load(path)
    assert caught.value.position == len(header)


def test_a_missing_codec_is_named_with_its_batch(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, config(2))]
    squeezed = write_batch(pairs, base_offset=2, epoch=1, timestamp=TIME, codec=4, compressed=pack(pairs))
    write_log(inner, batch(configs(0, 2)), squeezed)

    def missing(name: str) -> None:
        raise MissingCodecError(f"{name} is missing", hint="install it")

    monkeypatch.setattr("kshell.protocol.compression._cramjam", missing)
    loaded = load(inner)
    assert keys(loaded) == [0, 1]
    (damage,) = loaded.damage
    assert isinstance(damage, MissingCodecError)
    assert LOG in damage.message
    assert "zstd is missing" in damage.message
    assert damage.hint == "install it"


def test_an_open_transaction_is_noted(inner: Path) -> None:
    write_log(inner, batch([config(0), value("BEGIN_TRANSACTION"), config(2)]))
    loaded = clean(load(inner))
    assert keys(loaded) == [0]
    assert loaded.open_transaction == 1
    assert any("the metadata transaction from offset 1 on has not ended" in note for note in loaded.notes)


def test_problems_are_listed_with_file_and_byte(inner: Path) -> None:
    first = batch(configs(0, 1))
    write_log(inner, first, batch([value("UNFENCE_BROKER", id=1, epoch=1)], 1))
    (problem,) = load(inner).problems
    assert (problem.origin.offset, problem.origin.place.file, problem.origin.place.position) == (1, LOG, len(first))


# --- a directory that changes while it is read -----------------------------------------------------------------------


def test_files_that_vanish_are_listed_again(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(inner, batch(configs(0, 10)))
    old = write_snapshot(inner, snapshot(configs(0, 3)), 3)
    real, opened = os.open, []

    def racing(path: Any, *args: Any, **more: Any) -> int:
        opened.append(os.path.basename(path))
        if path == str(old) and old.exists():
            old.unlink()
            write_snapshot(inner, snapshot(configs(0, 7)), 7)
        return real(path, *args, **more)

    monkeypatch.setattr(os, "open", racing)
    loaded = clean(load(inner))
    assert keys(loaded) == list(range(10))
    assert loaded.snapshot is not None
    assert loaded.snapshot.end_offset == 7
    assert opened[0] == old.name


def test_a_file_that_always_vanishes_is_an_error_in_the_end(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(inner, batch(configs(0, 2)))

    def gone(name: str, *args: Any) -> int:
        raise FileNotFoundError(2, "No such file or directory", name)

    monkeypatch.setattr(os, "open", gone)
    with pytest.raises(CorruptDataError, match="vanishes again and again") as caught:
        load(inner)
    assert caught.value.file == str(path)


def test_what_vanishes_altogether_is_not_found(inner: Path) -> None:
    path = write_log(inner, batch(configs(0, 2)))
    lone, around = DirectorySource(str(path)), DirectorySource(str(inner))
    shutil.rmtree(inner)
    for source in (lone, around):
        with pytest.raises(SourceNotFoundError):
            source.load()


def test_damage_is_believed_only_while_nothing_changes(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = batch(configs(0, 2))
    path = write_log(inner, flipped(whole, 70))
    real, reads = module._load, []

    def then_repaired(*args: Any) -> Loaded:
        loaded = real(*args)
        reads.append(len(loaded.damage))
        path.write_bytes(whole + batch(configs(2, 4), 2))
        return loaded

    monkeypatch.setattr(module, "_load", then_repaired)
    assert keys(clean(load(inner))) == [0, 1, 2, 3]
    assert reads == [1, 0]


def test_a_log_that_grows_gives_some_whole_state(inner: Path) -> None:
    whole = b"".join(batch([config(number)], number) for number in range(6))
    ends = [len(whole) * number // 6 for number in range(1, 7)]
    path = write_log(inner)
    for size in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:size])
        loaded = load(inner)
        assert loaded.damage == []
        assert keys(loaded) == list(range(sum(end <= size for end in ends)))


def test_loading_writes_nothing(tmp_path: Path) -> None:
    inner = copy_of(FIXTURES / "3.3.2/broker-0", tmp_path)
    before = sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in inner.parent.rglob("*"))
    load(inner)
    assert (
        sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in inner.parent.rglob("*")) == before
    )


# --- files that may not be read --------------------------------------------------------------------------------------


def test_a_file_that_may_not_be_read_says_what_to_do(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(inner, batch(configs(0, 5)))
    path = write_snapshot(inner, snapshot(configs(0, 2)), 3)
    real = os.open

    def guarded(name: Any, *args: Any, **more: Any) -> int:
        if str(name).endswith(".checkpoint"):
            raise PermissionError(13, "Permission denied", name)
        return real(name, *args, **more)

    monkeypatch.setattr(os, "open", guarded)
    with pytest.raises(SourcePermissionError, match="permission denied") as caught:
        load(inner)
    assert str(path) in caught.value.message
    assert "sudo -u kafka" in (caught.value.hint or "")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("what", ["file", "directory"])
def test_modes_are_respected(inner: Path, what: str) -> None:
    path = write_log(inner, batch(configs(0, 5)))
    with locked(path if what == "file" else inner), pytest.raises(SourcePermissionError):
        load(inner)


def test_progress_reaches_the_end(inner: Path) -> None:
    write_log(inner, batch(configs(0, 5)), batch(configs(5, 6), 5))
    seen: list[tuple[int, int, str]] = []
    load(inner, progress=lambda done, total, what: seen.append((done, total, what)))
    assert seen[-1][0] == seen[-1][1] == (inner / LOG).stat().st_size
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_the_image_is_that_of_the_records(inner: Path) -> None:
    write_log(inner, batch(configs(0, 5)))
    assert load(inner).image == replayed(*configs(0, 5))[0]


@pytest.mark.parametrize("until", [0, 1, 5])
def test_a_log_that_is_looked_at_from_its_beginning_is_not_empty(until: int) -> None:
    """The first record of a log is the election of its first leader, which is no part of the image."""
    for node in ("3.9.2/controller-3001", "3.9.2/broker-0", "4.3.1/controller-3001"):
        loaded = DirectorySource(str(FIXTURES / node)).load(until=until)
        assert not any("the metadata log is empty" in note for note in loaded.notes), node
