"""Records into images: batch by batch, metadata transactions held back until they end (KIP-868).

What does not fit is never merged by guess: it is skipped and listed as a :class:`Problem`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from kshell.metadata.checkpoint import Checkpoint, PassedCheckpoint, take_over
from kshell.metadata.delta import Delta
from kshell.metadata.families.quorum import control
from kshell.metadata.families.topics import TOPIC, create, writable
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partitions import Report, Run
from kshell.metadata.records import ReplayError, Undecoded, decode_known, decode_record, decode_value
from kshell.metadata.values import Origin, Place, Provenance
from kshell.protocol.batches import Batch, RawRecord, iter_records, read_record
from kshell.protocol.framing import Framer, OddRecord, Span, TopicRun, iter_values
from kshell.protocol.primitives import DecodeError, Uuid

_BEGIN, _END, _ABORT = 23, 24, 25
_NEVER = 1 << 63
"""After every offset."""
MALFORMED, NEWER, SKIPPED = "malformed", "newer", "skipped"
MOST_PROBLEMS = 10_000
"""Problems of a kind that are listed: a file may be made of nothing else, and each takes more memory than its record.
"""
_ROOM, _RATIO = 64 << 20, 64
"""Bytes that compressed batches may become together: so many, and so many times what they are. Metadata is compressed
to a twentieth or so, by those who compress it; Kafka's controllers do not."""
_AT_ONCE = 1 << 16
"""Records of a batch that are framed before the first is replayed; Kafka's batches have some thousands at the most."""


class Problem(NamedTuple):
    """A record that is not in the image, and why. ``unknown``: only newer than kshell, which is no damage."""

    origin: Origin
    reason: str
    unknown: bool
    undecoded: Undecoded | None = None

    @property
    def kind(self) -> str:
        """Whether it cannot be decoded, is newer than kshell, or does not fit the image."""
        return NEWER if self.unknown else SKIPPED if self.undecoded is None else MALFORMED


class Problems(list[Problem]):
    """The first :data:`MOST_PROBLEMS` of each kind. ``unlisted``: kind -> the offsets of those that came after them."""

    def __init__(self, problems: Iterable[Problem] = (), unlisted: dict[str, array[int]] | None = None) -> None:
        super().__init__(problems)
        self.unlisted = unlisted or {}
        self._room: dict[str, int] = {}

    def append(self, problem: Problem) -> None:
        """Lists one more, or counts it."""
        kind = problem.kind
        room = self._room.get(kind, MOST_PROBLEMS)
        if room > 0:
            super().append(problem)
            self._room[kind] = room - 1
        else:
            self.unlisted.setdefault(kind, array("q")).append(problem.origin.offset)

    def unlisted_up_to(self, offset: int) -> dict[str, array[int]]:
        """Of those that are not listed the ones up to an offset."""
        return {kind: offsets[: bisect_right(offsets, offset)] for kind, offsets in self.unlisted.items()}


class Replayer:
    """Feeds batches to a delta; :meth:`image` gives what they add up to. ``until`` is the last offset to take."""

    def __init__(self, base: Image = EMPTY, *, until: int | None = None) -> None:
        self._delta = Delta(base)
        self._provenance = base.provenance
        self._until = until
        self._framer = Framer()
        self._stored = self._decompressed = 0
        """Bytes of compressed batches, and what they became."""
        self._held: list[tuple[RawRecord, Place]] | None = None
        self._before_transaction = base.provenance
        self._expected: deque[Checkpoint] = deque()
        self._due = _NEVER
        self.checkpoints: list[PassedCheckpoint] = []
        """The snapshots that were passed."""
        self.problems = Problems()
        """Grows after loading, too: a snapshot's partitions are decoded when they are looked at."""
        self._report = _reporter(self.problems)

    def image(self) -> Image:
        """The image so far; an open transaction is left out. Replaying may go on: the image stays as it is."""
        image = self._delta.apply(self._provenance if self._held is None else self._before_transaction)
        self._delta = Delta(image)
        return image

    @property
    def open_transaction(self) -> int | None:
        """The offset of the BeginTransaction whose end has not come, if any."""
        return self._held[0][0].offset if self._held else None

    # --- the log -------------------------------------------------------------------------------------------------

    def log_batch(self, batch: Batch, file: str, start: int = 0) -> None:
        """The records of a verified batch of the log, from offset ``start`` on. Raises DecodeError before the first."""
        place = Place(file, batch.position, batch.epoch, False)
        records: Iterable[RawRecord] = iter_records(batch)
        if batch.records <= _AT_ONCE:
            records = list(records)
        size = sum(len(raw.value or b"") for raw in records) if batch.codec or batch.records > _AT_ONCE else 0
        self._grow(batch, size)
        if batch.records > _AT_ONCE:  # framed again, for so many of them at once would fill the memory
            records = iter_records(batch)
        for raw in records:
            if raw.offset < start:
                continue
            if self._until is not None and raw.offset > self._until:
                return
            if raw.offset >= self._due:
                self.pass_due_checkpoints(raw.offset)
            if batch.is_control:
                self._control(raw, place)
            else:
                self._log_record(raw, place)
                self._provenance = Provenance(raw.offset, batch.epoch, raw.timestamp)

    def _grow(self, batch: Batch, size: int) -> None:
        """Counts what a compressed batch became, for the image keeps it. Raises DecodeError where it is too much."""
        if not batch.codec:
            return
        self._stored += batch.size
        self._decompressed += size
        if self._decompressed > _ROOM + _RATIO * self._stored:
            reason = f"the compressed batches up to here, {self._stored} bytes, become {self._decompressed} bytes"
            raise DecodeError(f"{reason}: more than {_RATIO} times as many", 0)

    def _log_record(self, raw: RawRecord, place: Place) -> None:
        value = raw.value or b""
        key = value[1] if len(value) > 2 and value[0] == 1 else -1
        if _BEGIN <= key <= _ABORT:
            self._marker(key, raw, place)
        elif self._held is not None:
            self._held.append((raw, place))
        else:
            self._replay(raw, place)

    def _marker(self, key: int, raw: RawRecord, place: Place) -> None:
        """A marker whose version is not known, or that is malformed, still marks; it is listed as well."""
        held = self._held
        origin = self._list_undecoded(raw, place)
        if (key == _BEGIN) == (held is not None):
            reason = "a transaction is already open" if held else "no transaction is open"
            self.problems.append(Problem(origin, reason, False))
            return
        if key == _BEGIN:
            self._before_transaction = self._provenance
            self._held = [(raw, place)]
            return
        self._held = None
        if key == _END:
            for waiting, where in (held or ())[1:]:
                self._replay(waiting, where)

    def _list_undecoded(self, raw: RawRecord, place: Place) -> Origin:
        """A metadata record's origin; if it cannot be decoded, it is listed."""
        decoded = decode_record(raw, control=False)
        origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
        if decoded.undecoded is not None:
            self._undecoded(origin, decoded.undecoded)
        return origin

    def _undecoded(self, origin: Origin, undecoded: Undecoded) -> None:
        self.problems.append(Problem(origin, undecoded.reason, not undecoded.malformed, undecoded))

    def _replay(self, raw: RawRecord, place: Place) -> None:
        offset, timestamp, key, value = raw
        known = decode_known(value) if key is None and value is not None else None
        if known is None:
            self._list_undecoded(raw, place)
            return
        kind, version, data = known
        origin = Origin(offset, timestamp, kind.name, version, place)
        try:
            kind.replay(self._delta, data, origin)
        except ReplayError as error:
            self.problems.append(Problem(origin, str(error), False))

    def _control(self, raw: RawRecord, place: Place) -> None:
        decoded = decode_record(raw, control=True)
        origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
        if decoded.undecoded is not None:
            self._undecoded(origin, decoded.undecoded)
        elif decoded.data is not None:
            control(self._delta, decoded.name, decoded.data, origin)

    # --- snapshots inside the log --------------------------------------------------------------------------------

    def expect(self, checkpoints: Iterable[Checkpoint]) -> None:
        """The snapshots that the replay comes by, in the order of their ends."""
        self._expected = deque(checkpoints)
        self._set_due()

    def pass_due_checkpoints(self, offset: int) -> None:
        """Pass the snapshots that end at an offset or before it, once every record before that offset is replayed."""
        while self._due <= offset:
            checkpoint = self._expected.popleft()
            self._set_due()
            snapshot = checkpoint.load()
            if snapshot is not None:
                self.pass_checkpoint(checkpoint, snapshot)

    def pass_checkpoint(self, checkpoint: Checkpoint, snapshot: Image) -> None:
        """Go on from a snapshot: where it and the log disagree, the snapshot holds.

        No snapshot is written inside a metadata transaction, so one that is open belongs to a log of another history.
        """
        self._held = None
        self._provenance = snapshot.provenance
        differences = take_over(self._delta, snapshot)
        self.checkpoints.append(PassedCheckpoint(checkpoint.file, snapshot.provenance, differences))

    def _set_due(self) -> None:
        self._due = self._expected[0].end_offset if self._expected else _NEVER

    # --- a snapshot ----------------------------------------------------------------------------------------------

    def snapshot_batch(self, batch: Batch, file: str) -> None:
        """The records of a verified batch of a snapshot; partitions stay bytes. Raises DecodeError."""
        place = Place(file, batch.position, batch.epoch, True)
        if batch.is_control:
            for raw in iter_records(batch):
                self._control(raw, place)
            return
        buf, start, end = batch.region()
        self._grow(batch, end - start)
        for found in self._framer.checked(buf, start, end, batch.last_offset_delta):
            if isinstance(found, Span):
                value = bytes(buf[found.value : found.value_end])
                offset, timestamp = batch.base_offset + found.delta, batch.time(found.time_delta)
                self._replay(RawRecord(offset, timestamp, None, value), place)
                continue
            if isinstance(found, OddRecord):
                self._replay(read_record(buf, found.start, batch)[0], place)
                continue
            run = Run(buf, found.start, found.end, batch.base_offset, batch.base_timestamp, place, self._report)
            if isinstance(found, TopicRun):
                origin = Origin(batch.base_offset + found.delta, batch.base_timestamp, TOPIC.name, 0, place)
                name = found.name.decode("utf-8", "surrogateescape")
                try:
                    create(self._delta, name, Uuid(found.topic_id), origin)
                except ReplayError as error:
                    self.problems.append(Problem(origin, str(error), False))
            self._run(Uuid(found.topic_id), run)

    def _run(self, topic_id: Uuid, run: Run) -> None:
        try:
            writable(self._delta, topic_id).add_run(run)
        except ReplayError as error:
            for delta, value in iter_values(run.buf, run.start, run.end):
                decoded = decode_value(value)
                origin = Origin(run.base_offset + delta, run.timestamp, decoded.name, decoded.version, run.place)
                self.problems.append(Problem(origin, str(error), False))

    def snapshot_end(self, end_offset: int, epoch: int, timestamp: int) -> None:
        """The snapshot is whole: the image stands at the offset before its end."""
        self._provenance = Provenance(end_offset - 1, epoch, timestamp)


def _reporter(problems: Problems) -> Report:
    """Lists what a snapshot's topics turn out to hold, each record once, up to a bound. It outlives the replayer."""
    seen: set[tuple[int, str]] = set()

    def report(origin: Origin, reason: str, undecoded: Undecoded | None) -> None:
        if len(seen) <= 2 * MOST_PROBLEMS and (origin.offset, reason) not in seen:
            seen.add((origin.offset, reason))
            problems.append(Problem(origin, reason, undecoded is not None and not undecoded.malformed, undecoded))

    return report
