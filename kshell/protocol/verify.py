"""The rules that make a file of batches trustworthy; they run on every read.

A batch's CRC leaves its base offset, length, epoch and magic uncovered, so a batch is also held against the one before
it: offsets are gapless, the epoch never falls, and each rise is announced by a LeaderChange record or by the
``leader-epoch-checkpoint`` file. A log has no header or footer of a snapshot: a file with one is a snapshot under a
segment's name, and its offsets count within it alone. Damage is a :class:`CorruptDataError` at the batch's first byte.
A file that simply ends inside its last batch is *torn*: normal while a server writes, and told apart from damage by
what follows.
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
    """A file that ends inside a batch: the batch's first byte, and how many bytes of it are there."""

    position: int
    bytes_left: int
    reason: str

    def note(self, path: str) -> str:
        """Say where the file ends so; whether that is usual, who calls knows."""
        return f"{path}: byte {self.position}: torn tail ({self.reason})"


USUAL = "; normal while a server writes"
"""What is added to the reason of a torn end where nothing speaks against it."""
SNAPSHOT_IN_LOG = "the batch is a snapshot's header or footer, which no log has: the file is a snapshot, not a segment"


def is_of_snapshot(batch: Batch) -> bool:
    """Whether a (verified) batch is what only a snapshot begins or ends with."""
    return batch.is_control and (holds(batch, SNAPSHOT_HEADER) or holds(batch, SNAPSHOT_FOOTER))


_TOOLS_EPOCH = 0
_NO_LINE = LAST_OFFSET + 1


class FixedEpoch:
    """A snapshot's batches all carry one epoch, the one in the file's name (``None``: the name holds none).

    Kafka's own ``BatchFileWriter`` writes epoch 0 whatever the file is called, so a file whose batches all have epoch 0
    is accepted under any name; ``epoch`` then differs from the name's.
    """

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self._first = True

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """Why the batch cannot have its epoch, with the batch to blame; else ``None``."""
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
    """The epoch of the batch that follows in the file, if its header is there."""
    following = _next(batch)
    return None if following is None else following.epoch


def _next(batch: Batch) -> Batch | None:
    """The header of the batch that follows, if it is there."""
    if batch.after + HEADER_SIZE > len(batch.buf):
        return None
    return read_header(batch.buf, batch.after, batch.start)


def _stands_alone(batch: Batch) -> bool:
    """Whether the two batches that follow agree on another epoch."""
    following = _next(batch)
    if following is None or following.epoch == batch.epoch or following.size < HEADER_SIZE:
        return False
    return _next_epoch(following) == following.epoch


class LeaderEpochs:
    """The epochs along a log; ``history``: the (epoch, start offset) lines of ``leader-epoch-checkpoint``, in order."""

    def __init__(self, history: list[tuple[int, int]] | None = None) -> None:
        self._starts = [start for _, start in history or ()]
        self._epochs = [epoch for epoch, _ in history or ()]
        self._last: Batch | None = None
        self._last_is_proven = False
        self._last_file: str | None = None
        self._line_end = 0
        """The offset at which the line of ``history`` that the last batch was compared with gives way to the next."""
        self._announced: int | None = None
        """The epoch of the last LeaderChange. Kafka 3.3 can write a record of a new epoch before it; never two."""
        self._first_is_proven = False

    def prove_first(self) -> None:
        """The next batch was compared with the one before it already; whoever goes on starts with it again."""
        self._first_is_proven = True

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """Why the batch cannot have its epoch, with the batch to blame (this one or the one before); else ``None``.

        Without ``file``, which holds the batch at its position, only the batch itself is blamed.
        """
        last = self._last
        if (
            last is not None
            and batch.epoch == last.epoch
            and last.base_offset <= batch.base_offset < self._line_end
            and not batch.attributes & CONTROL_BIT
        ):  # as nearly all are: what allowed the last batch its epoch allows this one the same
            self._last, self._last_is_proven, self._first_is_proven = batch, True, False
            self._last_file = file
            return None
        return self._examine(batch, file)

    def _examine(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """As :meth:`fault`, for a batch of any kind."""
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
        """(what is wrong, or ``None``; whether a second witness confirms the epoch)."""
        at = bisect_right(self._starts, batch.base_offset) - 1
        stated_epoch = self._epochs[at] if at >= 0 else None
        last = self._last.epoch if self._last is not None else None
        if stated_epoch is not None and batch.epoch != stated_epoch:
            # A copy's checkpoint can be older than its log: past its last line, a LeaderChange may raise the epoch.
            stale = at == len(self._starts) - 1 and batch.base_offset > self._starts[at] and batch.epoch > stated_epoch
            if not (stale and (leader_change or batch.epoch == last)):
                return f"the batch has epoch {batch.epoch}, leader-epoch-checkpoint says {stated_epoch}", False
        if last is None:
            return None, stated_epoch is not None or self._first_is_proven
        if batch.epoch < last:
            return f"the epoch falls from {last} to {batch.epoch}", False
        # The leader of missing or damaged batches is not known.
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
        """Two neighbours disagree and only one is wrong: when nothing proves the former, the next batch decides."""
        last = self._last
        if last is None or self._last_is_proven or file is None or file != self._last_file:
            return batch, reason
        if _next_epoch(batch) != batch.epoch:
            return batch, reason
        self._last = None  # it is no witness against this batch when the walk goes on from here
        return last, f"the batch has epoch {last.epoch}, the batches after it have {batch.epoch}"


class RisingEpochs:
    """The epochs of what a quorum's leader hands out: it has verified its own log, and they never fall."""

    def __init__(self) -> None:
        self._last: int | None = None

    def fault(self, batch: Batch, file: str | None = None) -> tuple[Batch, str] | None:
        """That the epoch falls, or that the batch is none of a log; else ``None``."""
        if is_of_snapshot(batch):
            return batch, SNAPSHOT_IN_LOG
        last, self._last = self._last, batch.epoch
        return (
            (batch, f"the epoch falls from {last} to {batch.epoch}")
            if last is not None and batch.epoch < last
            else None
        )


def _announced_next(batch: Batch) -> bool:
    """Whether the batch that follows is the LeaderChange of the same epoch."""
    following = _next(batch)
    if following is None or following.epoch != batch.epoch or not following.is_control:
        return False
    fits = following.size - LENGTH_END >= MIN_LENGTH and following.after <= len(batch.buf)
    return fits and following.crc_is_good() and holds(following, LEADER_CHANGE)


class Chain:
    """Walks the batches of one file after another, holding each against the rules. ``torn`` is set at a torn end."""

    def __init__(self, epochs: LeaderEpochs | FixedEpoch | RisingEpochs, next_offset: int | None) -> None:
        self._epochs = epochs
        self.next_offset = next_offset
        self.torn: Torn | None = None

    def walk(self, data: Buffer | Windowed, file: str, start: int = 0) -> Iterator[Batch]:
        """The batches from byte ``start`` on. Raises CorruptDataError at the first that breaks a rule."""
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
                window = looking_ahead(source, window, position)
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
            if end + HEADER_SIZE > len(buf) and window.end < size:  # it is large: looked at again, as the next one is
                window = looking_ahead(source, window, position)
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
                reason = f"the batch has offsets {offset} to {batch.last_offset}, 0 to {LAST_OFFSET} can be"
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
        return f"the batch starts at offset {batch.base_offset}, {self.next_offset} was to come"

    def _end_or_damage(self, source: Windowed, batch: Batch, file: str, remaining: int) -> None:
        """Classify the bytes from ``batch`` on, which are no complete batch: the torn end of the file, or damage."""
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
            raise CorruptDataError(file, position, f"the batch claims {batch.size} bytes, {MAX_BATCH} are the most")

    def _torn_or_damaged(self, source: Windowed, batch: Batch, file: str, remaining: int) -> None:
        """A batch longer than the file: torn, unless its own CRC or a whole batch further on shows a wrong length."""
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
            raise CorruptDataError(file, batch.position, f"{claim}, and {self.next_offset} was to come")
        self.torn = Torn(batch.position, remaining, claim)


_SEARCHED = 64 << 20
"""Bytes that :func:`find_batch` checks CRCs over. Kafka's batches have a few MiB at most, and by chance next to nothing
looks like a header; a file made of headers that each claim all of the rest would cost its size squared. Past the limit
nothing is said to follow: the damage itself was seen already."""


def find_batch(data: Buffer | Windowed, start: int) -> Batch | None:
    """The first whole batch with a good CRC at or after byte ``start``: used only once damage was found."""
    source = windowed(data)
    budget = _SEARCHED
    place = start + _MAGIC_PLACE
    """From where on the magic byte of a header is looked for: a sparse file leaves out none."""
    while (place := source.data_from(place)) < source.size:
        window = source.window(place - _MAGIC_PLACE, _PIECE)
        for match in _MAGIC_BYTE.finditer(window.buf, place - window.start):
            at = match.start() - _MAGIC_PLACE
            length = int.from_bytes(window.buf[at + _LENGTH_START : at + LENGTH_END], "big")
            if not MIN_LENGTH <= length <= MAX_BATCH:  # as of nearly every byte that happens to be a magic
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
"""Bytes before the end of a window from which on it may not hold what the rules of epochs look at after a batch."""
_MAGIC_BYTE = re.compile(re.escape(bytes([MAGIC])))
_PIECE = 4 << 20
"""Bytes that are searched, or compared with zeros, at a time."""
_ZEROS = bytes(1 << 16)


def _header(source: Windowed, window: Window, position: int) -> Batch | None:
    """The header at a byte of the file, which may go on behind the window."""
    if position + HEADER_SIZE > source.size:
        return None
    if position + HEADER_SIZE > window.end:
        window = source.window(position, HEADER_SIZE)
    return read_header(window.buf, position - window.start, window.start)


def _is_plausible(batch: Batch, size: int) -> bool:
    """Whether a header may be one, in a file of that size."""
    fits = batch.size - LENGTH_END >= MIN_LENGTH and batch.size <= min(size - batch.position, MAX_BATCH)
    counts = 0 < batch.records == batch.last_offset_delta + 1
    return fits and counts and batch.base_offset >= 0 and batch.last_offset <= LAST_OFFSET


def _complete(source: Windowed, batch: Batch) -> Batch:
    """The batch with all of its bytes."""
    if batch.after <= len(batch.buf):
        return batch
    window = source.window(batch.position, batch.size)
    return read_header(window.buf, batch.position - window.start, window.start)


def looking_ahead(source: Windowed, window: Window, position: int) -> Window:
    """A window with the batch that begins there, the one after it, and the header behind that one, as far as they are
    there: the rules of epochs look so far.
    """
    end = position
    for _ in range(2):
        if end + HEADER_SIZE > window.end:
            window = source.window(position, end + HEADER_SIZE - position)
        if end + HEADER_SIZE > window.end:
            return window  # the file ends there
        length = int.from_bytes(window.buf[end - window.start + 8 : end - window.start + LENGTH_END], "big")
        if not MIN_LENGTH <= length <= MAX_BATCH:
            return window
        end += length + LENGTH_END
    if end + HEADER_SIZE > window.end:
        window = source.window(position, end + HEADER_SIZE - position)
    return window


def _ahead_from(window: Window, size: int) -> int:
    """The position after which a window of a file of that size may not hold all that the rules look at."""
    return window.end - _NEAR if window.end < size else size


def _all_zero(source: Windowed, position: int) -> bool:
    """Whether nothing but zeros follows. What a sparse file leaves out is not read."""
    piece = 1 << 12  # what is no zeros shows it at once
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
