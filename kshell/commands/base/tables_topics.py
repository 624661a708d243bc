"""The tables ``topics`` and ``partitions``. Rows are made while they are read: a large cluster has a million."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kshell.commands.base.enumeration import Enumeration
from kshell.commands.base.result import Row
from kshell.commands.base.tables import Field, Table, Wanted, table
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.min_isr import MinIsr
from kshell.metadata.names import sort_key
from kshell.metadata.partial import is_untold, known
from kshell.metadata.partition_state import (
    OFFLINE,
    PROBLEMS,
    STATES,
    UNDECODED,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    is_reassigning,
    problems,
    replication_factor,
    state,
)
from kshell.metadata.partitions import RECOVERY_STATES, Partition, Topic

if TYPE_CHECKING:
    from kshell.session import Session

_OF_PARTITIONS = frozenset(("replicationFactor", "underReplicated", "offline", "underMinIsr", "reassigning"))
"""Fields of a topic for which its partitions must be decoded."""

_TOPIC_FIELDS = (
    Field("name", "string", "the topic's name"),
    Field("topicId", "string", "its id, a UUID as Kafka writes it", spare=True),
    Field("partitions", "int32", "how many partitions it has"),
    Field("replicationFactor", "int16", "replicas of its first partition, without those that are being added"),
    Field("underReplicated", "int32", "partitions whose ISR is smaller than their replication factor"),
    Field("offline", "int32", "partitions without a leader"),
    Field("configs", {"*": "string"}, "what is set at the topic itself: key -> value", spare=True),
    Field("minIsr", "int32", "min.insync.replicas, the topic's or the brokers'; null where the log has neither", True),
    Field("underMinIsr", "int32", "partitions that lack a leader, or in-sync replicas to reach minIsr", True),
    Field("reassigning", "int32", "partitions to which replicas are being added, or from which removed", True),
)

_STATE = Enumeration(STATES)
_PROBLEM = Enumeration(PROBLEMS)
_RECOVERY = Enumeration(RECOVERY_STATES.values())
_PARTITION_FIELDS = (
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "the topic's id", spare=True),
    Field("partition", "int32", "the partition's number"),
    Field("leader", "int32", "the broker that leads; -1 for none"),
    Field("leaderEpoch", "int32", "rises with every new leader", spare=True),
    Field("partitionEpoch", "int32", "rises with every change", spare=True),
    Field("replicas", ["int32"], "brokers that are to have it, the preferred leader first"),
    Field("isr", ["int32"], "those in sync"),
    Field("elr", ["int32"], "those outside the ISR that may lead without loss (KIP-966)"),
    Field("lastKnownElr", ["int32"], "those in the ISR or ELR before they had an unclean shutdown", spare=True),
    Field("addingReplicas", ["int32"], "replicas that a reassignment adds", spare=True),
    Field("removingReplicas", ["int32"], "replicas that a reassignment removes", spare=True),
    Field("state", _STATE, "online, or the worst of offline, under-min-isr, under-replicated; undecoded"),
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
    """The topics, sorted as Kafka sorts their names."""
    topics, names = image[TOPICS], image[NAMES]
    for name in sorted(names, key=sort_key):
        yield topics[names[name]]


def topic_rows(session: Session, image: Image, wanted: Wanted, min_isr: MinIsr | None = None) -> Iterator[Row]:
    """One row a topic; partitions are decoded only where a field needs them."""
    least = min_isr or MinIsr(image)
    deep = wanted is None or not _OF_PARTITIONS.isdisjoint(wanted)
    count = wanted is None or "partitions" in wanted
    configs, shown = image["configs"], session.redaction.config
    for topic in by_name(image):
        name = topic.name
        row: dict[str, Any] = {"name": name, "topicId": str(topic.id), "minIsr": least.of(name)}
        if deep:
            row |= _counts(topic, least)
        elif count:
            row["partitions"] = topic.count()
        own = sorted(configs.get(("TOPIC", name), {}).items())
        row["configs"] = {key: shown("TOPIC", key, entry.value) for key, entry in own}
        yield row


def _counts(topic: Topic, least: MinIsr) -> dict[str, Any]:
    counted = {UNDER_REPLICATED: 0, OFFLINE: 0, UNDER_MIN_ISR: 0}
    factor, total, moving = None, 0, 0
    name = topic.name
    for _, value in topic.scan():
        total += 1
        if not isinstance(value, Partition):
            continue
        if factor is None:
            factor = replication_factor(value)
        leader = value.leader
        if leader == -1 or len(value.isr) < len(value.replicas) or (least.of(name, leader) or 0) > len(value.isr):
            for problem in problems(value, least.of(name, leader)):
                if problem in counted:
                    counted[problem] += 1
        moving += is_reassigning(value)
    return {
        "partitions": total,
        "replicationFactor": factor,
        "underReplicated": counted[UNDER_REPLICATED],
        "offline": counted[OFFLINE],
        "underMinIsr": counted[UNDER_MIN_ISR],
        "reassigning": moving,
    }


def partition_rows(
    session: Session, image: Image, wanted: Wanted, min_isr: MinIsr | None = None, only: Collection[str] = ()
) -> Iterator[Row]:
    """One row a partition, by topic and number; decoded only where a field needs it. ``only``: those that have any of
    these problems.
    """
    least = min_isr or MinIsr(image)
    facts = [(field, make) for field, make in _FACTS.items() if wanted is None or field in wanted]
    judged = bool(only) or wanted is None or not _JUDGED.isdisjoint(wanted)
    for topic in by_name(image):
        name, topic_id = topic.name, str(topic.id)
        if not (facts or judged):
            for number in topic.numbers():
                yield {"topic": name, "topicId": topic_id, "partition": number}
            continue
        for number, value in topic.scan():
            row: dict[str, Any] = {"topic": name, "topicId": topic_id, "partition": number}
            if isinstance(value, Partition):
                if judged:
                    enough = least.of(name, value.leader)
                    found = problems(value, enough)
                    if only and not any(one in only for one in found):
                        continue
                    row |= {"state": state(found), "problems": found, "minIsr": enough}
                for field, make in facts:
                    row[field] = make(value)
            elif only:
                continue
            else:
                row["state"] = UNDECODED
            yield row


def _listed(values: Iterable[Any], convert: Any = None) -> list[Any] | None:
    if is_untold(values):
        return None
    return list(values) if convert is None else list(map(convert, values))


_FACTS: dict[str, Callable[[Partition], Any]] = {
    "leader": lambda value: known(value.leader),
    "leaderEpoch": lambda value: value.leader_epoch,
    "partitionEpoch": lambda value: known(value.partition_epoch),
    "replicas": lambda value: list(value.replicas),
    "isr": lambda value: list(value.isr),
    "elr": lambda value: _listed(value.elr),
    "lastKnownElr": lambda value: _listed(value.last_known_elr),
    "addingReplicas": lambda value: _listed(value.adding_replicas),
    "removingReplicas": lambda value: _listed(value.removing_replicas),
    "leaderRecoveryState": lambda value: known(value.leader_recovery_state),
    "directories": lambda value: _listed(value.directories, str),
}
"""Fields of a partition that its record has."""
_JUDGED = frozenset(("state", "problems", "minIsr"))
"""Those for which it is held against min.insync.replicas."""

TOPICS_TABLE = table(Table("topics", "the topics", _TOPIC_FIELDS, topic_rows, ("topics", "configs", "brokers")))
PARTITIONS_TABLE = table(
    Table(
        "partitions",
        "the partitions of all topics",
        _PARTITION_FIELDS,
        partition_rows,
        ("topics", "configs", "brokers"),
    )
)
