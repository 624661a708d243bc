"""Replay of verified batches, of a snapshot or of the log, into images.

Records of a metadata transaction are replayed when it ends, or dropped when it is aborted (KIP-868). A record that
cannot be decoded or does not fit the image is never applied by guess: it is skipped and listed as a :class:`Problem`.
Most records of the log are not decoded when they are replayed, but *filed*; see :class:`Replayer`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import repeat
from typing import NamedTuple

from kshell.metadata.checkpoint import LogCheckpoint, PassedCheckpoint, take_over
from kshell.metadata.deferred import (
    AddressesByTopic,
    LatestRecords,
    NewTopics,
    RecordFiler,
    Registrations,
)
from kshell.metadata.delta import Delta
from kshell.metadata.families.quorum import control
from kshell.metadata.families.topics import NAMES, REMOVE_TOPIC, TOPIC, TOPICS, create, topics_to_clear, writable
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partition_changes import (
    CLEAR_ELR,
    NUMBER,
    PARTITION,
    PARTITION_CHANGE,
    PartitionChanges,
    check_recovery,
    essence,
    fits_every_partition,
)
from kshell.metadata.partitions import Partition, Report, Topic, UndecodedRun, from_record, merge, new_undecoded_run
from kshell.metadata.record_log import RecordLog
from kshell.metadata.recorded_topics import RecordedTopic, TopicAt, TopicRecords
from kshell.metadata.records import HEAD_SIZE, ReplayError, Undecoded, decode_known, decode_record, decode_value
from kshell.metadata.values import BatchPosition, Origin, Provenance, new_origin
from kshell.protocol.batches import (
    Batch,
    RawRecord,
    iter_records,
    pack,
    plain_values,
    read_record,
)
from kshell.protocol.decoder import Message
from kshell.protocol.framing import Framer, PartitionRun, RecordBounds, TopicRun, iter_values
from kshell.protocol.primitives import Buffer, DecodeError, Uuid

_BEGIN, _END, _ABORT = 23, 24, 25
_NO_OP = bytes((1, 20, 0, 0))
"""The value of a NoOpRecord, which an idle active controller writes twice a second."""
_OF_BROKERS = (0, 1, 7, 8, 17)
"""Api keys of the records that change a broker's registration."""
_OF_TOPICS = (TOPIC.api_key, PARTITION, PARTITION_CHANGE, REMOVE_TOPIC.api_key, CLEAR_ELR)
"""Api keys of the records whose replay looks up a topic or a topic's name: topics that wait must be there by then."""
_NEVER = 1 << 63
"""An offset after every other one."""
MALFORMED, NEWER, SKIPPED = "malformed", "newer", "skipped"
MOST_PROBLEMS = 10_000
"""The most problems of one kind that are listed. A file may have nothing else, and each one takes more memory than its
record."""
_ROOM, _RATIO = 64 << 20, 64
"""All compressed batches together may decompress to ``_ROOM`` bytes plus ``_RATIO`` times their compressed size.
Metadata shrinks to about a twentieth where a tool compresses it; Kafka's controllers do not compress it."""
_RETAINED = 64 << 20
"""Bytes of the log that a replay of the newest state may retain in any case: logs may be large, and observers run for
weeks."""
_RETAINED_PER_PARTITION, _MOST_RETAINED = 4 << 10, 1 << 30
"""Bytes that it may retain per partition with filed records, and at most. To decode a partition takes about as long as
to file ten records, and a log of many partitions would otherwise decode most of them again every 64 MiB."""
_MOST_ESSENCES = 1 << 16
"""The most essences of partition records (:func:`.essence`) that are remembered as sound: they fit any partition."""


class Problem(NamedTuple):
    """A record that was not applied to the image, and why. ``unknown``: it is newer than kshell, which is no damage."""

    origin: Origin
    reason: str
    unknown: bool
    undecoded: Undecoded | None = None

    @property
    def kind(self) -> str:
        """:data:`MALFORMED`, :data:`NEWER` than kshell, or :data:`SKIPPED` because it does not fit the image."""
        return NEWER if self.unknown else SKIPPED if self.undecoded is None else MALFORMED


class Problems(list[Problem]):
    """The first :data:`MOST_PROBLEMS` problems of each kind. ``unlisted``: kind -> the offsets of all further ones."""

    def __init__(self, problems: Iterable[Problem] = (), unlisted: dict[str, array[int]] | None = None) -> None:
        super().__init__(problems)
        self.unlisted = unlisted or {}
        self._room: dict[str, int] = {}

    def append(self, problem: Problem) -> None:
        """List a problem or, if its kind has too many already, note only its offset."""
        kind = problem.kind
        room = self._room.get(kind, MOST_PROBLEMS)
        if room > 0:
            super().append(problem)
            self._room[kind] = room - 1
        else:
            self.unlisted.setdefault(kind, array("q")).append(problem.origin.offset)

    def unlisted_between(self, start: int, until: int) -> dict[str, array[int]]:
        """Return kind -> offsets of unlisted problems, for offsets from ``start`` to ``until``, both inclusive."""
        return {
            kind: offsets[bisect_left(offsets, start) : bisect_right(offsets, until)]
            for kind, offsets in self.unlisted.items()
        }


class _Waiting(NamedTuple):
    """A record that waits for the end of its metadata transaction; ``address`` is that of its value in the log."""

    raw: RawRecord
    place: BatchPosition
    address: int


class Replayer:
    """Replays batches; :meth:`image` returns the image that they result in.

    Give it the batches of a snapshot (:meth:`snapshot_batch`, then :meth:`snapshot_end`), or those of the log in order
    (:meth:`log_batch`), with the image before them as ``base``.

    Most records of the log are about partitions. They are not decoded: once it is known that a record fits, its address
    is filed with its topic (:class:`RecordedTopic`). Records that a later record of the same key overwrites wait,
    undecoded, until the next image (:class:`LatestRecords`); new topics wait, too (:class:`NewTopics`).

    Args:
        base: the image before the first batch.
        until: the last offset to replay; ``None``: all.
        start: the offset of the first record of the log to replay.
        framer: a framer that already knows the shapes of the records that will come.
    """

    needs_every_state = False
    """Whether records may not wait for the next image: for a subclass that notes what each record changed."""

    def __init__(
        self, base: Image = EMPTY, *, until: int | None = None, start: int = 0, framer: Framer | None = None
    ) -> None:
        self._delta = Delta(base)
        self._provenance = base.provenance
        self._until = until
        self._framer = framer or Framer()
        self._stored = self._decompressed = 0
        """Bytes of all compressed batches, and bytes that they decompressed to."""
        self._transaction: list[_Waiting] | None = None
        self._before_transaction = base.provenance
        self._expected: deque[LogCheckpoint] = deque()
        self._due = _NEVER
        self._sound: set[bytes] = set()
        """Essences of partition records that fit any partition which exists."""
        self._latest = LatestRecords()
        self._registrations = Registrations()
        self._filed: AddressesByTopic = {}
        self._filers: dict[bytes, RecordFiler] = {}
        """The first bytes of a value -> the filer that may take records which begin with them, without decoding."""
        if not self.needs_every_state:
            self._filers |= self._latest.filers
            self._filers |= {head: filer.file for head, filer in self._registrations.filers.items()}
        self._begin_log(start)
        self.checkpoints: list[PassedCheckpoint] = []
        """The snapshots inside the log that the replay has passed and compared."""
        self.problems = Problems()
        """Records that were not applied. It may grow after loading: partitions of a snapshot are decoded on demand."""
        self._report = _reporter(self.problems)

    def _begin_log(self, start: int) -> None:
        """Let all that holds bytes of the log hold those of a new one, which begins at the offset ``start``."""
        self.log = RecordLog(start)
        """The records of the log that were replayed so far, from offset ``start`` on."""
        self._release_above = _RETAINED
        """Bytes up to which :meth:`release` need not look at the topics."""
        self.changes = PartitionChanges(self.log)
        self._topics = NewTopics(self.log, self.changes, self._filed, self._latest)
        if not self.needs_every_state:
            self._filers |= self._topics.filers()

    def image(self) -> Image:
        """Return the image so far, without the records of an open transaction. Further replay does not change it."""
        self._catch_up()
        grown = [topic for topic in self._delta.peek(TOPICS).values() if type(topic) is RecordedTopic]
        if grown:
            self._filed.clear()
            limit = self.log.limit(self.log.end - 1)
            table = self._delta.table(TOPICS)
            for topic in grown:
                table[topic.id] = topic.below(limit)
        image = self._delta.apply(self._provenance if self._transaction is None else self._before_transaction)
        self._delta = Delta(image)
        return image

    def release(self, most: int | None = None) -> None:
        """Decode all filed records and drop the log's bytes, if more than ``most`` bytes are retained.

        ``None`` means as many as are worth retaining (:data:`_RETAINED_PER_PARTITION`). The past can no longer be asked
        for afterwards. Inside a metadata transaction nothing is done.
        """
        if self.log.retained <= (self._release_above if most is None else most) or self._transaction is not None:
            return
        self._catch_up()
        topics = [
            topic.recorded if isinstance(topic, TopicAt) else topic for topic in self._delta.peek(TOPICS).values()
        ]
        filed = [topic for topic in topics if isinstance(topic, RecordedTopic) and topic.records.log is self.log]
        if most is None:
            partitions = sum(len(topic.records.addresses) for topic in filed)
            self._release_above = max(_RETAINED, min(partitions * _RETAINED_PER_PARTITION, _MOST_RETAINED))
            if self.log.retained <= self._release_above:
                return
        for topic in filed:
            self._delta.table(TOPICS)[topic.id] = topic.decoded()
        self._filed.clear()
        self._begin_log(self.log.end)
        # A delta knows the image that it was made from, whose topics hold the bytes.
        self._delta = Delta(self._delta.apply(self._provenance))

    @property
    def open_transaction(self) -> int | None:
        """The offset of the BeginTransactionRecord of the open metadata transaction, if there is one."""
        return self._transaction[0].raw.offset if self._transaction else None

    # --- the log -------------------------------------------------------------------------------------------------

    def log_batch(self, batch: Batch, file: str, start: int = 0) -> None:
        """Replay the next verified batch of the log, which is in segment ``file``, from offset ``start`` on.

        Raises:
            DecodeError: the batch cannot be read, or decompresses to too much. None of its records was replayed.
        """
        self.log.add_batch(batch, file, start)
        place = BatchPosition(file, batch.position, batch.epoch, False)
        region, begin, end = batch.region()
        self._grow(batch, end - begin)
        values = None if batch.is_control else plain_values(region, begin, end, batch.records)
        last = batch.last_offset
        is_whole = batch.base_offset >= start and last < self._due and (self._until is None or last <= self._until)
        if values is not None and is_whole:
            first = self.log.retain(region, begin, end)
            self.log.add_records(batch.records, batch.plain_timestamp)
            self._plain(batch, place, region, first, values)
            if self._latest.overflows(batch.records):
                self._replay_latest()
            return
        if values is None and not batch.is_control:
            # An address leads back to a record only in the plain form, so the records are rewritten in it. All of them
            # are read before the first one is replayed.
            region, begin = pack((None, raw.value or b"") for raw in iter_records(batch)), 0
            end = len(region)
            values = plain_values(region, begin, end, batch.records)
        elif batch.is_control:
            deque(iter_records(batch), maxlen=0)
        first = 0 if batch.is_control else self.log.retain(region, begin, end)
        addresses = repeat(first) if values is None else (first + at for at in values[::2])
        for raw, address in zip(iter_records(batch), addresses, strict=False):
            if raw.offset < start:
                continue
            if self._until is not None and raw.offset > self._until:
                return
            if raw.offset >= self._due:
                self.pass_due_checkpoints(raw.offset)
            self.log.add_records(1, raw.timestamp)
            if batch.is_control:
                self._control(raw, place)
            else:
                self._log_record(raw, place, address)
                self._provenance = Provenance(raw.offset, batch.epoch, raw.timestamp)
            self._after(raw.offset)

    def _plain(self, batch: Batch, place: BatchPosition, region: Buffer, first: int, values: array[int]) -> None:
        """Replay a whole batch in the plain form, whose ``values`` :func:`.plain_values` found: the fast path.
        ``first`` is the address of the region's first byte.
        """
        filed, sound, is_waiting = self._filed, self._sound, self._transaction is not None
        filers = self._filers
        bounds = iter(values)
        base_offset, timestamp = batch.base_offset, batch.plain_timestamp
        offset, replayed = base_offset, 0
        # One iteration per record, so the slices are written out: at + 3 is NUMBER, at + 7 TOPIC_ID, at + 23 REST.
        for at, end in zip(bounds, bounds, strict=True):
            if not is_waiting:
                head = region[at : at + HEAD_SIZE]
                filer = filers.get(head)
                if filer is not None:
                    if filer(region, at + HEAD_SIZE, end, first + at, self._delta):
                        offset += 1
                        continue
                elif head + region[at + 23 : end] in sound:
                    of_topic = filed.get(region[at + 7 : at + 23])
                    addresses = None if of_topic is None else of_topic.get(region[at + 3 : at + 7])
                    if addresses is not None:
                        addresses.append(first + at)
                        offset += 1
                        continue
                    if of_topic is not None and region[at + 1] == PARTITION:
                        of_topic[region[at + 3 : at + 7]] = array("q", (first + at,))
                        offset += 1
                        continue
                    if self._file_sound(region, at, first + at):
                        offset += 1
                        continue
                elif region[at:end] == _NO_OP:
                    offset += 1
                    replayed += 1
                    continue
            if offset > base_offset:
                self._provenance = Provenance(offset - 1, place.epoch, timestamp)
            self._log_record(RawRecord(offset, timestamp, None, bytes(region[at:end])), place, first + at)
            self._after(offset)
            is_waiting = self._transaction is not None
            replayed += 1
            offset += 1
        if offset - base_offset > replayed:
            self.log.keep_last_chunk()
        self._provenance = Provenance(offset - 1, place.epoch, timestamp)

    def _file_sound(self, region: Buffer, at: int, address: int) -> bool:
        """File the partition record at position ``at``, of a sound essence, if it fits; return whether it was filed."""
        topic_id = Uuid(region[at + 7 : at + 23])
        topic = self._delta.peek(TOPICS).get(topic_id)
        if not isinstance(topic, RecordedTopic | TopicAt) or topic.records.log is not self.log:
            return False
        records, number = self._recorded(topic_id).records, region[at + 3 : at + 7]
        if region[at + 1] != PARTITION and number not in records.addresses:
            return False
        records.file(number, address)
        self._filed[topic_id] = records.addresses
        return True

    def _catch_up(self) -> None:
        """Replay all records that wait: the latest record of each key, new topics, and registrations of brokers."""
        self._replay_latest()
        self._topics.apply(self._delta)
        self._registrations.apply(self._delta, self.log)

    def _replay_latest(self, family: str | None = None) -> None:
        """Replay the latest records that wait, of one family or of all. Registrations of brokers go on waiting."""
        for address in self._latest.take(family):
            decoded = decode_known(self.log.value(address))
            if decoded is None:
                raise AssertionError("a record that was filed cannot be decoded")
            kind, _, data = decoded
            kind.replay(self._delta, data, self.log.origin(address))

    def _after(self, offset: int) -> None:
        """Hook for subclasses: called after each record, except those that were only filed."""

    def _grow(self, batch: Batch, size: int) -> None:
        """Count a batch's decompressed size in bytes. Raises DecodeError if all batches decompress to too much."""
        if not batch.codec:
            return
        self._stored += batch.size
        self._decompressed += size
        if self._decompressed > _ROOM + _RATIO * self._stored:
            reason = f"the compressed batches up to here, {self._stored} bytes, become {self._decompressed} bytes"
            raise DecodeError(f"{reason}: more than {_RATIO} times as many", 0)

    def _log_record(self, raw: RawRecord, place: BatchPosition, address: int) -> None:
        """Replay a metadata record of the log, or let it wait if a metadata transaction is open."""
        value = raw.value or b""
        key = value[1] if len(value) > 2 and value[0] == 1 else -1
        if _BEGIN <= key <= _ABORT:
            self._marker(key, raw, place)
        elif self._transaction is not None:
            self._transaction.append(_Waiting(raw, place, address))
            self.log.keep_last_chunk()
        else:
            self._replay(raw, place, address)

    def _marker(self, key: int, raw: RawRecord, place: BatchPosition) -> None:
        """Begin, end or abort a metadata transaction, even if the marker is malformed or of an unknown version."""
        transaction = self._transaction
        origin = self._list_undecoded(raw, place)
        if (key == _BEGIN) == (transaction is not None):
            reason = "a transaction is already open" if transaction else "no transaction is open"
            self.problems.append(Problem(origin, reason, False))
            return
        if key == _BEGIN:
            self._before_transaction = self._provenance
            self._transaction = [_Waiting(raw, place, -1)]
            self.log.begin_transaction(raw.offset)
            return
        self._transaction = None
        self.log.end_transaction(raw.offset)
        if key == _END:
            for waiting in (transaction or ())[1:]:
                self._replay(*waiting)

    def _list_undecoded(self, raw: RawRecord, place: BatchPosition) -> Origin:
        """Return a metadata record's origin. If the record cannot be decoded, list it as a problem."""
        decoded = decode_record(raw, control=False)
        origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
        if decoded.undecoded is not None:
            self._undecoded(origin, decoded.undecoded)
        return origin

    def _undecoded(self, origin: Origin, undecoded: Undecoded) -> None:
        self.problems.append(Problem(origin, undecoded.reason, not undecoded.malformed, undecoded))

    def _replay(self, raw: RawRecord, place: BatchPosition, address: int | None) -> None:
        """Decode and replay a record: of the log if it has an address, else of a snapshot."""
        offset, timestamp, key, value = raw
        decoded = None
        if key is None and value is not None:
            if value == _NO_OP:
                return
            decoded = decode_known(value)
        if decoded is None or value is None:
            self._list_undecoded(raw, place)
            return
        kind, version, data = decoded
        origin = new_origin((offset, timestamp, kind.name, version, place))
        if kind.latest is not None:
            if address is not None:  # records of a snapshot come before those of the log: none waits yet
                self._replay_latest(kind.latest.family)
        elif kind.api_key in _OF_BROKERS:
            self._registrations.apply(self._delta, self.log)
        elif kind.api_key in _OF_TOPICS:
            self._topics.apply(self._delta)
        try:
            if address is None:
                kind.replay(self._delta, data, origin)
            elif kind.api_key == PARTITION:
                self._file_partition(value, data, address)
            elif kind.api_key == PARTITION_CHANGE:
                self._file_change(value, data, address)
            elif kind.api_key == CLEAR_ELR:
                self._file_clear(data, address)
            else:
                if kind is REMOVE_TOPIC and self._topics.remove(data["topicId"], self._delta):
                    return
                if kind is TOPIC:
                    self._filed.pop(data["topicId"], None)
                kind.replay(self._delta, data, origin)
                if kind is TOPIC:
                    self._recorded(data["topicId"])
                elif kind.api_key in _OF_BROKERS:
                    self._registrations.learn(value, data, self._delta)
        except ReplayError as error:
            self.problems.append(Problem(origin, str(error), False))

    def _control(self, raw: RawRecord, place: BatchPosition) -> None:
        """Replay a control record, or list it as a problem if it cannot be decoded."""
        decoded = decode_record(raw, control=True)
        origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
        if decoded.undecoded is not None:
            self._undecoded(origin, decoded.undecoded)
        elif decoded.data is not None:
            control(self._delta, decoded.name, decoded.data, origin)

    # --- records of partitions -----------------------------------------------------------------------------------

    def _file_partition(self, value: bytes, data: Message, address: int) -> None:
        """Check and file a PartitionRecord. Raises ReplayError if it does not fit."""
        from_record(data)  # raises ReplayError for what Kafka refuses
        self._recorded(data["topicId"]).records.file(value[NUMBER], address)
        self.log.keep_last_chunk()
        self._remember_sound(value)

    def _file_change(self, value: bytes, data: Message, address: int) -> None:
        """Check and file a PartitionChangeRecord. Raises ReplayError if it does not fit."""
        topic, number = self._topic(data["topicId"]), value[NUMBER]
        is_filed = isinstance(topic, RecordedTopic) and number in topic.records.addresses
        fits = fits_every_partition(data)
        if is_filed and fits:
            check_recovery(data)
        else:
            entry = topic.partition(data["partitionId"])
            if entry is None or not isinstance(entry.value, Partition):
                raise ReplayError(f"topic {topic.name} has no partition {data['partitionId']}")
            merge(entry.value, data)  # raises ReplayError for what does not fit it
        self._recorded(data["topicId"]).records.file(number, address)
        self.log.keep_last_chunk()
        if fits:
            self._remember_sound(value)

    def _file_clear(self, data: Message, address: int) -> None:
        """File a ClearElrRecord with each partition of its topic, or of all topics, that has an ELR to clear."""
        for topic_id in topics_to_clear(self._delta, data):
            for partition_id, value in self._topic(topic_id).scan():
                if isinstance(value, Partition) and (value.elr or value.last_known_elr):
                    number = partition_id.to_bytes(4, "big", signed=True)
                    self._recorded(topic_id).records.file(number, address)
                    self.log.keep_last_chunk()

    def _topic(self, topic_id: Uuid) -> Topic:
        topic: Topic | None = self._delta.peek(TOPICS).get(topic_id)
        if topic is None:
            raise ReplayError(f"there is no topic with id {topic_id}")
        return topic

    def _recorded(self, topic_id: Uuid) -> RecordedTopic:
        """Return the topic to file records with; one of a snapshot or of another replay becomes its base."""
        topic = self._topic(topic_id)
        if isinstance(topic, RecordedTopic):
            return topic
        if isinstance(topic, TopicAt) and topic.records.log is self.log:
            recorded = topic.recorded
        else:
            if isinstance(topic, TopicAt):
                topic = topic.decoded()  # of another replay, which may itself be based on another one
            base = topic if topic.origin.place.in_snapshot or len(topic) else None
            recorded = RecordedTopic(topic.name, topic.id, topic.origin, TopicRecords(self.log, self.changes, base))
            self._delta.touch(TOPICS, topic_id, topic.name)
        self._delta.table(TOPICS)[topic_id] = recorded
        return recorded

    def _remember_sound(self, value: bytes) -> None:
        """Note that partition records of the same essence may be filed without being decoded."""
        if len(self._sound) >= _MOST_ESSENCES:
            self._sound.clear()
        self._sound.add(essence(value))

    # --- snapshots inside the log --------------------------------------------------------------------------------

    def expect(self, checkpoints: Iterable[LogCheckpoint]) -> None:
        """Set the snapshots inside the log that the replay will pass, ordered by end offset."""
        self._expected = deque(checkpoints)
        self._set_due()

    def pass_due_checkpoints(self, offset: int) -> None:
        """Pass the expected snapshots that end at ``offset`` or before, once all records before it are replayed."""
        if self._due > offset:
            return
        while self._due <= offset:
            checkpoint = self._expected.popleft()
            self._set_due()
            snapshot = checkpoint.load()
            if snapshot is not None:
                self.pass_checkpoint(checkpoint, snapshot)
        if not self._expected:
            for topic in self._delta.peek(TOPICS).values():
                if isinstance(topic, RecordedTopic):
                    topic.records.agreed = None  # only comparisons with snapshots need it, and none is left

    def pass_checkpoint(self, checkpoint: LogCheckpoint, snapshot: Image) -> None:
        """Compare the state with a snapshot at its end offset; where they disagree, go on with the snapshot's values.

        Kafka writes no snapshot inside a metadata transaction, so a transaction that is open here belongs to a log of
        another history, and is dropped.
        """
        if self._transaction is not None:
            self._transaction = None
            self.log.end_transaction(checkpoint.end_offset - 1)
        self._provenance = snapshot.provenance
        self._catch_up()
        self._filed.clear()
        differences = take_over(self._delta, snapshot)
        self.checkpoints.append(PassedCheckpoint(checkpoint.file, snapshot.provenance, differences))

    def _set_due(self) -> None:
        self._due = self._expected[0].end_offset if self._expected else _NEVER

    # --- a snapshot ----------------------------------------------------------------------------------------------

    def snapshot_batch(self, batch: Batch, file: str) -> None:
        """Replay a verified batch of the snapshot ``file``; partitions stay undecoded. Raises DecodeError."""
        place = BatchPosition(file, batch.position, batch.epoch, True)
        if batch.is_control:
            for raw in iter_records(batch):
                self._control(raw, place)
            return
        buf, start, end = batch.region()
        self._grow(batch, end - start)
        base_offset, timestamp, report = batch.base_offset, batch.base_timestamp, self._report
        topics, names = self._delta.table(TOPICS), self._delta.table(NAMES)
        for framed in self._framer.checked(buf, start, end, batch.last_offset_delta):
            if isinstance(framed, (TopicRun, PartitionRun)):
                run = new_undecoded_run((buf, framed.start, framed.end, base_offset, timestamp, place, report))
                topic_id = Uuid(framed.topic_id)
                if isinstance(framed, TopicRun):
                    origin = new_origin((base_offset + framed.delta, timestamp, TOPIC.name, 0, place))
                    name = framed.name.decode("utf-8", "surrogateescape")
                    if topic_id not in topics:
                        # As create(), without a look at what is there; nothing is noted as touched, because no Recorder
                        # loads a snapshot.
                        topics[topic_id] = Topic(name, topic_id, origin, run)
                        names[name] = topic_id
                        continue
                    try:
                        create(self._delta, name, topic_id, origin).add_run(run)
                        continue
                    except ReplayError as error:
                        self.problems.append(Problem(origin, str(error), False))
                self._run(topic_id, run)
            elif isinstance(framed, RecordBounds):
                value = bytes(buf[framed.value : framed.value_end])
                raw = RawRecord(base_offset + framed.delta, batch.time(framed.time_delta), None, value)
                self._replay(raw, place, None)
            else:
                self._replay(read_record(buf, framed.start, batch)[0], place, None)

    def _run(self, topic_id: Uuid, run: UndecodedRun) -> None:
        """Give undecoded partition records to their topic. If it does not exist, list each record as a problem."""
        try:
            writable(self._delta, topic_id).add_run(run)
        except ReplayError as error:
            for delta, value in iter_values(run.buf, run.start, run.end):
                decoded = decode_value(value)
                origin = Origin(run.base_offset + delta, run.timestamp, decoded.name, decoded.version, run.place)
                self.problems.append(Problem(origin, str(error), False))

    def snapshot_end(self, end_offset: int, epoch: int, timestamp: int) -> None:
        """Note that the snapshot is complete: its last record of the log is the one before ``end_offset``."""
        self._provenance = Provenance(end_offset - 1, epoch, timestamp)


def _reporter(problems: Problems) -> Report:
    """Return the function that lists a record which turns out wrong when its topic is decoded, each one once."""
    reported: set[tuple[int, str]] = set()

    def report(origin: Origin, reason: str, undecoded: Undecoded | None) -> None:
        if len(reported) <= 2 * MOST_PROBLEMS and (origin.offset, reason) not in reported:
            reported.add((origin.offset, reason))
            problems.append(Problem(origin, reason, undecoded is not None and not undecoded.malformed, undecoded))

    return report
