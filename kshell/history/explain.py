"""``why``: the events of a partition and of the brokers that hold it, one row per record, and its state in a sentence.

The sentence says who leads since when, who does not and since when, and why. Only what records say: the cause of an
outage outside the cluster is not among it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kshell.engine.result import Row, typed
from kshell.history.story import STATE, Brokers, Held, Partitions, Story, runs, told
from kshell.metadata.election import leaderless
from kshell.metadata.families.cluster import Broker
from kshell.metadata.partial import is_untold, known
from kshell.metadata.partition_state import is_online
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


_UP, _FENCED, _SHUTDOWN, _GONE = "unfenced", "fenced", "in controlled shutdown", "not registered"
_UNTOLD = "registered"


def broker_status(broker: Broker | None) -> str:
    """One word or three: whether a broker can lead."""
    if broker is None:
        return _GONE
    if is_untold(broker.fenced):
        return _UNTOLD
    if broker.fenced is True:
        return _FENCED
    return _SHUTDOWN if broker.in_controlled_shutdown is True else _UP


def trailing(held: list[Held[Any]], holds: Callable[[Any], bool]) -> Held[Any] | None:
    """The first of the last values in a row for which something holds."""
    found = None
    for one in reversed(held):
        if not holds(one.value):
            break
        found = one
    return found


def since(held: Held[Any] | None) -> str:
    """``since 2026-… (offset 70)``; where a state is all there is, how long at least."""
    if held is None or held.since == STATE:
        return "(since when is not known)"
    when = f"{iso(held.time) or 'a time not known'} (offset {held.offset})"
    return f"since {when}" if held.since >= 0 else f"since {when} at the latest"


def sentence(story: Story, topic: str, held: Partitions, min_isr: int | None = None) -> str:
    """The story's end: a few sentences. ``min_isr`` is what its leader asks for, if that is known."""
    last = held[-1]
    if last.value is None:
        return f"The topic {topic} was deleted at offset {last.offset}, {iso(last.time) or 'at a time not known'}."
    if is_untold(last.value.leader):
        return "Who leads is not told."
    said = _leaderless(story, held) if last.value.leader < 0 else [*_led(story, held), *_refused(held, min_isr)]
    return " ".join([*said, *_moving(story, held), *_lossy(held)])


# --- without a leader ------------------------------------------------------------------------------------------------


def _leaderless(story: Story, held: Partitions) -> list[str]:
    present = held[-1].value
    assert present is not None
    lost = trailing(held, lambda one: one is not None and one.leader < 0)
    before = _before(held, lost)
    in_sync = told(present.isr) or (before.isr if before is not None else ())
    said = f"No leader {since(lost)}"
    if len(in_sync) == 1:
        link = "only in-sync replica is" if told(present.isr) else "last in-sync replica was"
        said += f": its {link} {_was(story, in_sync[0])}"
    elif in_sync:
        said += f": of its {'in-sync' if told(present.isr) else 'last in-sync'} replicas " + "; ".join(
            _was(story, broker) for broker in in_sync
        )
    return [f"{said}.", *_candidates(story, present)]


def _before(held: Partitions, at: Held[Any] | None) -> Partition | None:
    return next((before.value for before, one in runs(held) if one is at and before is not None), None)


def _candidates(story: Story, present: Partition) -> list[str]:
    """Who may lead without loss, and who may not: Kafka elects among the replicas, and reads the ELR without an ISR."""
    case = leaderless(story.image, "", present)
    said = []
    if case.complete:
        only, them = ("Only broker", "it") if len(case.complete) == 1 else ("Only brokers", "one of them")
        be = "is" if len(case.complete) == 1 else "are"
        known = f"{only} {ids(case.complete)} {be} known to hold all committed records ({case.source})"
        said.append(f"{known}: the partition waits for {them}.")
    else:
        known = f" (last known ELR: {ids(told(present.last_known_elr))})" if told(present.last_known_elr) else ""
        left = "" if case.awaits_last_leader else ": what is left is an unclean election"
        said.append(f"No replica is known to hold all committed records{known}{left}.")
    if case.departed:
        brokers, be = ("Broker", "is no replica") if len(case.departed) == 1 else ("Brokers", "are no replicas")
        said.append(
            f"{brokers} {ids(case.departed)} of the {case.source} {be} any more: Kafka elects among replicas only."
        )
    rest = [broker for broker in present.replicas if broker not in case.complete]
    up = [broker for broker in rest if _status(story, broker) == _UP]
    if up:
        brokers, be, them = ("Broker", "is", "it") if len(up) == 1 else ("Brokers", "are", "one of them")
        may = f"an unclean election of {them} may lose some"
        said.append(f"{brokers} {ids(up)} {be} unfenced, but may lack records: {may}.")
    elif rest:
        said.append(f"No other replica is up ({'; '.join(_state(story, broker) for broker in rest)}).")
    return said


def _was(story: Story, broker: int) -> str:
    """``broker 2, which was fenced at offset 71 (…) and unregistered at offset 77 (…)``."""
    fell = _fall(story, broker)
    status = _status(story, broker)
    if status == _UP:
        return f"broker {broker}, which is unfenced"
    if not fell:
        return f"broker {broker}, which is {status}"
    return f"broker {broker}, which was {' and '.join(fell)}"


def _fall(story: Story, broker: int) -> list[str]:
    """How a broker went away, in the last words of its history: ``fenced at offset 71 (…)``."""
    held = story.broker(broker)
    down = trailing(held, lambda one: broker_status(one) != _UP)
    at = held.index(down) if down is not None else len(held)
    found = [event for event in broker_events(broker, held[max(0, at - 1) :]) if at == 0 or event.at in held[at:]]
    words = [f"{_verb(event.event)} at offset {event.at.offset} ({iso(event.at.time)})" for event in found]
    return words if len(words) <= 3 else [words[0], f"{len(words) - 2} changes later", words[-1]]


def _verb(event: str) -> str:
    word = event.removeprefix("broker-")
    return {"controlled-shutdown": "shut down in a controlled way", "registered": "registered again, fenced,"}.get(
        word, word
    )


def _status(story: Story, broker: int) -> str:
    held: Brokers = story.broker(broker)
    return broker_status(held[-1].value if held else None)


def _state(story: Story, broker: int) -> str:
    fell = _fall(story, broker)
    return f"broker {broker}: {' and '.join(fell)}" if fell else f"broker {broker} is {_status(story, broker)}"


# --- with one --------------------------------------------------------------------------------------------------------


def _led(story: Story, held: Partitions) -> list[str]:
    present = held[-1].value
    assert present is not None
    run = trailing(held, lambda one: one is not None and one.leader == present.leader)
    said = [f"Broker {present.leader} leads {since(run)}."]
    out = [broker for broker in present.replicas if broker not in told(present.isr)]
    if not out:
        full = trailing(held, lambda one: one is not None and set(one.replicas) <= set(told(one.isr)))
        count = len(present.replicas)
        every = "Both" if count == 2 else f"All {count}"
        said.append(f"{every} replicas are in sync {since(full)}." if count > 1 else _alone(held))
    said += [_out(story, held, broker) for broker in out]
    preferred = present.replicas[0] if present.replicas else present.leader
    if preferred != present.leader:
        said.append(f"Its preferred leader is broker {preferred} ({_status(story, preferred)}).")
    return said


def _alone(held: Partitions) -> str:
    run = trailing(held, lambda one: one is not None and len(one.replicas) == 1)
    return f"It has no other replica {since(run)}: when that broker is away, there is no leader."


def _out(story: Story, held: Partitions, broker: int) -> str:
    """Why a replica is not in sync, as far as records tell."""
    run = trailing(held, lambda one: one is not None and broker in one.replicas and broker not in told(one.isr))
    status = _status(story, broker)
    fell = _fall(story, broker) if status != _UP else []
    present = held[-1].value
    assert present is not None
    eligible = " It is known to hold all committed records (ELR)." if broker in told(present.elr) else ""
    why = f"it was {' and '.join(fell)}" if fell else f"it is {status}"
    if status == _UP and not _is_stored(story, present, broker):
        why += ", but does not have the replica's log directory (a failed disk, or one that was taken away)"
    return f"Broker {broker} is out of sync {since(run)}: {why}.{eligible}"


def _is_stored(story: Story, present: Partition, broker: int) -> bool:
    """Whether a broker that is registered has the log directory of its replica, as far as that is told."""
    registered = story.broker(broker)[-1].value
    if registered is None or is_untold(present.directories):
        return True
    place = dict(zip(present.replicas, present.directories, strict=True)).get(broker)
    return place is None or is_online(place, told_directories(registered))


def _refused(held: Partitions, min_isr: int | None) -> list[str]:
    """A partition that is led may refuse writes all the same."""
    present = held[-1].value
    assert present is not None
    in_sync = told(present.isr)
    if min_isr is None or is_untold(present.isr) or len(in_sync) >= min_isr:
        return []
    run = trailing(held, lambda one: one is not None and len(told(one.isr)) <= len(in_sync))
    replicas = "1 replica" if len(in_sync) == 1 else f"{len(in_sync)} replicas"
    verb = "is" if len(in_sync) == 1 else "are"
    least = f"min.insync.replicas is {min_isr}"
    return [f"Only {replicas} {verb} in sync {since(run)}, and {least}: writes with acks=all are refused."]


def _moving(story: Story, held: Partitions) -> list[str]:
    present = held[-1].value
    assert present is not None
    adding, removing = told(present.adding_replicas), told(present.removing_replicas)
    if not adding and not removing:
        return []
    run = trailing(held, lambda one: one is not None and bool(told(one.adding_replicas) or told(one.removing_replicas)))
    away = [broker for broker in adding if _status(story, broker) in (_FENCED, _GONE)]
    back = f"broker {away[0]} is" if len(away) == 1 else f"brokers {ids(away)} are"
    stuck = f": it cannot end before {back} back (or it is cancelled)" if away else ""
    return [f"A reassignment adds {ids(adding)} and removes {ids(removing)} {since(run)}{stuck}."]


def _lossy(held: Partitions) -> list[str]:
    """The last unclean election: records may have been lost, whatever the state is now."""
    found = [
        one
        for before, one in runs(held)
        if one.since >= 0 and before is not None and before.value and one.value and is_unclean(before.value, one.value)
    ]
    if not found:
        marked = held[-1].value is not None and _recovers(held[-1].value)
        return ["It is marked RECOVERING, by an unclean election before what is known."] if marked else []
    chosen = found[-1]
    assert chosen.value is not None
    last = held[-1].value
    still = " It is still marked RECOVERING." if last is not None and _recovers(last) else ""
    return [
        f"Broker {chosen.value.leader} was elected uncleanly at offset {chosen.offset}: records may be lost.{still}"
    ]


def _recovers(partition: Partition) -> bool:
    return partition.leader_recovery_state == "RECOVERING"
