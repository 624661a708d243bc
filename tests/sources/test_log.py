"""The log of a directory: which segments are read, and going on after damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.errors import CorruptDataError, IncompleteLogError
from kshell.sources.directory.files import scan
from kshell.sources.directory.log import LogReader
from tests.builders import batch, value, write_log


def data(offset: int, count: int = 2) -> bytes:
    return batch([value("NO_OP")] * count, offset)


def reader(path: Path, start: int = 0, *, resume: bool = False) -> tuple[list[int], LogReader]:
    found = LogReader(scan(str(path)), start, resume=resume)
    return [item.batch.base_offset for item in found], found


def broken(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


@pytest.mark.parametrize(("start", "first"), [(0, 0), (3, 0), (4, 4), (5, 4), (8, 8), (99, 8)])
def test_segments_before_the_start_are_not_read(tmp_path: Path, start: int, first: int) -> None:
    for base in (0, 4, 8):
        write_log(tmp_path, data(base), data(base + 2), base_offset=base)
    offsets, found = reader(tmp_path, start)
    assert offsets == list(range(first, 12, 2))
    assert found.damage == []


def test_damage_ends_the_walk_unless_it_is_resumed(tmp_path: Path) -> None:
    path = write_log(tmp_path, data(0), broken(data(2)), data(4))
    write_log(tmp_path, data(6), base_offset=6)
    offsets, found = reader(tmp_path)
    assert offsets == [0]
    assert len(found.damage) == 1
    offsets, found = reader(tmp_path, resume=True)
    assert offsets == [0, 4, 6]
    (damage,) = found.damage
    assert isinstance(damage, CorruptDataError)
    assert (damage.file, damage.position) == (str(path), len(data(0)))


def test_a_gap_is_passed_only_when_resumed(tmp_path: Path) -> None:
    write_log(tmp_path, data(0))
    write_log(tmp_path, data(6), base_offset=6)
    for resume, expected in ((False, [0]), (True, [0, 6])):
        offsets, found = reader(tmp_path, resume=resume)
        assert offsets == expected
        assert [type(damage) for damage in found.damage] == [IncompleteLogError]


def test_damage_before_the_start_is_stepped_over_once_and_after_it_is_not(tmp_path: Path) -> None:
    write_log(tmp_path, data(0), broken(data(2)), data(4), broken(data(6)), data(8))
    offsets, found = reader(tmp_path, 4)
    assert offsets == [0, 4]
    assert [damage.position // len(data(0)) for damage in found.damage if isinstance(damage, CorruptDataError)] == [
        1,
        3,
    ]


def test_damage_before_the_start_does_not_end_the_walk_with_its_segment(tmp_path: Path) -> None:
    write_log(tmp_path, data(0), broken(data(2)), data(4), data(6))
    write_log(tmp_path, data(8), broken(data(10)), data(12), base_offset=8)
    write_log(tmp_path, data(14), base_offset=14)
    assert reader(tmp_path, 4)[0] == [0, 4, 6, 8]
    assert reader(tmp_path, 12)[0] == [8, 12, 14]


@pytest.mark.parametrize("resume", [False, True])
def test_a_batch_that_only_the_next_one_gives_away_is_stepped_over_once(tmp_path: Path, resume: bool) -> None:
    wrong = data(0)[:12] + (65).to_bytes(4, "big") + data(0)[16:]  # the CRC does not cover the epoch
    path = write_log(tmp_path, wrong, data(2), data(4), data(6))
    offsets, found = reader(tmp_path, 4, resume=resume)
    assert offsets == [0, 2, 4, 6]
    (damage,) = found.damage
    assert isinstance(damage, CorruptDataError)
    assert (damage.file, damage.position) == (str(path), 0)
    assert "has epoch 65, the batches after it have 1" in damage.reason


def test_a_batch_that_holds_the_start_is_not_stepped_over(tmp_path: Path) -> None:
    write_log(tmp_path, data(0), broken(data(2)), data(4))
    offsets, found = reader(tmp_path, 3)
    assert offsets == [0]
    assert len(found.damage) == 1


@pytest.mark.parametrize("until", [1, 2, 3])
def test_nothing_after_until_is_looked_at(tmp_path: Path, until: int) -> None:
    write_log(tmp_path, data(0), data(2), broken(data(4)))
    write_log(tmp_path, broken(data(6)), base_offset=6)
    found = LogReader(scan(str(tmp_path)), 0, until=until)
    assert [item.batch.base_offset for item in found] == [0, 2][: 1 + (until > 1)]
    assert found.damage == []


def test_a_segment_after_until_is_not_opened(tmp_path: Path) -> None:
    write_log(tmp_path, data(0))
    write_log(tmp_path, broken(data(6)), base_offset=6)
    found = LogReader(scan(str(tmp_path)), 6, until=5)
    assert list(found) == []
    assert found.damage == []


def test_batches_come_with_the_full_path(tmp_path: Path) -> None:
    path = write_log(tmp_path, data(0))
    assert [found.file for found in LogReader(scan(str(tmp_path)))] == [str(path)]
