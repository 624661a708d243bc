"""Events out of states: what became of a partition, and of the brokers that hold it, one row a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kshell.engine.result import Row, typed
from kshell.history.lifetimes import Held, Partitions, runs
from kshell.history.story import STATE, Story, told
from kshell.metadata.families.cluster import Broker
from kshell.metadata.partial import is_untold, known
from kshell.metadata.partitions import Partition
from kshell.metadata.values import plain
from kshell.protocol.primitives import Uuid
from kshell.sources.points import Since
from kshell.tree.image import iso

COLUMNS = typed(
    "offset:int64 time:string timeMs:int64 type:string event:string broker:int32 what:string leader:int32 isr:[int32]"
    " elr:[int32] lastKnownElr:[int32] replicas:[int32] addingReplicas:[int32] removingReplicas:[int32]"
    " leaderRecoveryState:string leaderEpoch:int32 partitionEpoch:int32"
)
_STATE = tuple(column.name for column in COLUMNS[7:])


class Event(NamedTuple):
    """What a record did: a stable word (``leader-lost``), words for people, the broker that it is about, if one."""

    at: Held[Any]
    event: str
    what: str
    broker: int | None = None


def partition_events(held: Partitions) -> Iterator[Event]:
    """What happened to a partition, oldest first."""
    for before, one in runs(held):
        if one.value is None:
            yield Event(one, "deleted", "the topic is deleted")
        elif one.since < 0:
            where = "as the log begins" if one.since != STATE else "as it stands; the records between are not known"
            yield Event(one, "snapshot" if one.since != STATE else "state", where)
        elif before is None or before.value is None:
            leader = "no leader" if one.value.leader < 0 else f"broker {one.value.leader} leads"
            yield Event(one, "created", f"created; {leader}")
        else:
            yield _change(one, before.value, one.value)


def _change(at: Held[Partition], old: Partition, new: Partition) -> Event:
    changes = [
        *_leader(old, new), *_replicas(old, new), *_set("isr", "ISR", old.isr, new.isr),
        *_set("elr", "ELR", old.elr, new.elr), *_recovery(old, new),
    ]  # fmt: skip
    if not changes:
        moved = old.directories != new.directories
        changes = [("directories-changed", "log directories assigned") if moved else ("rewritten", "no visible change")]
    return Event(at, changes[0][0], "; ".join(words for _, words in changes))


def is_unclean(old: Partition, new: Partition) -> bool:
    """Whether a leader was elected that may lack records: Kafka marks it RECOVERING (KIP-704)."""
    if new.leader < 0 or new.leader == old.leader:
        return False
    if new.leader_recovery_state == "RECOVERING" and (old.leader_recovery_state != "RECOVERING"):
        return True
    return new.leader not in (*old.isr, *old.elr) and new.replicas == old.replicas


def _leader(old: Partition, new: Partition) -> Iterator[tuple[str, str]]:
    if is_unclean(old, new):
        known = ", as the last leader that was known," if new.leader in told(old.last_known_elr) else ""
        yield "unclean-election", f"broker {new.leader}{known} elected uncleanly: records may be lost"
    elif new.leader == old.leader:
        if new.leader_epoch != old.leader_epoch and new.leader >= 0:
            yield "leader-renewed", f"broker {new.leader} leads on, in a new leader epoch"
    elif new.leader < 0:
        yield "leader-lost", f"no leader, after broker {old.leader}"
    elif old.leader < 0:
        yield "leader-elected", f"broker {new.leader} leads again, after none"
    else:
        yield "leader-changed", f"broker {new.leader} leads, after broker {old.leader}"


def _replicas(old: Partition, new: Partition) -> Iterator[tuple[str, str]]:
    was, moving = (bool(one.adding_replicas or one.removing_replicas) for one in (old, new))
    goal = ids(tuple(one for one in new.replicas if one not in new.removing_replicas))
    if moving and (old.adding_replicas, old.removing_replicas) != (new.adding_replicas, new.removing_replicas):
        yield "reassignment-started", f"reassignment to {goal}"
    elif was and not moving:
        yield "reassignment-ended", f"reassignment ended: replicas {goal}"
    elif old.replicas != new.replicas:
        yield "replicas-changed", f"replicas {ids(new.replicas)}, after {ids(old.replicas)}"


def _set(name: str, title: str, old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
    if not gone and not come:
        return
    event = f"{name}-changed" if gone and come else f"{name}-shrunk" if gone else f"{name}-grown"
    words = [f"{verb} {ids(some)}" for verb, some in (("loses", gone), ("gains", come)) if some]
    yield event, f"{title} {' and '.join(words)}"


def _recovery(old: Partition, new: Partition) -> Iterator[tuple[str, str]]:
    if old.leader_recovery_state == "RECOVERING" != new.leader_recovery_state:
        yield "recovered", "recovered from the unclean election"


# --- brokers ---------------------------------------------------------------------------------------------------------


def broker_events(broker_id: int, held: list[Held[Broker]]) -> Iterator[Event]:
    """What happened to a broker, oldest first; states that a snapshot gives are no events."""
    for before, one in runs(held):
        if one.since < 0:
            continue
        found = list(_broker_change(before.value if before else None, one.value))
        if found:
            yield Event(one, found[0][0], f"broker {broker_id} {', '.join(words for _, words in found)}", broker_id)


def _broker_change(old: Broker | None, new: Broker | None) -> Iterator[tuple[str, str]]:
    if new is None:
        yield "broker-unregistered", "unregistered"
        return
    if old is None or old.epoch != new.epoch:
        again = "" if old is None else " again"
        yield "broker-registered", f"registered{again}, {'fenced' if new.fenced else 'unfenced'}"
        return
    if new.in_controlled_shutdown and not old.in_controlled_shutdown:
        yield "broker-controlled-shutdown", "in controlled shutdown"
    lost = [one for one in told_directories(old) if one not in told_directories(new)]
    if lost:
        yield "broker-directory-lost", f"lost log directory {', '.join(map(str, lost))}"
    if new.fenced != old.fenced:
        yield ("broker-fenced", "fenced") if new.fenced else ("broker-unfenced", "unfenced")


def told_directories(broker: Broker) -> tuple[Uuid, ...]:
    """The log directories of a registration; none where a source does not tell them."""
    return () if is_untold(broker.directories) else broker.directories


# --- together --------------------------------------------------------------------------------------------------------


def event_rows(story: Story, held: Partitions, since: Since | None) -> list[Row]:
    """The events of a partition and of the brokers that had it then, with the partition's state after each."""
    brokers = sorted({broker for one in held if one.value is not None for broker in everyone(one.value)})
    told_of = [event for broker in brokers for event in broker_events(broker, story.broker(broker))]
    events = sorted([*partition_events(held), *told_of], key=lambda one: _order(one.at))
    rows: list[Row] = []
    state: Partition | None = None
    first = _order(held[0])
    for event in events:
        before = state
        if event.broker is None:
            state = event.at.value
        if _order(event.at) < first or (event.broker is not None and not _concerns(event.broker, before)):
            continue
        if since is None or event.at.since == STATE or since.includes(event.at.since, event.at.time):
            rows.append(_row(event, state))
    return rows


def _order(held: Held[Any]) -> tuple[int, int]:
    return (held.offset if held.since < 0 else held.since), held.offset


def everyone(partition: Partition) -> set[int]:
    """The brokers that have a partition, or had when they were last known to."""
    return {*partition.replicas, *told(partition.elr), *told(partition.last_known_elr)}


def _concerns(broker: int, partition: Partition | None) -> bool:
    return partition is not None and broker in everyone(partition)


def _row(event: Event, state: Partition | None) -> dict[str, Any]:
    at = event.at
    shown = dict.fromkeys(_STATE) if state is None else {name: known(plain(state)[name]) for name in _STATE}
    return {
        "offset": None if at.offset < 0 else at.offset,
        "time": iso(at.time),
        "timeMs": None if at.time < 0 else at.time,
        "type": at.record_type,
        "event": event.event,
        "broker": event.broker,
        "what": event.what,
        **shown,
    }


def ids(brokers: tuple[int, ...] | list[int]) -> str:
    """Broker ids in a row: ``0,1,2``; ``none``."""
    return ",".join(map(str, brokers)) or "none"
