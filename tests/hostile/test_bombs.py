"""Batches that become far more than they are: bytes that decompress without end, records that hold nothing."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from kshell.errors import CorruptDataError
from kshell.metadata.replay import MALFORMED, MOST_PROBLEMS, NEWER, SKIPPED
from kshell.protocol.batches import MAX_BATCH, pack, write_batch
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.builders import (
    LOG,
    TIME,
    Pair,
    batch,
    control,
    control_batch,
    leader_change,
    sealed,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.shell import opened, sections
from tests.hostile.measured import check, measured

CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, lambda data: gzip.compress(data, 1)),
    "snappy": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}
DEADLINE = 30


def counting(count: int, codec: int, data: bytes, offset: int = 1) -> bytes:
    """A batch of so many records, whose bytes decompress to whatever they do."""
    made = bytearray(
        write_batch([(None, b"")], base_offset=offset, epoch=1, timestamp=TIME, codec=codec, compressed=data)
    )
    made[23:27], made[57:61] = struct.pack(">i", count - 1), struct.pack(">i", count)
    return sealed(made)


@pytest.fixture(scope="module", params=CODECS)
def bomb(request: pytest.FixtureRequest) -> bytes:
    number, compress = CODECS[request.param]
    return counting(1, number, compress(bytes(400_000_000)))


def test_a_batch_that_decompresses_without_end_is_named_and_stopped(bomb: bytes, tmp_path: Path) -> None:
    start = control_batch([leader_change()])
    write_log(tmp_path, start, bomb)
    for command in ("info", "dump", "ls /image", "health"):
        took = measured("-d", str(tmp_path), "--timeout", str(DEADLINE), *command.split())
        check(took, 4)
        assert took.seconds < DEADLINE
        assert f"{tmp_path / LOG}: byte {len(start)}: the batch decompresses to more than {MAX_BATCH}" in took.text


def test_so_is_one_in_a_snapshot(bomb: bytes, tmp_path: Path) -> None:
    start = control_batch([control(3, lastContainedLogTimestamp=TIME)])
    path = write_snapshot(tmp_path, start + bomb + control_batch([control(4)], 2), 3)
    took = measured("-d", str(tmp_path), "--timeout", str(DEADLINE), "ls", "/image")
    check(took, 4)
    assert f"{path}: byte {len(start)}: the batch decompresses to more than {MAX_BATCH}" in took.text


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_many_small_bombs_have_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_snapshot: bool) -> None:
    monkeypatch.setattr("kshell.metadata.replay._ROOM", 50_000)
    monkeypatch.setattr("kshell.metadata.replay._RATIO", 4)
    pairs: list[Pair] = [(None, value("CONFIG", resourceType=2, resourceName="x", name="y", value="z" * 10_000))]
    packed = CODECS["zstd"][1](pack(pairs))
    bombs = [
        write_batch(pairs, base_offset=1 + at, epoch=1, timestamp=TIME, codec=4, compressed=packed) for at in range(9)
    ]
    if is_snapshot:
        header = control_batch([control(3, lastContainedLogTimestamp=TIME)])
        write_snapshot(tmp_path, header + b"".join(bombs) + control_batch([control(4)], 10), 11)
        with pytest.raises(CorruptDataError, match="become 60"):
            DirectorySource(str(tmp_path)).load()
        return
    start = control_batch([leader_change()])
    write_log(tmp_path, start, *bombs)
    loaded = DirectorySource(str(tmp_path)).load()
    (damage,) = loaded.damage
    assert isinstance(damage, CorruptDataError)
    assert damage.position == len(start) + 5 * len(bombs[0])
    assert "more than 4 times as many" in damage.message
    assert loaded.image.provenance.offset == 5


EMPTY = {"no value": None, "one byte": b"x", "a type that is not known": b"\x01\x7e\x00"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("is_snapshot", [False, True])
def test_half_a_million_records_of_nothing_take_no_memory_and_the_deadline_holds(
    tmp_path: Path, name: str, is_snapshot: bool
) -> None:
    count = 500_000
    made = counting(count, 4, CODECS["zstd"][1](pack([(None, EMPTY[name])] * count)))
    if is_snapshot:
        header, footer = control(3, lastContainedLogTimestamp=TIME), control_batch([control(4)], count + 1)
        write_snapshot(tmp_path, control_batch([header]) + made + footer, count + 2)
    else:
        write_log(tmp_path, control_batch([leader_change()]), made)
    took = measured("-d", str(tmp_path), "--timeout", "5", "info")
    check(took, 0, 1, 3, 4)
    assert took.seconds < 15  # five, and the start of a process on a machine that does much else
    assert took.memory < 160


def test_a_batch_cannot_count_more_records_than_it_has_bytes(tmp_path: Path) -> None:
    write_log(tmp_path, control_batch([leader_change()]), counting((1 << 31) - 1, 0, pack([(None, b"x")])))
    took = measured("-d", str(tmp_path), "--timeout", str(DEADLINE), "info")
    check(took, 4)
    assert took.seconds < DEADLINE


# --- how many are listed ---------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("kshell.metadata.replay.MOST_PROBLEMS", 3)
    return 3


def odd(directory: Path) -> Path:
    """Ten records of each kind that an image leaves out, one kind after another, in batches of ten."""
    stray = value("PARTITION_CHANGE", partitionId=0, topicId=uuid(9))
    kinds = (b"x", b"\x01\x7e\x00", stray)
    start = control_batch([leader_change()])
    write_log(directory, start, *(batch([one] * 10, 1 + 10 * at) for at, one in enumerate(kinds)))
    return directory


def test_the_first_of_each_kind_are_listed_and_the_rest_is_counted(tmp_path: Path, few: int) -> None:
    loaded = DirectorySource(str(odd(tmp_path))).load()
    kinds = [problem.kind for problem in loaded.problems]
    assert kinds == [MALFORMED] * few + [NEWER] * few + [SKIPPED] * few
    assert {kind: list(offsets) for kind, offsets in loaded.problems.unlisted.items()} == {
        MALFORMED: list(range(4, 11)),
        NEWER: list(range(14, 21)),
        SKIPPED: list(range(24, 31)),
    }


def test_as_of_an_offset_only_those_before_it_count(tmp_path: Path, few: int) -> None:
    past = Past(DirectorySource(str(odd(tmp_path))))
    for offset, listed, unlisted in ((2, 2, 0), (3, 3, 0), (6, 3, 3), (12, 5, 7), (30, 9, 21)):
        loaded = past.at(offset)
        assert loaded is not None
        assert (len(loaded.problems), sum(map(len, loaded.problems.unlisted.values()))) == (listed, unlisted)


@pytest.mark.usefixtures("few")
def test_the_user_learns_how_many_there_are(tmp_path: Path) -> None:
    session = opened(odd(tmp_path))
    rows = sections(session, "info")["problems"]
    assert {(row["kind"], row["count"]) for row in rows} >= {("malformed", 10), ("unknown", 10), ("skipped", 7)}
    assert session.problems()[-1] == (
        f"at least 14 more records are skipped: only the first {MOST_PROBLEMS} of each kind are listed"
    )
    assert any(note.startswith("10 records are newer than this kshell") for note in session.notes())
    assert session.exit_code() == 4
