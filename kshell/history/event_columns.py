"""The table ``events`` by columns: most of its records are decoded together. Needs numpy and pyarrow.

The path of the tree that each record touches is found without decoding most of them (:class:`RecordPaths`). Nearly all
records of a log change the leader or the ISR of a partition. That such a record touches its partition's path depends on
nothing but whether the partition exists, so it is decoded only the first time that one with these fields is met, and
the paths of the others are found together, by columns. A PartitionRecord waits until a record comes whose effect
depends on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.columnar.framing import Framed
from kshell.columnar.records import BatchDecoder, RecordColumns, Single, in_places, repeated
from kshell.history.records import Touched, TouchedPaths, touched_paths
from kshell.metadata.families.markers import ABORT, BEGIN, END
from kshell.metadata.families.topics import REMOVE_TOPIC, TOPIC, clear_elr, partition, partition_change
from kshell.metadata.partition_changes import NUMBER, PARTITION, PARTITION_CHANGE, REST, TOPIC_ID, essence
from kshell.metadata.records import HEAD_SIZE, Decoded, decode_value
from kshell.protocol.batches import Batch
from kshell.sources.directory.records import LogRecord
from kshell.tables.arrow import schema
from kshell.tables.declaration import Field
from kshell.tree.paths import Segments, join

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.columnar.framing import Bytes, Ints
    from kshell.engine.session import Session
    from kshell.sources.directory.records import DecodedRecords

arrow: ModuleType = importlib.import_module("pyarrow")
compute: ModuleType = importlib.import_module("pyarrow.compute")
np: ModuleType = importlib.import_module("numpy")

_LAST_TIME = 253_402_300_799_999
"""The end of the year 9999, the last that ISO-8601 has without further agreement."""


def event_batches(session: Session, records: DecodedRecords, fields: Sequence[Field]) -> Iterator[Any]:
    """Yield the rows of all records as ``pyarrow.RecordBatch`` objects with the schema of the fields."""
    decoder = _EventDecoder(session, records, fields)
    for file, batch in records.batches():
        decoder.add(batch, file)
        if decoder.is_full:
            yield from decoder.record_batches()
    yield from decoder.record_batches()
    records.finish()


class _EventDecoder(BatchDecoder[str]):
    """Decodes batches, each with the path of its file, into the columns of the table."""

    def __init__(self, session: Session, records: DecodedRecords, fields: Sequence[Field]) -> None:
        # Also where nobody asks for the data: what is malformed must be noticed.
        super().__init__(schema(arrow, fields), session.redaction, with_data=True)
        self._until = session.until
        self._records = records
        self._paths = RecordPaths(session) if "path" in self._schema.names else None

    def _column(self, columns: RecordColumns, name: str, kind: Any) -> Any:
        match name:
            case "epoch":
                return repeated([batch.epoch for batch in self._batches], columns.batch, kind)
            case "time":
                return _times(columns.column("timestampMs", arrow.int64()))
            case "path" if self._paths is not None:
                return self._paths.of(columns)
            case _:
                return columns.column(name, kind)

    def _selected(self, framed: Framed) -> Framed:
        """Leave out the records after the point that the session shows."""
        if self._until is None or (mask := framed.offset <= self._until).all():
            return framed
        return framed.only(mask)

    def _one_by_one(self, batch: Batch, context: str) -> Iterator[Single]:
        """Decode the records of a batch of another form; what is wrong with it is noted as damage."""
        for record in self._records.records_of(batch, context):
            yield Single(record.offset, record.timestamp, record.decoded)

    def _decoded_value(self, value: bytes, offset: int, context: str) -> Decoded:
        decoded = decode_value(value)
        self._records.note(decoded, offset, context)
        return decoded


def _times(timestamps: Any) -> Any:
    """Return the texts of epoch milliseconds, as :func:`kshell.tree.image.iso` makes each of them."""
    is_time = compute.and_(compute.greater_equal(timestamps, 0), compute.less_equal(timestamps, _LAST_TIME))
    times = compute.if_else(is_time, timestamps, None).cast(arrow.timestamp("ms")).cast(arrow.string())
    return compute.binary_join_element_wise(compute.binary_replace_slice(times, 10, 11, "T"), "Z", "")


# --- the path that each record touches -------------------------------------------------------------------------------

_MOST_USUAL = 1 << 17
"""The most record contents that are remembered, then they are forgotten: a log may have as many as records."""
_MARKERS = (BEGIN, END, ABORT)
_STATE = ("replicas", "directories", "eligibleLeaderReplicas", "lastKnownElr")
"""Fields of a PartitionChangeRecord that decide whether, or where, a later record takes effect."""
_OF_TOPICS = (TOPIC, REMOVE_TOPIC, partition, partition_change)


class _Waiting(NamedTuple):
    """A record that is not replayed yet."""

    offset: int
    timestamp: int
    value: bytes


class _KnownTopic:
    """A topic that exists: its path, and the numbers of its known partitions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.partitions: set[int] = set()
        self._first_unknown = 0

    @property
    def first_unknown(self) -> int:
        """The first number of a partition that is not known; all from 0 up to it are."""
        while self._first_unknown in self.partitions:
            self._first_unknown += 1
        return self._first_unknown


class RecordPaths:
    """Finds the paths of the records of a log: ask :meth:`of` about all records from the log's start on, in order."""

    def __init__(self, session: Session) -> None:
        self._touched_paths = TouchedPaths(session, 0)
        self._topics: dict[bytes, _KnownTopic] = {}
        self._usual: set[bytes] = set()
        """What records of partitions have besides number and topic id, if it is valid and leaves :data:`_STATE` alone.
        """
        self._waiting: dict[bytes, dict[int, _Waiting]] = {}
        """Topic id -> number of a partition -> its newest PartitionRecord, if it is not replayed yet."""

    def of(self, columns: RecordColumns) -> pa.StringArray:
        """Return the path that each record touches first, as ``log`` shows it; null for none."""
        settled, paths = self._settled(columns)
        is_open = np.ones(len(columns.places), bool)
        is_open[settled] = False
        open_places, open_paths = list[int](), list[str | None]()
        for place, offset, timestamp, value in columns.in_order(is_open):
            if self._touched_paths.restart_if_due(offset):
                self._waiting.clear()
                self._topics.clear()
            open_places.append(place)
            open_paths.append(self._usual_path(offset, timestamp, value) or self._replayed(offset, timestamp, value))
        places = np.concatenate((columns.places[settled], np.array(open_places, np.int64)))
        return in_places([paths, arrow.array(open_paths, arrow.string())], places)

    def _settled(self, columns: RecordColumns) -> tuple[Ints, pa.StringArray]:
        """Return the framed records, and their paths, for which it does not matter what the others here do.

        They are usual changes of partitions that exist, of topics that are neither created nor removed meanwhile.
        """
        changes = _change_columns(columns.framed)
        unsettled = self._unsettled_topics(columns)
        topics = [None if unsettled is None or key in unsettled else self._topics.get(key) for key in changes.topic_ids]
        ends = np.array([0 if topic is None else topic.first_unknown for topic in topics], np.int64)
        usual = np.array([essence in self._usual for essence in changes.essences], bool)
        chosen = (changes.number >= 0) & (changes.number < ends[changes.topic]) & usual[changes.essence]
        names = arrow.array(["" if topic is None else f"{topic.path}/" for topic in topics], arrow.string())
        numbers = arrow.array(changes.number[chosen]).cast(arrow.string())
        paths = compute.binary_join_element_wise(names.take(arrow.array(changes.topic[chosen])), numbers, "")
        return changes.rows[chosen], paths

    def _unsettled_topics(self, columns: RecordColumns) -> set[bytes] | None:
        """Return the ids of topics that are created or removed by these records; ``None``: all may be."""
        if self._touched_paths.restart is not None:
            return None
        framed = columns.framed
        rows = np.flatnonzero(np.isin(framed.api_keys, [kind.api_key for kind in (TOPIC, REMOVE_TOPIC, *_MARKERS)]))
        values = [decode_value(framed.value(row)) for row in rows]
        unsettled = set[bytes]()
        for decoded in (*values, *(single.decoded for single in columns.singles.values())):
            if decoded.type in _MARKERS:
                return None
            if decoded.data is not None and decoded.type in (TOPIC, REMOVE_TOPIC):
                unsettled.add(decoded.data["topicId"])
        return unsettled

    def _usual_path(self, offset: int, timestamp: int, value: bytes | Decoded) -> str | None:
        """Return the path of a usual record of a partition that is known; ``None`` if the record must be replayed.

        A PartitionRecord of a known topic makes its partition known, and waits.
        """
        if isinstance(value, Decoded) or essence(value) not in self._usual:
            return None
        topic, number = self._topics.get(value[TOPIC_ID]), int.from_bytes(value[NUMBER], "big", signed=True)
        if topic is None:
            return None
        if value[1] == PARTITION:
            self._waiting.setdefault(value[TOPIC_ID], {})[number] = _Waiting(offset, timestamp, value)
            topic.partitions.add(number)
        return f"{topic.path}/{number}" if number in topic.partitions else None

    def _replayed(self, offset: int, timestamp: int, value: bytes | Decoded) -> str | None:
        """Replay a record whose effect is not known, and return its path."""
        decoded = value if isinstance(value, Decoded) else decode_value(value)
        topic_id = decoded.data["topicId"] if decoded.data is not None and decoded.type in _OF_TOPICS else None
        for due in self._due(decoded, topic_id):
            self._touched(due.offset, due.timestamp, decode_value(due.value))
        touched = self._touched(offset, timestamp, decoded)
        if decoded.type in _MARKERS:
            self._topics.clear()
        elif topic_id is not None and decoded.type in (TOPIC, REMOVE_TOPIC):
            self._topics.pop(topic_id, None)
            if touched and decoded.type is TOPIC:
                self._topics[topic_id] = _KnownTopic(join(touched[0].path))
        elif topic_id is not None and touched and isinstance(value, bytes):
            self._learn(value, decoded, touched[0].path)
        return join(touched[0].path) if touched else None

    def _due(self, decoded: Decoded, topic_id: bytes | None) -> Iterable[_Waiting]:
        """Take the records that wait and decide what a record does; ``topic_id`` is its topic's, if it is of one."""
        if decoded.type in (*_MARKERS, clear_elr):
            due = [record for of_topic in self._waiting.values() for record in of_topic.values()]
            self._waiting.clear()
            return due
        if topic_id is None or decoded.data is None:
            return ()
        if decoded.type is TOPIC:
            return self._waiting.pop(topic_id, {}).values()
        if decoded.type is REMOVE_TOPIC:
            self._waiting.pop(topic_id, None)  # they have no effect any more
            return ()
        of_topic = self._waiting.get(topic_id, {})
        number = decoded.data["partitionId"]
        return [of_topic.pop(number)] if number in of_topic else ()

    def _touched(self, offset: int, timestamp: int, decoded: Decoded) -> list[Touched]:
        return touched_paths(self._touched_paths.tracker, LogRecord(offset, 0, timestamp, decoded, "", 0))

    def _learn(self, value: bytes, decoded: Decoded, path: Segments) -> None:
        """Remember a partition that exists, and what its record has if others of the kind need not be replayed."""
        data = decoded.data or {}
        topic = self._topics.setdefault(value[TOPIC_ID], _KnownTopic(join(path[:-1])))
        topic.partitions.add(data["partitionId"])
        if decoded.type is partition or all(data.get(name) is None for name in _STATE):
            if len(self._usual) >= _MOST_USUAL:
                self._usual.clear()
            self._usual.add(essence(value))


# --- what many PartitionChangeRecords have in common, as columns -----------------------------------------------------


class _ChangeColumns(NamedTuple):
    """The PartitionChangeRecords among framed records, one element per record; all columns are numpy arrays."""

    rows: Ints
    """Their indexes among the framed records."""
    number: Ints
    topic: Ints
    """The index of the topic in ``topic_ids``."""
    topic_ids: list[bytes]
    essence: Ints
    """The index of the record's essence, see :mod:`kshell.metadata.partition_changes`, in ``essences``."""
    essences: list[bytes]


def _change_columns(framed: Framed) -> _ChangeColumns:
    """Select the values that have the api key and the size of a PartitionChangeRecord; the rest is not decoded."""
    buf, size = framed.buf, framed.end - framed.start
    rows = np.flatnonzero((size >= REST) & (framed.api_keys == PARTITION_CHANGE))
    start, size = framed.start[rows], size[rows]
    number = _spans(buf, start + NUMBER.start, NUMBER.stop - NUMBER.start).view(">i4").ravel()
    topic, topic_ids = _encoded(_spans(buf, start + TOPIC_ID.start, TOPIC_ID.stop - TOPIC_ID.start))
    essence, essences = np.zeros(len(rows), np.int64), list[bytes]()
    for length in np.unique(size).tolist():
        same = np.flatnonzero(size == length)
        heads, rests = _spans(buf, start[same], HEAD_SIZE), _spans(buf, start[same] + REST, length - REST)
        indexes, values = _encoded(np.concatenate((heads, rests), axis=1))
        essence[same] = indexes + len(essences)
        essences += values
    return _ChangeColumns(rows, number.astype(np.int64), topic, topic_ids, essence, essences)


def _spans(buf: Bytes, start: Ints, length: int) -> Bytes:
    """Return ``length`` bytes from each position on, as a matrix."""
    spans: Bytes = np.zeros((len(start), length), np.uint8)
    if spans.size:
        spans = np.lib.stride_tricks.sliding_window_view(buf, length)[start]
    return spans


def _encoded(matrix: Bytes) -> tuple[Ints, list[bytes]]:
    """Return the different lines of a matrix of bytes, and the index among them of each line."""
    count, width = matrix.shape
    lines = arrow.Array.from_buffers(arrow.binary(width), count, [None, arrow.py_buffer(np.ascontiguousarray(matrix))])
    encoded = lines.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
