"""The past of topics, partitions, brokers and other values as lists of revisions, and what an argument names.

:func:`story_of` reads a session's source into a :class:`Story`: the present image, and, if there is a log,
a :class:`LogRevisions`. :func:`target` finds the topic or partition that a user typed. If the log does not begin with
its first record, a snapshot gives the state before it. Records never say who changed something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kshell.errors import CommandError, did_you_mean
from kshell.history.recorded import begins_after_damage
from kshell.metadata.families.cluster import BROKERS, Broker
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.history import History
from kshell.metadata.image import Image, Keys
from kshell.metadata.names import decode_name, encode_name
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.values import Entry
from kshell.protocol.primitives import Uuid
from kshell.shell_words import quote
from kshell.sources.source import NO_LOG, WHERE_LOGS_ARE
from kshell.tables.declaration import image_for
from kshell.tree.paths import TOPICS_BY_ID, TOPICS_BY_NAME, join, split

if TYPE_CHECKING:
    from kshell.engine.session import Session

T = TypeVar("T")
NODE_KINDS = ("broker", "controller")
"""What ``KIND-ID`` as an argument names: a node, also where a topic is called ``broker``."""
IN_SNAPSHOT = -1


class Revision(NamedTuple, Generic[T]):
    """A value (``None``: deleted), and the record that set it.

    Attributes:
        since: the offset at which the value took effect; :data:`IN_SNAPSHOT` if it was there before the log,
            :data:`STATE` if only the present state is known.
        offset: that of the record; for a value from a snapshot, that of the snapshot's last record.
        time: that record's time, in epoch milliseconds.
        record_type: the type of the record; ``None`` where no record is known.
    """

    value: T | None
    since: int
    offset: int
    time: int
    record_type: str | None
    epoch: int | None = None
    """The leader epoch in which the record was written, if it is known."""


Partitions = list[Revision[Partition]]
Brokers = list[Revision[Broker]]
AnyRevision = Revision[Any]
"""A revision of a value of any family."""


class LogRevisions:
    """The history of a log up to offset ``until``, as lists of revisions, oldest first."""

    def __init__(self, history: History, until: int) -> None:
        self.until = min(until, history.log.end - 1)
        self.history = history

    @property
    def starts_with_snapshot(self) -> bool:
        """Whether the log no longer has its first records, so that a snapshot gives the state before them."""
        return self.history.log.start > 0

    @property
    def start(self) -> int:
        """The offset of the first record whose effect is known."""
        return self.history.log.start

    def names(self) -> set[str]:
        """Return the name of every topic that existed up to ``until``."""
        return {*self.history.base[NAMES], *(name for (name,) in self.history.keys(NAMES, self.until))}

    def topic_ids(self, name: str) -> list[Uuid]:
        """Return the ids of all topics with that name, oldest first: a topic that is created again gets a new id."""
        base: Uuid | None = self.history.base[NAMES].get(name)
        ids = [] if base is None else [base]
        versions = reversed(list(self.history.versions(NAMES, (name,), self.until)))
        ids += [topic_id for _, topic_id in versions if topic_id is not None]
        return list(dict.fromkeys(ids))

    def numbers(self, topic_id: Uuid) -> list[int]:
        """The partitions that a topic has, or had when it was deleted."""
        base, recorded, _ = self._topic(topic_id)
        topic = base if recorded is None else recorded.at(self.until)
        return [] if topic is None else topic.partition_ids()

    def partitions(self, topic_id: Uuid, only: int | None = None) -> dict[int, Partitions]:
        """Return partition number -> its revisions, oldest first; ``None`` is the value after the topic's deletion."""
        base, recorded, deleted_at = self._topic(topic_id)
        revisions: dict[int, Partitions] = {}
        for number in () if base is None else base.partition_ids() if only is None else (only,):
            entry = None if base is None else base.partition(number)
            if entry is not None and isinstance(entry.value, Partition):
                revisions[number] = [self._in_snapshot(entry)]
        for number, since, entry in () if recorded is None else self._versions(recorded, only):
            revisions.setdefault(number, []).append(self._written(entry, since))
        if deleted_at is not None:
            for partition_revisions in revisions.values():
                partition_revisions.append(self._tombstone(deleted_at, "REMOVE_TOPIC_RECORD"))
        in_effect = {number: _in_effect(every) for number, every in revisions.items()}
        return {number: every for number, every in in_effect.items() if every}

    def _topic(self, topic_id: Uuid) -> tuple[Topic | None, RecordedTopic | None, int | None]:
        """Return a topic before the log, as the log recorded it, and the offset of its deletion."""
        versions = list(self.history.versions(TOPICS, (topic_id,), self.until))
        recorded = next(
            (recorded_topic for _, recorded_topic in versions if isinstance(recorded_topic, RecordedTopic)), None
        )
        deleted_at = next((since for since, topic in versions if topic is None), None)
        return self.history.base[TOPICS].get(topic_id) if recorded is None else recorded.base, recorded, deleted_at

    def _versions(self, recorded: RecordedTopic, only: int | None) -> Iterator[tuple[int, int, Entry[Partition]]]:
        if only is None:
            return recorded.every_version(self.until)
        newest_first = list(recorded.versions(only, self.until))
        return iter([(only, since, entry) for since, entry in reversed(newest_first)])

    def values(self, family: str, keys: Keys, removal: str) -> list[AnyRevision]:
        """Return the revisions of a value, oldest first; ``removal`` is the type of the records that remove it."""
        base = self.history.base.entry(family, keys)
        revisions: list[AnyRevision] = [] if base is None else [self._in_snapshot(base)]
        for since, entry in reversed(list(self.history.versions(family, keys, self.until))):
            revisions.append(self._tombstone(since, removal) if entry is None else self._written(entry, since))
        return _in_effect(revisions)

    def topic(self, topic_id: Uuid) -> list[Revision[str]]:
        """Return the creation of a topic (the value is its name) and its deletion, as far as the log has them."""
        base, recorded, deleted_at = self._topic(topic_id)
        topic = recorded if base is None else base
        revisions: list[Revision[str]] = []
        if topic is not None and topic.origin.place.in_snapshot:
            revisions.append(self._in_snapshot(Entry(topic.name, topic.origin)))
        elif topic is not None:
            revisions.append(self._written(Entry(topic.name, topic.origin), topic.origin.offset))
        if deleted_at is not None:
            revisions.append(self._tombstone(deleted_at, "REMOVE_TOPIC_RECORD"))
        return revisions

    def config_keys(self, topic: str) -> list[str]:
        """Return the keys of all configs that were ever set on topics of that name, sorted."""
        keys = self.history.every_key("configs", self.until)
        return sorted(key for resource, key in keys if resource == ("TOPIC", topic))

    def end(self) -> tuple[int, int]:
        """Return offset and time of the last record up to ``until``."""
        log = self.history.log
        if self.until < log.start:
            last = self.history.base.provenance
            return last.offset, last.timestamp
        return self.until, log.timestamp(self.until)

    def time_of(self, offset: int) -> int:
        """Return the time at an offset in epoch milliseconds; outside the log, that of its nearest record."""
        log = self.history.log
        return log.timestamp(max(log.start, min(offset, log.end - 1))) if log.end > log.start else self.end()[1]

    def _in_snapshot(self, entry: Entry[Any], since: int = IN_SNAPSHOT) -> AnyRevision:
        last = self.history.snapshot_provenance(entry.origin.place.file)
        return Revision(entry.value, since, last.offset, last.timestamp, None)

    def _written(self, entry: Entry[T], since: int) -> Revision[T]:
        origin = entry.origin
        if origin.place.in_snapshot:  # a snapshot inside the log set the value: no record of the log did
            return self._in_snapshot(entry, since)
        return Revision(entry.value, since, origin.offset, origin.timestamp, origin.record_type, origin.place.epoch)

    def _tombstone(self, since: int, record_type: str) -> Revision[T]:
        return Revision(None, since, since, self.history.log.timestamp(since), record_type)


def _in_effect(revisions: list[Revision[T]]) -> list[Revision[T]]:
    """Return the revisions without states inside a metadata transaction, which nobody saw: its end makes one change."""
    effective: list[Revision[T]] = []
    for _, together in groupby(revisions, key=attrgetter("since")):
        *passing, last = together
        before = effective[-1].value if effective else None
        if not passing or last.value != before:
            effective.append(last)
    return effective


def successive(revisions: list[Revision[T]]) -> Iterator[tuple[Revision[T] | None, Revision[T]]]:
    """Yield each revision with the one before it, which is ``None`` for the first."""
    before = None
    for revision in revisions:
        yield before, revision
        before = revision


STATE = -2
""":attr:`Revision.since` of a state that only the present image has: since when it is so is not known."""


class Story(NamedTuple):
    """What is known of a source's past: the image, its log's chronicle if there is one, and how far back it reaches.

    ``reach`` is a sentence for users. The newest revision of a value is always that of the image.
    """

    image: Image
    chronicle: LogRevisions | None
    reach: str

    def names(self) -> set[str]:
        """Return the name of every topic that exists or ever existed in the log."""
        return {*self.image[NAMES], *(self.chronicle.names() if self.chronicle else ())}

    def topic_id(self, name: str) -> Uuid | None:
        """Return the id of the newest topic of that name; ``None`` if there never was one."""
        present: Uuid | None = self.image[NAMES].get(name)
        if present is None and self.chronicle is not None:
            past = self.chronicle.topic_ids(name)
            return past[-1] if past else None
        return present

    def id_of(self, target: PartitionTarget) -> Uuid | None:
        """Return the id of the topic that is meant; ``None`` if there never was one."""
        return target.topic_id or self.topic_id(target.topic)

    def older_ids(self, name: str) -> list[Uuid]:
        """Return the ids of the deleted topics that had the name before."""
        past = self.chronicle.topic_ids(name) if self.chronicle else []
        return [topic_id for topic_id in past if topic_id != self.topic_id(name)]

    def numbers(self, topic_id: Uuid) -> list[int]:
        """The partitions that a topic has, or had when it was deleted."""
        topic = self.image[TOPICS].get(topic_id)
        if topic is not None:
            present: list[int] = topic.partition_ids()
            return present
        return self.chronicle.numbers(topic_id) if self.chronicle else []

    def partition(self, topic_id: Uuid, number: int) -> Partitions:
        """Return all known revisions of one partition, oldest first; empty if there is no such partition."""
        return self.partitions(topic_id, number).get(number, [])

    def partitions(self, topic_id: Uuid, only: int | None = None) -> dict[int, Partitions]:
        """Return partition number -> all its known revisions, oldest first; ``only`` limits it to one partition."""
        revisions = self.chronicle.partitions(topic_id, only) if self.chronicle else {}
        topic = self.image[TOPICS].get(topic_id)
        for number in () if topic is None else topic.partition_ids() if only is None else (only,):
            entry = None if topic is None else topic.partition(number)
            if entry is not None and isinstance(entry.value, Partition):
                partition_revisions = revisions.get(number, [])
                if not partition_revisions or partition_revisions[-1].value != entry.value:
                    revisions[number] = [*partition_revisions, self._state(entry.value)]
        return revisions

    def broker(self, broker_id: int) -> Brokers:
        """Return the registrations of a broker, oldest first; the value is ``None`` where it was unregistered."""
        return self.values(BROKERS.name, (broker_id,), "UNREGISTER_BROKER_RECORD")

    def values(self, family: str, keys: Keys, removal: str) -> list[AnyRevision]:
        """Return all known revisions of a value, oldest first, as :meth:`LogRevisions.values` does."""
        revisions = self.chronicle.values(family, keys, removal) if self.chronicle else []
        entry = self.image.entry(family, keys)
        value = None if entry is None else entry.value
        if value is not None and (not revisions or revisions[-1].value != value):
            revisions = [*revisions, self._state(value)]
        return revisions

    def end(self) -> tuple[int, int]:
        """Return offset and time of the last record that the story covers; (-1, -1) if the source reports neither."""
        last = self.image.provenance
        return max(self.chronicle.end(), (last.offset, last.timestamp)) if self.chronicle else last[::2]

    def _state(self, value: T) -> Revision[T]:
        last = self.image.provenance
        return Revision(value, STATE, last.offset, last.timestamp, None)


def story_of(session: Session, name: str) -> Story:
    """Return the story of a session's source up to the shown point; ``name`` is the command. Raises KshellError."""
    if not session.source.has_log:
        image = image_for(session, name, ("topics", "brokers"))
        return Story(image, None, f"{NO_LOG}: {WHERE_LOGS_ARE}")
    from kshell.history.records import without_log  # late, as the next one: it imports all that a replay needs
    from kshell.sources.past import Past

    session.travels()
    past = session.past or Past(session.source)
    if not session.source.is_live:  # first: the session's image then comes from this history, without a second replay
        past.history(session.progress)
    image = session.image
    recorded = past.up_to(session.until, session.progress)
    session.note_damage(past.damage if recorded is None else recorded.damage)
    if recorded is None:
        return Story(image, None, "the log cannot be replayed from its start: only the state is known, not its past")
    end = session.loaded.log_end_offset
    until = session.until if session.until is not None else (end or recorded.history.log.end) - 1
    chronicle = LogRevisions(recorded.history, until)
    reach = without_log(session) or _reach(chronicle, is_after_damage=recorded.begins_after_damage)
    return Story(image, chronicle, reach)


def _reach(chronicle: LogRevisions, *, is_after_damage: bool) -> str:
    if is_after_damage:
        return begins_after_damage(chronicle.start)
    if chronicle.starts_with_snapshot:
        return f"the log starts at offset {chronicle.start}: before that, a snapshot has the state, but no events"
    return "the log is there from its first record"


_MOST = 200
"""At most so many completions are offered."""


class PartitionTarget(NamedTuple):
    """A topic, or one partition of it. ``topic_id``: which of the topics that had the name; ``None``: the newest."""

    topic: str
    partition: int | None
    topic_id: Uuid | None = None


def target(session: Session, story: Story, text: str, *, prefers_partition: bool = False) -> PartitionTarget:
    """Return the topic or partition that an argument names. Raises CommandError.

    The argument is TOPIC-PARTITION, TOPIC/PARTITION, a path, or a topic's name. As a topic's name may itself end in a
    dash and digits, a topic with the whole name is preferred; with ``prefers_partition``, a partition.
    """
    names = story.names()
    readings = [reading for reading in _readings(session, story, text) if reading.topic in names]
    if prefers_partition:
        readings.sort(key=lambda reading: reading.partition is None)
    for reading in readings:
        if reading.partition is None or reading.partition in _numbers(story, reading):
            return reading
    raise _nothing(session, story, text, readings)


def _readings(session: Session, story: Story, text: str) -> list[PartitionTarget]:
    """Return every possible meaning of an argument: a topic's name, TOPIC-PARTITION, TOPIC/PARTITION, a path."""
    targets = [PartitionTarget(text, None)]
    for mark in "-/":
        topic, _, number = text.rpartition(mark)
        if topic and number.isascii() and number.isdigit() and len(number) < 10:
            targets.append(PartitionTarget(topic, int(number)))
    path = split(text, session.cwd)
    if len(path) in (4, 5) and path[:3] in (TOPICS_BY_NAME, TOPICS_BY_ID) and (len(path) == 4 or path[4].isdecimal()):
        partition = int(path[4]) if len(path) == 5 else None
        if path[:3] == TOPICS_BY_NAME:
            targets.append(PartitionTarget(decode_name(path[3]), partition))
        elif (topic_and_id := _identified(story, path[3])) is not None:
            targets.append(PartitionTarget(topic_and_id[0], partition, topic_and_id[1]))
    return targets


def _identified(story: Story, text: str) -> tuple[str, Uuid] | None:
    """Return name and id of the topic, present or deleted, whose id is ``text``; ``None`` if there is none."""
    present = ((topic.name, key) for key, topic in story.image[TOPICS].items())
    chronicle = story.chronicle
    past = ((name, key) for name in story.names() for key in ([] if chronicle is None else chronicle.topic_ids(name)))
    return next(((name, key) for name, key in chain(present, past) if str(key) == text), None)


def _numbers(story: Story, target: PartitionTarget) -> list[int]:
    topic_id = story.id_of(target)
    return [] if topic_id is None else story.numbers(topic_id)


def now_or_before(session: Session) -> str:
    """Return the words of error messages for the time that a story covers."""
    return "now or in the log" if session.until is None else f"at offset {session.until} or before"


def _nothing(session: Session, story: Story, text: str, readings: list[PartitionTarget]) -> CommandError:
    """Return the error for an argument that names no topic or partition."""
    for topic, partition, _ in readings:
        if partition is not None and any(story.partition(older, partition) for older in story.older_ids(topic)):
            path = quote(join((*TOPICS_BY_NAME, encode_name(topic), str(partition))))
            return CommandError(
                f"{text}: only a topic of that name that was deleted had it",
                hint=f"`log {path}` has its records, `timeline {quote(topic)}` shows who led it",
            )
    for reading in readings:
        numbers = _numbers(story, reading)
        if numbers:
            there = f"{reading.topic}-{numbers[0]}" + (f" to {reading.topic}-{numbers[-1]}" if len(numbers) > 1 else "")
            reason = (
                "which of its partitions?"
                if reading.partition is None
                else f"{reading.topic} has no partition of that number"
            )
            return CommandError(f"{text}: {reason}", hint=f"there is {there}")
    topic, _, number = text.rpartition("-")
    is_partition = topic and number.isdecimal()
    meant = PartitionTarget(topic, int(number)) if is_partition else PartitionTarget(text, None)
    if meant.topic in story.names():  # its records of partitions come next in the log
        reason = f"{meant.topic} has no partition, {now_or_before(session)}"
        return CommandError(f"{text}: {reason}", hint=f"`why {quote(meant.topic)}` shows the story of the topic")
    suffix = "" if meant.partition is None else f"-{meant.partition}"
    listed = "`topics` lists them; a partition is written TOPIC-NUMBER"
    hint = did_you_mean(meant.topic, story.names(), listed, limit=3, write=lambda name: f"{name}{suffix}")
    return CommandError(f"{text}: no such topic or partition, {now_or_before(session)}", hint=hint)


def complete_partition(session: Session, typed: str) -> Iterable[str]:
    """Complete a partition: topics with their first partition; all of them once a topic's name and dash are typed."""
    completions: list[str] = []
    for name in sorted(session.image[NAMES]):
        if len(completions) >= _MOST:
            break
        if typed.startswith(f"{name}-") or name.startswith(typed):
            numbers = session.image[TOPICS][session.image[NAMES][name]].partition_ids()
            wanted = numbers if typed.startswith(f"{name}-") else numbers[:1]
            completions += [
                candidate for candidate in (f"{name}-{number}" for number in wanted) if candidate.startswith(typed)
            ]
    return completions[:_MOST]


def complete_target(session: Session, typed: str) -> Iterable[str]:
    """Complete a topic's name or a partition."""
    names = [name for name in sorted(session.image[NAMES]) if name.startswith(typed)]
    return [*names[:_MOST], *complete_partition(session, typed)]
