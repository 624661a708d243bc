"""The tables ``topics`` and ``partitions``, and how their rows are counted over time.

Rows are made while they are read, as a large cluster has a million partitions. Partitions with equal values share one
object, so what depends on the value alone is computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine import tones
from kshell.engine.result import Row
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.names import sort_key
from kshell.metadata.partial import is_unreported, reported_or_none
from kshell.metadata.partition_changes import Aspects
from kshell.metadata.partition_state import (
    OFFLINE,
    PROBLEMS,
    STATES,
    UNDECODED,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    MinIsr,
    Verdicts,
    is_reassigning,
    problems,
    replication_factor,
    state,
)
from kshell.metadata.partitions import RECOVERY_STATES, Partition, Topic
from kshell.metadata.values import Entry
from kshell.tables.declaration import Field, FieldNames, Table, table
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import BROKER_ID, TOPIC_NAME
from kshell.tables.selection import asked_for

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.tables.row_counts import Question, Step
    from kshell.tables.where import Predicate

_OF_PARTITIONS = frozenset(("replicationFactor", "underReplicated", "offline", "underMinIsr", "reassigning"))
"""Columns of ``topics`` for which partitions must be decoded."""

_TOPIC_FIELDS = (
    Field("name", TOPIC_NAME, "the topic's name"),
    Field("topicId", "string", "its id, a UUID as Kafka writes it", spare=4),
    Field("partitions", "int32", "how many partitions it has", spare=1),
    Field("replicationFactor", "int16", "replicas of its first partition, without those that are being added", spare=1),
    Field("underReplicated", "int32", "partitions whose ISR is smaller than their replication factor"),
    Field("offline", "int32", "partitions without a leader", tone=tones.harm),
    Field("configs", {"*": "string"}, "what is set at the topic itself: key -> value", spare=3),
    Field("minIsr", "int32", "min.insync.replicas, the topic's or the brokers'; null where the log has neither", True),
    Field("underMinIsr", "int32", "partitions that lack a leader, or in-sync replicas to reach minIsr", True),
    Field("reassigning", "int32", "partitions to which replicas are being added, or from which removed", True),
)

_STATE = Enumeration(STATES)
_PROBLEM = Enumeration(PROBLEMS)
_RECOVERY = Enumeration(RECOVERY_STATES.values())
_PARTITION_FIELDS = (
    Field("topic", TOPIC_NAME, "the topic's name", spare=-1),
    Field("topicId", "string", "the topic's id", spare=4),
    Field("partition", "int32", "the partition's number", spare=-1),
    Field("leader", BROKER_ID, "the broker that leads; -1 for none"),
    Field("leaderEpoch", "int32", "rises with every new leader", spare=3),
    Field("partitionEpoch", "int32", "rises with every change", spare=3),
    Field("replicas", [BROKER_ID], "brokers that are to have it, the preferred leader first", spare=1),
    Field("isr", [BROKER_ID], "those in sync"),
    Field("elr", [BROKER_ID], "those outside the ISR that may lead without loss (KIP-966)", spare=1),
    Field("lastKnownElr", [BROKER_ID], "those in the ISR or ELR before they had an unclean shutdown", spare=3),
    Field("addingReplicas", [BROKER_ID], "replicas that a reassignment adds", spare=3),
    Field("removingReplicas", [BROKER_ID], "replicas that a reassignment removes", spare=3),
    Field(
        "state",
        _STATE,
        "online, or the worst of offline, under-min-isr, under-replicated; undecoded",
        spare=-1,
        tone=tones.state,
    ),
    Field("problems", [_PROBLEM], "all of them, and at-min-isr, unclean, reassigning, non-preferred", True),
    Field("minIsr", "int32", "min.insync.replicas: the topic's, the leader's, or the brokers'; null if unknown", True),
    Field(
        "leaderRecoveryState",
        _RECOVERY,
        "RECOVERED, or RECOVERING after an unclean election",
        True,
    ),
    Field("directories", ["string"], "for each replica, the id of the log directory that it is in", True),
)


def by_name(image: Image) -> Iterator[Topic]:
    """Yield the topics, sorted by name."""
    topics, names = image[TOPICS], image[NAMES]
    for name in sorted(names, key=sort_key):
        yield topics[names[name]]


def topic_rows(
    session: Session, image: Image, wanted: FieldNames, min_isr: MinIsr | None = None, where: Predicate | None = None
) -> Iterator[Row]:
    """Yield one row per topic, by name; partitions are decoded only if a wanted column needs them.

    Args:
        where: rows that do not fulfil it may be left out, so that the other columns need not be made.
    """
    make = _TopicFields(session, image, min_isr or MinIsr(image))
    tested = frozenset() if where is None else asked_for(_TOPIC_FIELDS, where)
    rest = (frozenset(field.name for field in _TOPIC_FIELDS) if wanted is None else wanted) - tested
    if not tested.isdisjoint(_OF_PARTITIONS):
        rest -= _OF_PARTITIONS | {"partitions"}
    for topic in by_name(image):
        row = make(topic, tested)
        if where is None or not tested or where(row):
            yield row | make(topic, rest)
        elif not _OF_PARTITIONS.isdisjoint(rest):
            topic.scan()  # this is where undecodable partitions are noticed


class _TopicFields:
    """Makes some columns of a topic; all that count partitions together."""

    def __init__(self, session: Session, image: Image, min_isr: MinIsr) -> None:
        self._session = session
        self._image = image
        self._min_isr = min_isr
        self._verdicts = Verdicts(_counted, min_isr)

    def __call__(self, topic: Topic, fields: Collection[str]) -> JsonObject:
        name = topic.name
        row: JsonObject = {}
        if not _OF_PARTITIONS.isdisjoint(fields):
            row = _counts(topic, self._verdicts)
        elif "partitions" in fields:
            row["partitions"] = topic.count()
        if "name" in fields:
            row["name"] = name
        if "topicId" in fields:
            row["topicId"] = str(topic.id)
        if "minIsr" in fields:
            row["minIsr"] = self._min_isr.of(name)
        if "configs" in fields:
            row["configs"] = _configs(self._session, name, self._image["configs"].get(("TOPIC", name), {}))
        return row


def _configs(session: Session, topic: str, own: Mapping[str, Entry[str]]) -> JsonObject:
    redact = session.redaction.config
    return {key: redact("TOPIC", key, entry.value) for key, entry in sorted(own.items())}


_COUNTED = {UNDER_REPLICATED: "underReplicated", OFFLINE: "offline", UNDER_MIN_ISR: "underMinIsr"}
"""Problem of a partition -> the column of ``topics`` that counts it."""


class _Counted(NamedTuple):
    """What a partition adds to its topic's row: one to each column in ``fields``, and its replication factor."""

    fields: tuple[str, ...]
    factor: int


def _counted(value: Partition, min_isr: int | None) -> _Counted:
    fields = [_COUNTED[problem] for problem in problems(value, min_isr) if problem in _COUNTED]
    return _Counted((*fields, *(("reassigning",) if is_reassigning(value) else ())), replication_factor(value))


_NO_COUNTS = {"underReplicated": 0, "offline": 0, "underMinIsr": 0, "reassigning": 0}


def _counts(topic: Topic, verdicts: Verdicts[_Counted]) -> JsonObject:
    counts = dict(_NO_COUNTS)
    name = topic.name
    known = verdicts.of_topic(name)
    partitions = topic.scan()
    counted = [
        (known.get(id(value)) or verdicts.add(name, value))[0]
        for _, value in partitions
        if isinstance(value, Partition)
    ]
    for fields in [fields for fields, _ in counted if fields]:  # most partitions have no problem
        for field in fields:
            counts[field] += 1
    factor = counted[0].factor if counted else None
    return {"partitions": len(partitions), "replicationFactor": factor, **counts}


_UNDECODED = _Counted((), -1)
"""A partition that cannot be decoded only adds to the number of partitions."""


def topic_counts(question: Question) -> Iterator[Step]:
    """Yield the steps of the number of topics that fulfil the condition (see :mod:`kshell.tables.row_counts`).

    A topic's row is tested again only where its partitions, its configs or min.insync.replicas change.
    """
    from kshell.tables.topics_over_time import MinIsrPast, PartitionPast, topic_configs, topic_names, topic_spans

    history, until, where = question.history, question.until, question.where
    condition_fields = asked_for(_TOPIC_FIELDS, where)
    deep = not condition_fields.isdisjoint((*_OF_PARTITIONS, "partitions"))

    def decide(value: Partition, min_isr: int | None) -> _Counted:
        fields, factor = _counted(value, min_isr)
        return _Counted(tuple(field for field in fields if field in condition_fields), factor)

    least = MinIsrPast(history, until, question.min_isr_default)
    past = PartitionPast(history, least, decide, lambda: _UNDECODED)
    keys = topic_configs(history, until)
    for name in question.with_progress(sorted(topic_names(history, until))):
        configs = {key: history.timeline("configs", (("TOPIC", name), key), until) for key in keys.get(name, ())}
        for span in topic_spans(history, name, until):
            topic = _TopicOverTime(question.session, span.topic)
            changes: list[tuple[int, Callable[[], None]]] = []
            for number, steps in past.steps(name, span) if deep else ():
                changes += [(step.offset, partial(topic.count, number, step.before, step.after)) for step in steps]
            for key, versions in configs.items():
                changes += [(max(since, span.start), partial(topic.configure, key, entry)) for since, entry in versions]
            for part in least.spans(name, span):
                enough = part.own if part.own is not None else least.of_brokers[part.brokers].of(name)
                changes.append((part.start, partial(topic.need, enough)))
            changes.sort(key=itemgetter(0))
            before = False
            for offset, group in groupby(changes, itemgetter(0)):
                if offset >= span.end:
                    break
                for _, change in group:
                    change()
                now = where(topic.row)
                if now != before:
                    yield offset, 1 if now else -1
                before = now
            if before:
                yield span.end, -1


class _TopicOverTime:
    """A topic's row that is updated as records change the topic. Call the methods in the order of the changes."""

    def __init__(self, session: Session, topic: Topic) -> None:
        counts = {"partitions": 0, "replicationFactor": None, **_NO_COUNTS}
        self.row: JsonObject = {"name": topic.name, "topicId": str(topic.id), **counts, "configs": {}}
        self._session = session
        self._own: dict[str, Entry[str]] = {}
        self._factors: dict[int, int] = {}
        """Partition number -> replication factor, for partitions that can be decoded."""

    def need(self, min_isr: int | None) -> None:
        """Set ``min.insync.replicas``."""
        self.row["minIsr"] = min_isr

    def configure(self, key: str, entry: Entry[str] | None) -> None:
        """Set or remove one of the topic's own configs."""
        if entry is None:
            self._own.pop(key, None)
        else:
            self._own[key] = entry
        self.row["configs"] = _configs(self._session, self.row["name"], self._own)

    def count(self, number: int, before: _Counted | None, after: _Counted | None) -> None:
        """Replace what a partition adds to the counts; a partition is removed only together with its topic."""
        row = self.row
        if before is None:
            row["partitions"] += 1
        else:
            for field in before.fields:
                row[field] -= 1
        if after is None or after is _UNDECODED:
            return
        for field in after.fields:
            row[field] += 1
        if self._factors.get(number) != after.factor:
            self._factors[number] = after.factor
            row["replicationFactor"] = self._factors[min(self._factors)]


class _SharedFields(NamedTuple):
    """The columns that all partitions with one value share."""

    fields: JsonObject
    lists: tuple[str, ...]
    """Names of the columns that are lists."""
    tested: JsonObject
    """The columns that the condition needs."""


def partition_rows(
    session: Session,
    image: Image,
    wanted: FieldNames,
    min_isr: MinIsr | None = None,
    only: frozenset[str] = frozenset(),
    where: Predicate | None = None,
) -> Iterator[Row]:
    """Yield one row per partition, by topic and number; partitions are decoded only if a wanted column needs them.

    Args:
        only: only partitions with any of these problems.
        where: rows that do not fulfil it may be left out, so that they need not be made. If it needs only columns that
            many partitions share, it is tested once for all of them.
    """
    least = min_isr or MinIsr(image)
    fields_of = _ValueFields(wanted)
    condition_fields = frozenset() if where is None else asked_for(_PARTITION_FIELDS, where)
    of_topics = where if condition_fields and condition_fields <= _OF_TOPICS else None
    of_values = where if condition_fields and condition_fields.isdisjoint(_OF_ROWS) else None
    of_rows = where if condition_fields and of_topics is None and of_values is None else None

    def shared_fields(value: Partition, enough: int | None) -> _SharedFields | None:
        """Return the shared columns for a value; ``None`` if there are to be no rows for it."""
        if only and only.isdisjoint(problems(value, enough)):
            return None
        fields = fields_of(value, enough)
        if of_values is not None and not of_values(fields):
            return None
        lists = tuple(field for field, cell in fields.items() if type(cell) is list)
        return _SharedFields(
            fields, lists, {field: cell for field, cell in fields.items() if field in condition_fields}
        )

    verdicts = Verdicts(shared_fields, least, by_epochs=wanted is None or not _EPOCHS.isdisjoint(wanted))
    for topic in by_name(image):
        name, topic_id = topic.name, str(topic.id)
        if not (fields_of or only):
            for number in topic.numbers():
                yield {"topic": name, "topicId": topic_id, "partition": number}
            continue
        verdicts_by_value = verdicts.of_topic(name)
        partitions = topic.scan()  # even if no row is wanted: this is where undecodable partitions are noticed
        if of_topics is not None and not of_topics({"topic": name, "topicId": topic_id}):
            continue
        for number, value in partitions:
            verdict = verdicts_by_value.get(id(value))
            if verdict is None:
                if not isinstance(value, Partition):
                    if not only:
                        yield {"topic": name, "topicId": topic_id, "partition": number, "state": UNDECODED}
                    continue
                verdict = verdicts.add(name, value)
            if verdict[0] is None:
                continue
            fields, lists, tested = verdict[0]
            if of_rows is not None and not of_rows({"topic": name, "topicId": topic_id, "partition": number, **tested}):
                continue
            row = {"topic": name, "topicId": topic_id, "partition": number, **fields}
            for field in lists:
                row[field] = row[field][:]  # a copy: each row may be changed by its reader
            yield row


def partition_counts(question: Question) -> Iterator[Step]:
    """Yield the steps of the number of partitions that fulfil the condition (see :mod:`kshell.tables.row_counts`).

    The condition is tested once for all partitions that do not differ in the columns that it needs.
    """
    from kshell.tables.topics_over_time import MinIsrPast, PartitionPast, topic_names, topic_spans

    history, until, where = question.history, question.until, question.where
    condition_fields = asked_for(_PARTITION_FIELDS, where)
    fields_of = _ValueFields(condition_fields)
    row: JsonObject = {}

    def decide(value: Partition, enough: int | None) -> bool:
        return where({**row, **fields_of(value, enough)})

    def undecoded() -> bool:
        return where({**row, "state": UNDECODED})

    least = MinIsrPast(history, until, question.min_isr_default)
    aspects = Aspects(
        rest=not condition_fields <= _EPOCHS | _OF_ROWS,
        leader_epoch="leaderEpoch" in condition_fields,
        partition_epoch="partitionEpoch" in condition_fields,
    )
    past = PartitionPast(history, least, decide, undecoded, aspects)
    for name in question.with_progress(sorted(topic_names(history, until))):
        for span in topic_spans(history, name, until):
            row |= {"topic": name, "topicId": str(span.topic.id)}
            if not condition_fields.isdisjoint(_OF_TOPICS):
                past.forget()
            for number, steps in past.steps(name, span):
                row["partition"] = number
                if "partition" in condition_fields:
                    past.forget()
                for step in steps:
                    change = bool(step.after) - bool(step.before)
                    if change:
                        yield step.offset, change


class _ValueFields:
    """Makes the wanted columns of a partition that depend only on its value and on min.insync.replicas."""

    def __init__(self, wanted: FieldNames) -> None:
        self._facts = [(field, make) for field, make in PARTITION_VALUES.items() if wanted is None or field in wanted]
        self._needs_problems = wanted is None or not _PROBLEM_FIELDS.isdisjoint(wanted)

    def __bool__(self) -> bool:
        """Whether any such column is wanted."""
        return self._needs_problems or bool(self._facts)

    def __call__(self, value: Partition, min_isr: int | None) -> JsonObject:
        fields: JsonObject = {}
        if self._needs_problems:
            problem_names = problems(value, min_isr)
            fields = {"state": state(problem_names), "problems": problem_names, "minIsr": min_isr}
        for field, make in self._facts:
            fields[field] = make(value)
        return fields


def _listed(values: Iterable[object], convert: Callable[[object], object] | None = None) -> list[object] | None:
    if is_unreported(values):
        return None
    return list(values) if convert is None else list(map(convert, values))


PARTITION_VALUES: dict[str, Callable[[Partition], object]] = {
    "leader": lambda value: reported_or_none(value.leader),
    "leaderEpoch": lambda value: value.leader_epoch,
    "partitionEpoch": lambda value: reported_or_none(value.partition_epoch),
    "replicas": lambda value: list(value.replicas),
    "isr": lambda value: list(value.isr),
    "elr": lambda value: _listed(value.elr),
    "lastKnownElr": lambda value: _listed(value.last_known_elr),
    "addingReplicas": lambda value: _listed(value.adding_replicas),
    "removingReplicas": lambda value: _listed(value.removing_replicas),
    "leaderRecoveryState": lambda value: reported_or_none(value.leader_recovery_state),
    "directories": lambda value: _listed(value.directories, str),
}
"""Column of ``partitions`` -> how it is made from a partition's value alone."""
_PROBLEM_FIELDS = frozenset(("state", "problems", "minIsr"))
"""Columns that depend on min.insync.replicas, too."""
_EPOCHS = frozenset(("leaderEpoch", "partitionEpoch"))
_OF_TOPICS = frozenset(("topic", "topicId"))
_OF_ROWS = _OF_TOPICS | {"partition"}
"""Columns that a partition's value does not have."""

TOPICS_TABLE = table(
    Table("topics", "the topics", _TOPIC_FIELDS, topic_rows, ("topics", "configs", "brokers"), topic_counts)
)
PARTITIONS_TABLE = table(
    Table(
        "partitions",
        "the partitions of all topics",
        _PARTITION_FIELDS,
        partition_rows,
        ("topics", "configs", "brokers"),
        partition_counts,
    )
)
