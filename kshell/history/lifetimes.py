"""What one partition, one broker and one topic's name held over time, taken from the history of a log.

Records say what and when, never who. What a log begins with is known from a snapshot: a state, not an event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from kshell.metadata.families.cluster import BROKERS, Broker
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.history import History
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.values import Entry
from kshell.protocol.primitives import Uuid

T = TypeVar("T")
IN_SNAPSHOT = -1


class Held(NamedTuple, Generic[T]):
    """A value (``None``: gone) and since when. ``since`` is the offset at which it took effect, ``IN_SNAPSHOT`` for
    what the log begins with; ``offset`` and ``time`` (epoch milliseconds) are those of the record, or of the snapshot's
    last one.
    """

    value: T | None
    since: int
    offset: int
    time: int
    record_type: str | None


Partitions = list[Held[Partition]]
Brokers = list[Held[Broker]]


class Chronicle:
    """The history of a log up to offset ``until``."""

    def __init__(self, history: History, until: int) -> None:
        self.until = min(until, history.log.end - 1)
        self._history = history

    @property
    def starts_with_snapshot(self) -> bool:
        """Whether there was something before the log's first record."""
        return self._history.log.start > 0

    @property
    def start(self) -> int:
        """The offset of the first record whose effect is known."""
        return self._history.log.start

    def names(self) -> set[str]:
        """Every topic there ever was, up to now."""
        return {*self._history.base[NAMES], *(name for (name,) in self._history.keys(NAMES, self.until))}

    def topic_ids(self, name: str) -> list[Uuid]:
        """The ids that a topic of that name had, oldest first: one that is created again gets a new one."""
        base: Uuid | None = self._history.base[NAMES].get(name)
        found = [] if base is None else [base]
        versions = reversed(list(self._history.versions(NAMES, (name,), self.until)))
        found += [held for _, held in versions if held is not None]
        return list(dict.fromkeys(found))

    def numbers(self, topic_id: Uuid) -> list[int]:
        """The partitions that a topic has, or had when it was deleted."""
        base, recorded, _ = self._topic(topic_id)
        topic = base if recorded is None else recorded.at(self.until)
        return [] if topic is None else topic.partition_ids()

    def partitions(self, topic_id: Uuid, only: int | None = None) -> dict[int, Partitions]:
        """Partition (all, or ``only`` one) -> what it was, oldest first; ``None`` where its topic was deleted."""
        base, recorded, gone = self._topic(topic_id)
        found: dict[int, Partitions] = {}
        for number in () if base is None else base.partition_ids() if only is None else (only,):
            entry = None if base is None else base.partition(number)
            if entry is not None and isinstance(entry.value, Partition):
                found[number] = [self._in_snapshot(entry)]
        for number, since, entry in () if recorded is None else self._versions(recorded, only):
            found.setdefault(number, []).append(self._written(entry, since))
        if gone is not None:
            for held_so_far in found.values():
                held_so_far.append(self._gone(gone, "REMOVE_TOPIC_RECORD"))
        return found

    def _topic(self, topic_id: Uuid) -> tuple[Topic | None, RecordedTopic | None, int | None]:
        """(what a snapshot began it with, what was recorded since, the offset at which it was deleted)."""
        versions = list(self._history.versions(TOPICS, (topic_id,), self.until))
        recorded = next((held for _, held in versions if isinstance(held, RecordedTopic)), None)
        gone = next((since for since, held in versions if held is None), None)
        return self._history.base[TOPICS].get(topic_id) if recorded is None else recorded.base, recorded, gone

    def _versions(self, recorded: RecordedTopic, only: int | None) -> Iterator[tuple[int, int, Entry[Partition]]]:
        if only is None:
            return recorded.every_version(self.until)
        newest_first = list(recorded.versions(only, self.until))
        return iter([(only, since, entry) for since, entry in reversed(newest_first)])

    def broker(self, broker_id: int) -> Brokers:
        """A broker's registrations, oldest first; ``None`` from where it was unregistered."""
        base: Entry[Broker] | None = self._history.base[BROKERS.name].get(broker_id)
        found: Brokers = [] if base is None else [self._in_snapshot(base)]
        for since, entry in reversed(list(self._history.versions(BROKERS.name, (broker_id,), self.until))):
            if entry is None:
                found.append(self._gone(since, "UNREGISTER_BROKER_RECORD"))
            else:
                found.append(self._written(entry, since))
        return found

    def end(self) -> tuple[int, int]:
        """Offset and time of the last record."""
        log = self._history.log
        if self.until < log.start:
            last = self._history.base.provenance
            return last.offset, last.timestamp
        return self.until, log.timestamp(self.until)

    def time_of(self, offset: int) -> int:
        """When the record at an offset was written; of one before the log, when the log begins."""
        log = self._history.log
        return log.timestamp(max(log.start, min(offset, log.end - 1))) if log.end > log.start else self.end()[1]

    def _in_snapshot(self, entry: Entry[Any], since: int = IN_SNAPSHOT) -> Held[Any]:
        last = self._history.snapshot_provenance(entry.origin.place.file)
        return Held(entry.value, since, last.offset, last.timestamp, None)

    def _written(self, entry: Entry[T], since: int) -> Held[T]:
        origin = entry.origin
        if origin.place.in_snapshot:  # no record says it: a snapshot that was passed
            return self._in_snapshot(entry, since)
        return Held(entry.value, since, origin.offset, origin.timestamp, origin.record_type)

    def _gone(self, since: int, record_type: str) -> Held[T]:
        return Held(None, since, since, self._history.log.timestamp(since), record_type)


def runs(held: list[Held[T]]) -> Iterator[tuple[Held[T] | None, Held[T]]]:
    """Each with the one before it."""
    before = None
    for one in held:
        yield before, one
        before = one
