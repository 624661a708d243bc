"""Every single bit of every small recorded file, flipped: seen at the right batch, or named by verify as unconfirmed.

Reading goes from the damaged batch on, as it does where a segment begins there, unless the bit is one that no checksum
covers: then from the file's beginning, with the epochs that the directory's other files say.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kshell.errors import CorruptDataError, DataError, IncompleteLogError
from kshell.protocol.batches import LENGTH_END, Batch
from kshell.sources.directory.files import Listing, Segment, SnapshotFile
from kshell.sources.directory.log import LogReader
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.directory.source import DirectorySource
from kshell.sources.directory.verification import CONFIRMED, DAMAGED, verify_files
from tests.builders import batches, copy_of, recorded

MOST = 60_000
"""Bytes of a file: each costs eight readings."""
_CHECKED_ALONE = 16
"""The byte of a batch from which on a flip shows by itself: by the magic, the CRC, or what the CRC covers."""
_LENGTH = range(8, LENGTH_END)
_EPOCH = range(12, 16)
_SAMPLE = 997
"""Every so many bits, where not all are tried."""


def small_files() -> list[Path]:
    """One of each content."""
    seen: dict[str, Path] = {}
    for node in recorded():
        for path in sorted(node.rglob("*")):
            if path.suffix in (".log", ".checkpoint") and 0 < path.stat().st_size < MOST:
                seen.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    return list(seen.values())


def label(path: Path) -> str:
    return "/".join(path.parts[-4:])


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("path", small_files(), ids=label)
def test_every_flipped_bit_is_seen(path: Path, tmp_path: Path) -> None:
    _flip(path, tmp_path, 1)


@pytest.mark.thorough
def test_some_flipped_bits_of_each_file_are_seen(tmp_path: Path) -> None:
    for number, path in enumerate(small_files()):
        _flip(path, tmp_path / str(number), _SAMPLE, first=number)


def _flip(path: Path, scratch: Path, step: int, first: int = 0) -> None:
    """Flip every ``step``-th bit of a file. What goes unseen must be an epoch that verify does not call confirmed."""
    raw = path.read_bytes()
    subject = _subject(path)
    all_batches = batches(raw)
    unseen = []
    for batch in all_batches:
        for bit in range((first - batch.position * 8) % step, batch.size * 8, step):
            place = bit // 8
            damaged = bytearray(raw)
            damaged[batch.position + place] ^= 1 << bit % 8
            fault = subject.fault(bytes(damaged), batch, place)
            is_last_length = batch is all_batches[-1] and place in _LENGTH and path.suffix == ".log"
            if fault is None:
                assert place in _EPOCH, (label(path), batch.position, bit)
                unseen.append((batch, bit))
            else:
                assert fault == batch.position or (is_last_length and fault == ~batch.position), (place, bit, fault)
    if unseen:
        _expect_unconfirmed(path, scratch, unseen)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("path", small_files(), ids=label)
def test_every_cut_is_seen_where_it_is(path: Path) -> None:
    _cut(path, 1)


@pytest.mark.thorough
def test_some_cuts_of_each_file_are_seen_where_they_are() -> None:
    for path in small_files():
        _cut(path, _SAMPLE)


def _cut(path: Path, step: int) -> None:
    """A log ends torn at the batch that is cut, or whole between two; a snapshot is damaged there, or lacks its end."""
    raw = path.read_bytes()
    subject = _subject(path)
    for batch in batches(raw):
        for end in {*range(batch.position + 1, batch.end, step), batch.end - 1, batch.end}:
            is_between = end == batch.end
            fault = subject.fault(raw[:end], batch, _CHECKED_ALONE)
            if path.suffix == ".log":
                assert fault == (None if is_between else ~batch.position), (label(path), end)
            elif end == len(raw):
                assert fault is None, label(path)
            else:
                assert fault == (end if is_between else batch.position), (label(path), end)


def _subject(path: Path) -> _Log | _Snapshot:
    if path.suffix == ".log":
        return _Log(DirectorySource(str(path.parent)).listing(full_log=True), path)
    return _Snapshot(path, path.read_bytes())


class _Log:
    """A segment with what stands beside it."""

    def __init__(self, listing: Listing, path: Path) -> None:
        self._listing = listing
        self._segment = next(one for one in listing.segments if Path(one.path).name == path.name)

    def fault(self, damaged: bytes, batch: Batch, place: int) -> int | None:
        """Where damage is named; a torn end as its complement; ``None`` where all seems well."""
        start = batch.position if place >= _CHECKED_ALONE else 0
        base = batch.base_offset if start else self._segment.base_offset
        data = damaged[start:]
        segment = Segment(self._segment.path, base, len(data), 0, data)
        reader = LogReader(self._listing._replace(segments=(segment,)))
        for _ in reader:
            pass
        return _place(reader.damage, reader.torn[1].position if reader.torn else None, start)


def _place(damage: list[DataError], torn: int | None, start: int) -> int | None:
    if damage:
        error = damage[0]
        assert isinstance(error, CorruptDataError | IncompleteLogError), error
        return start + (error.position if isinstance(error, CorruptDataError) else 0)
    return None if torn is None else ~(start + torn)


class _Snapshot:
    def __init__(self, path: Path, raw: bytes) -> None:
        listing = DirectorySource(str(path.parent)).listing(full_log=True) if path.name[0].isdigit() else None
        found = listing.snapshots if listing else ()
        self._file = next(
            (one for one in found if Path(one.path).name == path.name),
            SnapshotFile(str(path), None, None, len(raw), 0),
        )

    def fault(self, damaged: bytes, batch: Batch, place: int) -> int | None:
        """As of a log; a snapshot has no torn end."""
        try:
            for _ in SnapshotReader(self._file._replace(data=damaged)):
                pass
        except CorruptDataError as error:
            return error.position
        return None


def _expect_unconfirmed(path: Path, scratch: Path, unseen: list[tuple[Batch, int]]) -> None:
    node = next(parent for parent in path.parents if parent.parent in path.parents and parent in recorded())
    scratch.mkdir(exist_ok=True)
    inner = copy_of(node, scratch)
    target = inner / path.name if (inner / path.name).exists() else inner.parent / path.relative_to(node)
    target.chmod(0o600)
    raw = path.read_bytes()
    for batch, bit in unseen:
        damaged = bytearray(raw)
        damaged[batch.position + bit // 8] ^= 1 << bit % 8
        target.write_bytes(damaged)
        checks = verify_files(DirectorySource(str(inner))).checks
        check = next(one for one in checks if one.file == path.name)
        assert check.verdict == DAMAGED or check.certainty != CONFIRMED, (label(path), batch.position, bit)


def test_there_are_files_of_both_kinds() -> None:
    suffixes = [path.suffix for path in small_files()]
    assert suffixes.count(".log") > 40 and suffixes.count(".checkpoint") > 100
