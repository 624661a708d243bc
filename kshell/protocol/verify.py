"""The rules that make a file of batches trustworthy; they run on every read.

In: the bytes of segments or of a snapshot. Out: batches that passed every rule (:class:`Chain`). A batch's CRC leaves
its base offset, length, epoch and magic uncovered, so a batch is also compared with the one before it: offsets are
gapless, the epoch never falls, and each rise is announced by a LeaderChange record or by the
``leader-epoch-checkpoint`` file. A log has no header or footer of a snapshot: a file with one is a snapshot under a
segment's name, and its offsets count from its own start. Damage is a :class:`CorruptDataError` at the batch's first
byte. A file that simply ends inside its last batch is *torn*: normal while a server writes, and distinguished from
damage by the bytes that follow.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import CorruptDataError
from kshell.protocol.batches import (
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_END,
    MAX_BATCH,
    MIN_LENGTH,
    Batch,
    crc_of,
    read_header,
)
from kshell.protocol.control import LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER, holds
from kshell.protocol.primitives import Buffer
from kshell.protocol.windows import Window, Windowed, windowed

MAGIC = 2
_MAGIC_PLACE = 16
_LENGTH_START = 8
LAST_OFFSET = (1 << 63) - 1


class Torn(NamedTuple):
    """A file that ends inside a batch: the position of the batch, and how many bytes from there on the file has."""

    position: int
    bytes_left: int
    reason: str

    def note(self, path: str) -> str:
        """Return a note for the user; the caller adds :data:`USUAL` where the torn end is normal."""
        return f"{path}: byte {self.position}: torn tail ({self.reason})"


USUAL = "; normal while a server writes"
"""Suffix for the note of a torn end, added where nothing suggests damage."""
SNAPSHOT_IN_LOG = "the batch is a snapshot's header or footer, which no log has: the file is a snapshot, not a segment"


def is_of_snapshot(batch: Batch) -> bool:
    """Whether a (verified) batch has a SnapshotHeader or SnapshotFooter record, which only snapshots have."""
    return batch.is_control and (holds(batch, SNAPSHOT_HEADER) or holds(batch, SNAPSHOT_FOOTER))


_TOOLS_EPOCH = 0
"""The epoch that Kafka's ``BatchFileWriter`` gives to every batch."""
_NO_LINE = LAST_OFFSET + 1
"""An offset that no batch reaches: the end of the last line of ``leader-epoch-checkpoint``."""


class FixedEpoch:
    """Checks the epochs of a snapshot: all batches have the epoch in the file's name (``None``: the name has none).

    Kafka's own ``BatchFileWriter`` writes epoch 0 whatever the file is called, so a file whose batches all have epoch 0
    is accepted under any name; ``epoch`` then becomes 0. Call :meth:`fault` for each batch, in the file's order.
    """

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self._first = True

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """Return the batch at fault and the reason if the batch's epoch cannot be right, else ``None``."""
        first, self._first = self._first, False
        if batch.epoch == self.epoch:
            return None
        if first and self.epoch is None and _stands_alone(batch):
            return batch, f"the batch has epoch {batch.epoch}, the batches after it have {_next_epoch(batch)}"
        if first and (self.epoch is None or batch.epoch == _next_epoch(batch) == _TOOLS_EPOCH):
            self.epoch = batch.epoch
            return None
        return batch, f"the batch has epoch {batch.epoch}, the snapshot's is {self.epoch}"


def _next_epoch(batch: Batch) -> int | None:
    """The epoch of the next batch; ``None`` if its whole header is not in the buffer."""
    following = _next(batch)
    return None if following is None else following.epoch


def _next(batch: Batch) -> Batch | None:
    """The header of the next batch; ``None`` if it is not wholly in the buffer."""
    if batch.after + HEADER_SIZE > len(batch.buf):
        return None
    return read_header(batch.buf, batch.after, batch.start)


def _stands_alone(batch: Batch) -> bool:
    """Whether the next two batches have the same epoch, and it is not the epoch of this batch."""
    following = _next(batch)
    if following is None or following.epoch == batch.epoch or following.size < HEADER_SIZE:
        return False
    return _next_epoch(following) == following.epoch


class LeaderEpochs:
    """Checks that the epochs of a log's batches never fall, and that something announces each rise.

    Call :meth:`fault` for each batch, in order. ``history``: the (epoch, start offset) lines of
    ``leader-epoch-checkpoint``, in order.
    """

    def __init__(self, history: list[tuple[int, int]] | None = None) -> None:
        self._starts = [start for _, start in history or ()]
        self._epochs = [epoch for epoch, _ in history or ()]
        self._last: Batch | None = None
        self._last_is_proven = False
        self._last_file: str | None = None
        self._line_end = 0
        """The start offset of the line of ``history`` after the one that the last batch was compared with."""
        self._announced: int | None = None
        """The epoch of the last LeaderChange record. Kafka 3.3 can write a record of a new epoch before the
        LeaderChange record of that epoch, but never writes two LeaderChange records for one epoch."""
        self._first_is_proven = False

    def prove_first(self) -> None:
        """Take the epoch of the next batch as proven: an earlier walk compared it with the batch before it."""
        self._first_is_proven = True

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """Return the batch at fault (this one or the one before) and the reason, or ``None`` if the epoch is right.

        The batch before can be at fault only if it is in the same ``file``; without a file, it is always this one.
        """
        last = self._last
        if (
            last is not None
            and batch.epoch == last.epoch
            and last.base_offset <= batch.base_offset < self._line_end
            and not batch.attributes & CONTROL_BIT
        ):  # nearly every batch: what proved the epoch of the last batch proves the same epoch for this one
            self._last, self._last_is_proven, self._first_is_proven = batch, True, False
            self._last_file = file
            return None
        return self._examine(batch, file)

    def _examine(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """The same as :meth:`fault`, without its shortcut for a data batch in the epoch of the batch before it."""
        if is_of_snapshot(batch):
            return batch, SNAPSHOT_IN_LOG
        leader_change = holds(batch, LEADER_CHANGE)
        reason, proven = self._judge(batch, leader_change)
        if reason is not None:
            return self._blame(batch, reason, file)
        if self._last is not None:
            proven = proven or batch.epoch == self._last.epoch
        if leader_change:
            self._announced = batch.epoch
        following = bisect_right(self._starts, batch.base_offset)
        self._line_end = self._starts[following] if following < len(self._starts) else _NO_LINE
        self._last, self._last_is_proven, self._first_is_proven = batch, proven, False
        self._last_file = file
        return None

    def _judge(self, batch: Batch, leader_change: bool) -> tuple[str | None, bool]:
        """Return what is wrong with the epoch, or ``None``, and whether a second source confirms the epoch."""
        at = bisect_right(self._starts, batch.base_offset) - 1
        stated_epoch = self._epochs[at] if at >= 0 else None
        last = self._last.epoch if self._last is not None else None
        if stated_epoch is not None and batch.epoch != stated_epoch:
            # The checkpoint file of a copied directory can be older than the log: after the start of its last line, a
            # LeaderChange record may raise the epoch.
            stale = at == len(self._starts) - 1 and batch.base_offset > self._starts[at] and batch.epoch > stated_epoch
            if not (stale and (leader_change or batch.epoch == last)):
                return f"the batch has epoch {batch.epoch}, leader-epoch-checkpoint says {stated_epoch}", False
        if last is None:
            return None, stated_epoch is not None or self._first_is_proven
        if batch.epoch < last:
            return f"the epoch falls from {last} to {batch.epoch}", False
        # After a gap of missing or damaged batches, a rise needs no LeaderChange record: it may have been in the gap.
        is_next = self._last is None or batch.base_offset == self._last.last_offset + 1
        if (
            batch.epoch > last
            and is_next
            and not leader_change
            and stated_epoch != batch.epoch
            and not _announced_next(batch)
        ):
            return f"the epoch rises from {last} to {batch.epoch} without a LeaderChange record", False
        if batch.epoch == last == self._announced and leader_change:
            return f"a LeaderChange record does not raise the epoch from {last}", False
        return None, stated_epoch == batch.epoch

    def _blame(self, batch: Batch, reason: str, file: str | None) -> tuple[Batch, str]:
        """Return the batch at fault: this one, or the one before if nothing proves it and the next agrees with this."""
        last = self._last
        if last is None or self._last_is_proven or file is None or file != self._last_file:
            return batch, reason
        if _next_epoch(batch) != batch.epoch:
            return batch, reason
        self._last = None  # a walk that resumes at this batch must not compare it with the wrong one
        return last, f"the batch has epoch {last.epoch}, the batches after it have {batch.epoch}"


class RisingEpochs:
    """Checks batches that a quorum's leader sent, which has verified its own log: only that their epochs never fall."""

    def __init__(self) -> None:
        self._last: int | None = None

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """Return the batch and the reason if its epoch falls or it belongs to a snapshot, else ``None``."""
        if is_of_snapshot(batch):
            return batch, SNAPSHOT_IN_LOG
        last, self._last = self._last, batch.epoch
        return (
            (batch, f"the epoch falls from {last} to {batch.epoch}")
            if last is not None and batch.epoch < last
            else None
        )


def _announced_next(batch: Batch) -> bool:
    """Whether the next batch has a LeaderChange record, the same epoch and a good CRC."""
    following = _next(batch)
    if following is None or following.epoch != batch.epoch or not following.is_control:
        return False
    fits = following.size - LENGTH_END >= MIN_LENGTH and following.after <= len(batch.buf)
    return fits and following.crc_is_good() and holds(following, LEADER_CHANGE)


class Chain:
    """Walks the batches of files and checks each against the rules of this module.

    Call :meth:`walk` for each file in the order of the log. ``next_offset`` is the offset that the next batch must
    start at (``None``: any), also from one file to the next. ``torn`` is set when a file ends inside a batch.
    """

    def __init__(self, epochs: LeaderEpochs | FixedEpoch | RisingEpochs, next_offset: int | None) -> None:
        self._epochs = epochs
        self.next_offset = next_offset
        self.torn: Torn | None = None

    def walk(self, data: Buffer | Windowed, file: str, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from byte ``start`` on, up to a torn end. Raises CorruptDataError at a broken rule."""
        source = windowed(data)
        window = source.window(start, 0)
        buf, base = window.buf, window.start
        epoch_fault = self._epochs.fault
        position, size = start, source.size
        ahead_from = _ahead_from(window, size)
        if position >= size:
            return
        while True:
            if position > ahead_from:
                window = window_with_next_batches(source, window, position)
                buf, base, size = window.buf, window.start, source.size
                ahead_from = _ahead_from(window, size)
            remaining, at = size - position, position - base
            if remaining < HEADER_SIZE:
                self.torn = Torn(position, remaining, f"the file ends after {remaining} bytes of a batch")
                return
            batch = read_header(buf, at, base)
            length = batch.size
            if batch.magic != MAGIC or length < HEADER_SIZE or length > remaining or length > MAX_BATCH:
                self._end_or_damage(source, batch, file, remaining)
                return
            end = at + length
            if end + HEADER_SIZE > len(buf) and window.end < size:  # a large batch: read it again in a larger window
                window = window_with_next_batches(source, window, position)
                buf, base, size, ahead_from = window.buf, window.start, source.size, position
                continue
            if crc_of(buf, at + CRC_START, end) != batch.crc:
                raise CorruptDataError(file, position, "the batch's CRC does not match its bytes")
            offset, records = batch.base_offset, batch.records
            if offset != self.next_offset and self.next_offset is not None:
                raise CorruptDataError(file, position, self._out_of_order(batch))
            if records != batch.last_offset_delta + 1 or records < 1:
                reason = f"the batch counts {records} records over {batch.last_offset_delta + 1} offsets"
                raise CorruptDataError(file, position, reason)
            if offset < 0 or offset + records - 1 > LAST_OFFSET:
                reason = f"the batch has offsets {offset} to {batch.last_offset}, outside 0 to {LAST_OFFSET}"
                raise CorruptDataError(file, position, reason)
            fault = epoch_fault(batch, file)
            if fault is not None:
                culprit, reason = fault
                raise CorruptDataError(file, culprit.position, reason)
            self.next_offset = offset + records
            yield batch
            position += length
            if position >= size:
                return

    def _out_of_order(self, batch: Batch) -> str:
        if is_of_snapshot(batch) and not isinstance(self._epochs, FixedEpoch):
            return SNAPSHOT_IN_LOG
        return f"the batch starts at offset {batch.base_offset}, {self.next_offset} was expected"

    def _end_or_damage(self, source: Windowed, batch: Batch, file: str, remaining: int) -> None:
        """Classify the bytes from ``batch`` on, which are no whole batch: set ``torn``, or raise CorruptDataError."""
        position = batch.position
        if batch.magic != MAGIC:
            if not _all_zero(source, position):
                raise CorruptDataError(file, position, f"the batch has magic {batch.magic}, not {MAGIC}")
            self.torn = Torn(position, remaining, f"the file ends in {remaining} zero bytes")
        elif batch.size < HEADER_SIZE:
            raise CorruptDataError(file, position, f"the batch claims a length of {batch.size - LENGTH_END} bytes")
        elif batch.size > remaining:
            self._torn_or_damaged(source, batch, file, remaining)
        else:
            raise CorruptDataError(file, position, f"the batch claims {batch.size} bytes, the maximum is {MAX_BATCH}")

    def _torn_or_damaged(self, source: Windowed, batch: Batch, file: str, remaining: int) -> None:
        """Classify a batch longer than the file: torn, unless its CRC or a later whole batch shows a wrong length."""
        claim = f"the batch claims {batch.size} bytes, {remaining} are left"
        if remaining <= MAX_BATCH:
            window = source.window(batch.position, remaining)
            at = batch.position - window.start
            if crc_of(window.buf, at + CRC_START, at + remaining) == batch.crc:
                raise CorruptDataError(file, batch.position, f"{claim}, and its CRC says that it is whole")
        next_batch = find_batch(source, batch.position + 1)
        if next_batch is not None:
            raise CorruptDataError(
                file, batch.position, f"{claim}, and a whole batch follows at byte {next_batch.position}"
            )
        if self.next_offset is not None and batch.base_offset != self.next_offset:
            raise CorruptDataError(file, batch.position, f"{claim}, and {self.next_offset} was expected")
        self.torn = Torn(batch.position, remaining, claim)


_SEARCHED = 64 << 20
"""Bytes that :func:`find_batch` computes CRCs over, at most; then it reports that no batch follows.

Kafka's batches have a few MiB at most, and few other bytes look like a header by chance. But for a file made of headers
that each claim all bytes up to its end, the work would grow with the square of the file's size."""


def find_batch(data: Buffer | Windowed, start: int) -> Batch | None:
    """Return the first whole batch with a good CRC from byte ``start`` on, if any; used only after damage was found."""
    source = windowed(data)
    budget = _SEARCHED
    place = start + _MAGIC_PLACE
    """Where to search for the next magic byte. The holes of a sparse file are skipped: the magic is not zero."""
    while (place := source.data_from(place)) < source.size:
        window = source.window(place - _MAGIC_PLACE, _PIECE)
        for match in _MAGIC_BYTE.finditer(window.buf, place - window.start):
            at = match.start() - _MAGIC_PLACE
            length = int.from_bytes(window.buf[at + _LENGTH_START : at + LENGTH_END], "big")
            if not MIN_LENGTH <= length <= MAX_BATCH:  # true of nearly every byte 2 that is no magic byte
                continue
            batch = _header(source, window, window.start + at)
            if batch is None or not _is_plausible(batch, source.size):
                continue
            batch = _complete(source, batch)
            if batch.crc_is_good():
                return batch
            budget -= batch.size
            if budget <= 0:
                return None
        place = window.end
    return None


_NEAR = 1 << 20
"""Bytes at the end of a window. A batch that begins among them may need bytes after the window, because the rules of
epochs look at the batches that follow; then a window with more is read."""
_MAGIC_BYTE = re.compile(re.escape(bytes([MAGIC])))
_PIECE = 4 << 20
"""Bytes that are read at a time to search for a batch, or to compare with zeros."""
_ZEROS = bytes(1 << 16)


def _header(source: Windowed, window: Window, position: int) -> Batch | None:
    """Read the header at a position of the file; the window may have only a part of it; ``None`` past the end."""
    if position + HEADER_SIZE > source.size:
        return None
    if position + HEADER_SIZE > window.end:
        window = source.window(position, HEADER_SIZE)
    return read_header(window.buf, position - window.start, window.start)


def _is_plausible(batch: Batch, size: int) -> bool:
    """Whether bytes that were read as a header can be one, in a file of ``size`` bytes."""
    fits = batch.size - LENGTH_END >= MIN_LENGTH and batch.size <= min(size - batch.position, MAX_BATCH)
    counts = 0 < batch.records == batch.last_offset_delta + 1
    return fits and counts and batch.base_offset >= 0 and batch.last_offset <= LAST_OFFSET


def _complete(source: Windowed, batch: Batch) -> Batch:
    """Return the batch with a buffer that has all of its bytes; read them where they are missing."""
    if batch.after <= len(batch.buf):
        return batch
    window = source.window(batch.position, batch.size)
    return read_header(window.buf, batch.position - window.start, window.start)


def window_with_next_batches(source: Windowed, window: Window, position: int) -> Window:
    """Return a window with all that the rules of epochs look at for the batch at ``position``.

    That is the batch, the one after it and the header of the third, as far as the file has them.
    """
    end = position
    for _ in range(2):
        if end + HEADER_SIZE > window.end:
            window = source.window(position, end + HEADER_SIZE - position)
        if end + HEADER_SIZE > window.end:
            return window  # the file has no further header
        length = int.from_bytes(window.buf[end - window.start + 8 : end - window.start + LENGTH_END], "big")
        if not MIN_LENGTH <= length <= MAX_BATCH:
            return window
        end += length + LENGTH_END
    if end + HEADER_SIZE > window.end:
        window = source.window(position, end + HEADER_SIZE - position)
    return window


def _ahead_from(window: Window, size: int) -> int:
    """The last position for which a window of a file of that size surely has all that the rules look at."""
    return window.end - _NEAR if window.end < size else size


def _all_zero(source: Windowed, position: int) -> bool:
    """Whether all bytes from ``position`` on are zero. The holes of a sparse file are not read."""
    piece = 1 << 12  # small at first: where other bytes follow, they mostly follow at once
    while (position := source.data_from(position)) < source.size:
        window = source.window(position, piece)
        piece = _PIECE
        at, end = position - window.start, len(window.buf)
        if at >= end:
            return True
        for start in range(at, end, len(_ZEROS)):
            if window.buf[start : start + len(_ZEROS)] != _ZEROS[: end - start]:
                return False
        position = window.end
    return True
