"""The path of the tree that each record of a log touches, without decoding most of them.

Nearly all records of a log change the leader or the ISR of a partition. That such a record touches its partition's path
depends on nothing but whether the partition exists, so it is decoded only the first time that one with these fields is
met; and a PartitionRecord waits until a record of its topic comes whose effect depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.history.records import Touched, first_tracker, touched_paths
from kshell.metadata.families.markers import ABORT, BEGIN, END
from kshell.metadata.families.topics import REMOVE_TOPIC, TOPIC, clear_elr, partition, partition_change
from kshell.metadata.partition_changes import NUMBER, PARTITION, REST, TOPIC_ID, essence
from kshell.metadata.records import Decoded, decode_value
from kshell.sources.directory.records import LogRecord
from kshell.tree.paths import Segments, join

if TYPE_CHECKING:
    from kshell.engine.session import Session

_MOST_USUAL = 1 << 17
"""The most record contents that are remembered, then they are forgotten: a log may have as many as records."""
_MARKERS = (BEGIN.name, END.name, ABORT.name)
_STATE = ("replicas", "directories", "eligibleLeaderReplicas", "lastKnownElr")
"""Fields of a PartitionChangeRecord that decide whether, or where, a later record takes effect."""
_PARTITION = slice(NUMBER.start, TOPIC_ID.stop)
_OF_TOPICS = (TOPIC.name, REMOVE_TOPIC.name, partition.name, partition_change.name)


class _KnownTopic(NamedTuple):
    """A topic that exists: its path, and its known partitions, named as records name them (:data:`_PARTITION`)."""

    path: str
    partitions: set[bytes]


class RecordPaths:
    """Finds the paths of the records of a log: ask :meth:`of` about all records from the log's start on, in order."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tracker, self._restart = first_tracker(session, 0)
        self._topics: dict[bytes, _KnownTopic] = {}
        self._paths: dict[bytes, str] = {}
        """The paths of partitions that exist."""
        self._usual: set[bytes] = set()
        """What records of partitions have beside number and topic id, if it is valid and leaves :data:`_STATE` alone.
        """
        self._waiting: dict[bytes, dict[bytes, tuple[int, int, bytes]]] = {}
        """Topic id -> partition -> its newest PartitionRecord (offset, timestamp, value), if it is not replayed yet."""

    def of(
        self, offsets: Iterable[int], timestamps: Iterable[int], values: Iterable[bytes | Decoded]
    ) -> Iterator[str | None]:
        """Yield the path that each record touches first, as ``log`` shows it; ``None`` for none."""
        usual, path_of = self._usual, self._paths.get
        for offset, timestamp, value in zip(offsets, timestamps, values, strict=True):
            if self._restart is not None and offset >= self._restart:
                self._tracker, self._restart = first_tracker(self._session, self._restart, is_needed=True)[0], None
                self._waiting.clear()
                self._forget(*self._topics)
            path = None
            # As essence() does it, and without isinstance(): this is done for every record.
            if type(value) is bytes and value[:3] + value[REST:] in usual:
                if value[1] == PARTITION:
                    self._let_wait(offset, timestamp, value)
                path = path_of(value[_PARTITION])
            yield path or self._replayed(offset, timestamp, value)

    def _let_wait(self, offset: int, timestamp: int, value: bytes) -> None:
        """Let a PartitionRecord wait, if its topic is known."""
        topic, key = self._topics.get(value[TOPIC_ID]), value[_PARTITION]
        if topic is not None:
            self._waiting.setdefault(value[TOPIC_ID], {})[key] = offset, timestamp, value
            if key not in self._paths:
                topic.partitions.add(key)
                self._paths[key] = f"{topic.path}/{int.from_bytes(value[NUMBER], 'big', signed=True)}"

    def _replayed(self, offset: int, timestamp: int, value: bytes | Decoded) -> str | None:
        """Replay a record whose effect is not known, and return its path."""
        decoded = value if isinstance(value, Decoded) else decode_value(value)
        topic_id = decoded.data["topicId"] if decoded.data is not None and decoded.name in _OF_TOPICS else None
        if decoded.name in (*_MARKERS, clear_elr.name):
            self._replay_waiting(*self._waiting)
        elif decoded.name == REMOVE_TOPIC.name:
            self._waiting.pop(topic_id or b"", None)  # what was to be replayed is gone with the topic
        elif topic_id is not None:
            self._replay_waiting(topic_id)
        touched = self._touched(offset, timestamp, decoded)
        if decoded.name in _MARKERS:
            self._forget(*self._topics)
        elif topic_id is not None and decoded.name in (TOPIC.name, REMOVE_TOPIC.name):
            self._forget(topic_id)
            if touched and decoded.name == TOPIC.name:
                self._topics[topic_id] = _KnownTopic(join(touched[0].path), set())
        elif topic_id is not None and touched and isinstance(value, bytes):
            self._learn(value, decoded, touched[0].path)
        return join(touched[0].path) if touched else None

    def _replay_waiting(self, *topic_ids: bytes) -> None:
        for topic_id in topic_ids:
            for offset, timestamp, value in self._waiting.pop(topic_id, {}).values():
                self._touched(offset, timestamp, decode_value(value))

    def _touched(self, offset: int, timestamp: int, decoded: Decoded) -> list[Touched]:
        return touched_paths(self._tracker, LogRecord(offset, 0, timestamp, decoded, "", 0))

    def _learn(self, value: bytes, decoded: Decoded, path: Segments) -> None:
        """Remember a partition that exists, and what its record has if others of the kind need not be replayed."""
        topic = self._topics.setdefault(value[TOPIC_ID], _KnownTopic(join(path[:-1]), set()))
        topic.partitions.add(value[_PARTITION])
        self._paths[value[_PARTITION]] = join(path)
        data = decoded.data or {}
        if value[1] == PARTITION or all(data.get(name) is None for name in _STATE):
            if len(self._usual) >= _MOST_USUAL:
                self._usual.clear()
            self._usual.add(essence(value))

    def _forget(self, *topic_ids: bytes) -> None:
        for topic_id in topic_ids:
            topic = self._topics.pop(topic_id, None)
            for key in () if topic is None else topic.partitions:
                del self._paths[key]
