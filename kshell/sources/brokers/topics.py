"""Ask brokers for topics and partitions (KIP-516, KIP-966) and ongoing reassignments (KIP-455), and write a delta.

DescribeTopicPartitions reports the ELR and is paged; a broker without it (below 3.8) is asked for Metadata, in one
request. A broker silently leaves out the topics that the principal may not DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kshell.client.nodes import Nodes
from kshell.errors import (
    AuthorizationError,
    ConnectError,
    NodeError,
    ProtocolError,
    ServerError,
    SourceTimeoutError,
    UnsupportedVersionError,
)
from kshell.metadata.delta import Delta
from kshell.metadata.families.topics import NAMES, TOPICS, create
from kshell.metadata.partial import UNREPORTED
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.values import Entry
from kshell.protocol.messages.cluster import DESCRIBE_TOPIC_PARTITIONS, LIST_PARTITION_REASSIGNMENTS, METADATA
from kshell.protocol.names import error_name
from kshell.protocol.primitives import ZERO_UUID
from kshell.protocol.schema import Versions
from kshell.sources.brokers.requests import NodeAnswer, ask, raise_if_no_broker_answers

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

_PAGE = 2000
"""Partitions in one answer: the most that a broker returns by default."""
_MOST_PAGES = 20_000
"""The most pages that are read; full ones have forty million partitions, more than any cluster has."""
_PATIENCE = 10.0
"""The most seconds that topics wait for the ongoing reassignments: without them they are shown, too."""
_WITH_IDS = Versions(10, None)
_LISTENER_NOT_FOUND = 72
"""Error: the leader has no listener of the name that this broker was asked at, so the broker does not report it."""

Moves = dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]
"""(topic, partition) -> replicas being added, replicas being removed."""


def topics(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write every topic that brokers report; after an error write none. Raises NodeError."""
    moves = _moves(nodes, notes)
    written: dict[str, Topic] = {}
    try:
        _write(nodes, delta, notes, moves, written)
    except NodeError:
        for name, topic in written.items():  # else some of the topics would look like all of them
            delta.drop(NAMES, name)
            delta.drop(TOPICS, topic.id)
        raise


def _write(nodes: Nodes, delta: Delta, notes: list[str], moves: Moves | None, written: dict[str, Topic]) -> None:
    for answer, topic in _pages(nodes):
        code, name = topic["errorCode"], topic["name"]
        if code or name is None or topic["topicId"] == ZERO_UUID:
            notes.append(f"{answer.node}: topic {name}: {error_name(code) if code else 'no id is reported'}: left out")
            continue
        existing = written.get(name)
        if existing is not None and existing.id != topic["topicId"]:  # deleted and created again between two pages
            delta.drop(TOPICS, existing.id)
            existing = None
        if existing is None:
            existing = written[name] = create(delta, name, topic["topicId"], answer.origin)
        for item in topic["partitions"]:
            number = item["partitionIndex"]
            existing.put(number, Entry(_partition(name, item, moves), answer.origin))


def _pages(nodes: Nodes, size: int = _PAGE) -> Iterator[tuple[NodeAnswer, Message]]:
    """Yield (answer, topic) of every topic. A topic that a page cuts is yielded again with its other partitions."""
    cursor: Message | None = None
    for _ in range(_MOST_PAGES):
        page = {"topics": [], "responsePartitionLimit": size, "cursor": cursor}
        try:
            answer = ask(nodes, DESCRIBE_TOPIC_PARTITIONS, page)
        except UnsupportedVersionError:
            if cursor is not None:
                raise
            answer = ask(nodes, METADATA, {"topics": None, "allowAutoTopicCreation": False}, _WITH_IDS)
            yield from ((answer, topic) for topic in answer.body["topics"])
            return
        yield from ((answer, topic) for topic in answer.body["topics"])
        after = answer.body["nextCursor"]
        if after is None:
            return
        if cursor is not None and _place(after) <= _place(cursor):
            reason = "the next page begins where the last one did"
            raise ProtocolError(answer.node, reason, api=DESCRIBE_TOPIC_PARTITIONS.name)
        if not answer.body["topics"]:
            reason = "a page is empty, and another one is reported to follow"
            raise ProtocolError(answer.node, reason, api=DESCRIBE_TOPIC_PARTITIONS.name)
        cursor = after
    raise ProtocolError(answer.node, f"there is no end after {_MOST_PAGES:,} pages", api=DESCRIBE_TOPIC_PARTITIONS.name)


def any_topic(nodes: Nodes) -> str | None:
    """The name of some topic; ``None`` if the principal sees none. Raises NodeError."""
    return next((topic["name"] for _, topic in _pages(nodes, 1) if not topic["errorCode"]), None)


def _place(cursor: Message) -> tuple[str, int]:
    return cursor["topicName"], cursor["partitionIndex"]


def _partition(topic: str, item: Message, moves: Moves | None) -> Partition:
    adding, removing = (
        (UNREPORTED, UNREPORTED) if moves is None else moves.get((topic, item["partitionIndex"]), ((), ()))
    )
    return Partition(
        replicas=tuple(item["replicaNodes"]),
        directories=UNREPORTED,
        isr=tuple(item["isrNodes"]),
        removing_replicas=removing,
        adding_replicas=adding,
        elr=_listed(item.get("eligibleLeaderReplicas")),
        last_known_elr=_listed(item.get("lastKnownElr")),
        leader=UNREPORTED if item["errorCode"] == _LISTENER_NOT_FOUND else item["leaderId"],
        leader_recovery_state=UNREPORTED,
        leader_epoch=item["leaderEpoch"],
        partition_epoch=UNREPORTED,
    )


def _listed(ids: list[int] | None) -> Any:
    return UNREPORTED if ids is None else tuple(ids)


def _moves(nodes: Nodes, notes: list[str]) -> Moves | None:
    """The ongoing reassignments; ``None``, with a note, if they are not known.

    Brokers pass this request on to the active controller, so without one there is no answer in time. If brokers are
    down meanwhile, the request for topics, which comes next, goes on trying. Raises SourceTimeoutError if they hang.
    """
    try:
        answer = ask(nodes, LIST_PARTITION_REASSIGNMENTS, {"topics": None}, seconds=_PATIENCE)
    except (AuthorizationError, UnsupportedVersionError, ServerError, SourceTimeoutError, ConnectError) as error:
        if isinstance(error, SourceTimeoutError):
            raise_if_no_broker_answers(nodes, error)
        acl_hint = " (the principal needs DESCRIBE on CLUSTER:kafka-cluster)" * isinstance(error, AuthorizationError)
        notes.append(f"adding and removing replicas are not known: {error.message}{acl_hint}")
        return None
    return {
        (topic["name"], item["partitionIndex"]): (tuple(item["addingReplicas"]), tuple(item["removingReplicas"]))
        for topic in answer.body["topics"]
        for item in topic["partitions"]
    }
