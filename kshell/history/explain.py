"""``why``: the events of a partition and of its replicas' brokers, one row per record, and its state in a sentence.

:func:`event_rows` gives the rows; :func:`sentence` says which broker leads and since when, or which replicas are out of
sync, since when and why. Both know only what records say, not what made a broker fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row, typed
from kshell.history.story import STATE, AnyRevision, Brokers, Partitions, Revision, Story, successive
from kshell.metadata.election import UNCLEAN_CONFIG, leaderless
from kshell.metadata.families.cluster import Broker
from kshell.metadata.partial import is_unreported, reported_ids, reported_or_none
from kshell.metadata.partition_state import is_online, staying_replicas, target_replicas
from kshell.metadata.partitions import Partition
from kshell.metadata.values import plain
from kshell.protocol.primitives import Uuid
from kshell.sources.points import Since
from kshell.tree.image import epoch_ms, iso
from kshell.wording import ids

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

COLUMNS = typed(
    "offset:int64 time:timestamp timeMs:int64 type:string event:string broker:int32 what:string leader:int32"
    " isr:[int32] elr:[int32] lastKnownElr:[int32] replicas:[int32] addingReplicas:[int32] removingReplicas:[int32]"
    " leaderRecoveryState:string leaderEpoch:int32 partitionEpoch:int32"
)
_STATE = tuple(column.name for column in COLUMNS[7:])


class Event(NamedTuple):
    """What a record did to a partition, or to ``broker``: a stable name (``leader-lost``), and words for users."""

    at: AnyRevision
    event: str
    description: str
    broker: int | None = None
    lost: tuple[Uuid, ...] = ()
    """The log directories that a broker lost, if the event is nothing else; empty otherwise."""


def partition_events(revisions: Partitions) -> Iterator[Event]:
    """Yield one event per revision of a partition, oldest first."""
    for before, revision in successive(revisions):
        if revision.value is None:
            yield Event(revision, "deleted", "the topic is deleted")
        elif revision.since < 0:
            where = (
                "as a snapshot has it" if revision.since != STATE else "present state; records between are not known"
            )
            yield Event(revision, "snapshot" if revision.since != STATE else "state", where)
        elif before is None or before.value is None:
            leader = "no leader" if revision.value.leader < 0 else f"broker {revision.value.leader} leads"
            yield Event(revision, "created", f"created; {leader}")
        else:
            yield _change(revision, before.value, revision.value)


def _change(at: Revision[Partition], old: Partition, new: Partition) -> Event:
    changes = [
        *_leader(old, new),
        *_replicas(old, new),
        *_set("isr", "ISR", old.isr, new.isr),
        *_set("elr", "ELR", old.elr, new.elr),
        *_recovery(old, new),
    ]
    if not changes:
        moved = old.directories != new.directories
        changes = [("directories-changed", "log directories assigned") if moved else ("rewritten", "no visible change")]
    return Event(at, changes[0][0], "; ".join(text for _, text in changes))


def is_unclean(old: Partition, new: Partition) -> bool:
    """Whether the new leader was elected uncleanly and may lack records; Kafka marks it RECOVERING (KIP-704)."""
    if new.leader < 0 or new.leader == old.leader:
        return False
    if new.leader_recovery_state == "RECOVERING" and (old.leader_recovery_state != "RECOVERING"):
        return True
    return new.leader not in (*old.isr, *old.elr) and new.replicas == old.replicas


def _leader(old: Partition, new: Partition) -> Iterator[tuple[str, str]]:
    if is_unclean(old, new):
        last_known = ", as the last leader that was known," if new.leader in reported_ids(old.last_known_elr) else ""
        yield "unclean-election", f"broker {new.leader}{last_known} elected uncleanly: records may be lost"
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
    was, moving = (bool(partition.adding_replicas or partition.removing_replicas) for partition in (old, new))
    goal = ids(tuple(replica for replica in new.replicas if replica not in new.removing_replicas))
    if moving and (old.adding_replicas, old.removing_replicas) != (new.adding_replicas, new.removing_replicas):
        yield "reassignment-started", f"reassignment to {goal}"
    elif was and not moving and set(new.replicas) == set(staying_replicas(old)) != set(target_replicas(old)):
        yield "reassignment-cancelled", f"reassignment cancelled: replicas {goal}"
    elif was and not moving:
        yield "reassignment-ended", f"reassignment ended: replicas {goal}"
    elif old.replicas != new.replicas:
        yield "replicas-changed", f"replicas {ids(new.replicas)}, after {ids(old.replicas)}"


def _set(name: str, title: str, old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Yield the change of the ISR or ELR: ``name`` is for the event name, ``title`` for the description."""
    lost, gained = [broker for broker in old if broker not in new], [broker for broker in new if broker not in old]
    if not lost and not gained:
        return
    event = f"{name}-changed" if lost and gained else f"{name}-shrunk" if lost else f"{name}-grown"
    verbs = [f"{verb} {ids(some)}" for verb, some in (("loses", lost), ("gains", gained)) if some]
    yield event, f"{title} {' and '.join(verbs)}"


def _recovery(old: Partition, new: Partition) -> Iterator[tuple[str, str]]:
    if old.leader_recovery_state == "RECOVERING" != new.leader_recovery_state:
        yield "recovered", "recovered from the unclean election"


# --- brokers ---------------------------------------------------------------------------------------------------------


def broker_events(broker_id: int, revisions: list[Revision[Broker]]) -> Iterator[Event]:
    """Yield the events of a broker, oldest first. A state that comes from a snapshot is not an event."""
    for before, revision in successive(revisions):
        if revision.since < 0:
            continue
        old = before.value if before else None
        changes = list(broker_change(old, revision.value))
        if changes:
            lost = _lost(old, revision.value) if len(changes) == 1 else ()
            description = f"broker {broker_id} {', '.join(text for _, text in changes)}"
            yield Event(revision, changes[0][0], description, broker_id, lost)


def broker_change(old: Broker | None, new: Broker | None) -> Iterator[tuple[str, str]]:
    """Yield what changed in a registration (``None``: not registered): event name, description without the broker."""
    if new is None:
        yield "broker-unregistered", "unregistered"
        return
    if old is None or old.epoch != new.epoch:
        suffix = "" if old is None else " again"
        yield "broker-registered", f"registered{suffix}, {'fenced' if new.fenced else 'unfenced'}"
        return
    if new.in_controlled_shutdown and not old.in_controlled_shutdown:
        yield "broker-controlled-shutdown", "in controlled shutdown"
    lost = _lost(old, new)
    if lost:
        yield "broker-directory-lost", f"lost log directory {', '.join(map(str, lost))}"
    was, now = old.cordoned_directories or (), new.cordoned_directories or ()
    if not is_unreported(was) and not is_unreported(now):
        for verb, directories in (
            ("cordoned", [directory for directory in now if directory not in was]),
            ("uncordoned", [directory for directory in was if directory not in now]),
        ):
            if directories:
                yield f"broker-directory-{verb}", f"{verb} log directory {', '.join(map(str, directories))}"
    if new.fenced != old.fenced:
        yield ("broker-fenced", "fenced") if new.fenced else ("broker-unfenced", "unfenced")


def _lost(old: Broker | None, new: Broker | None) -> tuple[Uuid, ...]:
    """Return the log directories that a broker lost within one registration (one broker epoch)."""
    if old is None or new is None or old.epoch != new.epoch:
        return ()
    still_there = reported_ids(new.directories)
    return tuple(directory for directory in reported_ids(old.directories) if directory not in still_there)


# --- rows ------------------------------------------------------------------------------------------------------------


def is_from(event: Event, first: Since | None) -> bool:
    """Whether the record of an event is at or after the point ``first``, by the offset and the time that its row shows.

    A record inside a metadata transaction took effect later than its own offset; its own offset decides here.
    """
    return first is None or event.at.since == STATE or first.includes(event.at.offset, event.at.time)


def event_rows(story: Story, revisions: Partitions, since: Since | None) -> list[Row]:
    """Return one row per event of a partition and of the brokers it had then, with the partition's state after it."""
    brokers = sorted(
        {broker for revision in revisions if revision.value is not None for broker in named_brokers(revision.value)}
    )
    broker_history = [event for broker in brokers for event in broker_events(broker, story.broker(broker))]
    events = sorted([*partition_events(revisions), *broker_history], key=lambda event: _order(event.at))
    rows: list[Row] = []
    state: Partition | None = None
    first = _order(revisions[0])
    for event in events:
        before = state
        if event.broker is None:
            state = event.at.value
        if _order(event.at) < first or (event.broker is not None and not _concerns(event, before)):
            continue
        if is_from(event, since):
            rows.append(_row(event, state))
    return rows


def _order(revision: AnyRevision) -> tuple[int, int]:
    return (revision.offset if revision.since < 0 else revision.since), revision.offset


def named_brokers(partition: Partition) -> set[int]:
    """Return every broker that a partition names: its replicas, its ELR and its last known ELR."""
    return {*partition.replicas, *reported_ids(partition.elr), *reported_ids(partition.last_known_elr)}


def _concerns(event: Event, partition: Partition | None) -> bool:
    """Whether a broker's event matters to a partition; lost log directories do if the replica was in one of them."""
    if partition is None or event.broker not in named_brokers(partition):
        return False
    places = reported_ids(partition.directories)
    return not event.lost or not places or not set(event.lost).isdisjoint(places)


def event_row(event: Event) -> JsonObject:
    """Return the columns that the event rows of partitions, topics and nodes have in common."""
    at = event.at
    return {
        "offset": None if at.offset < 0 else at.offset,
        "time": iso(at.time),
        "timeMs": epoch_ms(at.time),
        "type": at.record_type,
        "event": event.event,
        "what": event.description,
    }


def _row(event: Event, state: Partition | None) -> Row:
    columns = (
        dict.fromkeys(_STATE) if state is None else {name: reported_or_none(plain(state)[name]) for name in _STATE}
    )
    return {**event_row(event), "broker": event.broker, **columns}


UNFENCED, FENCED, _SHUTDOWN, UNREGISTERED = "unfenced", "fenced", "in controlled shutdown", "not registered"
_REGISTERED = "registered"


def broker_status(broker: Broker | None) -> str:
    """Describe a registration in one to three words: unfenced, fenced, in controlled shutdown, not registered."""
    if broker is None:
        return UNREGISTERED
    if is_unreported(broker.fenced):
        return _REGISTERED
    if broker.fenced is True:
        return FENCED
    return _SHUTDOWN if broker.in_controlled_shutdown is True else UNFENCED


def holds_since(revisions: list[AnyRevision], holds: Callable[[Any], bool]) -> AnyRevision | None:
    """Return the first of the newest revisions in a row that fulfil ``holds``: since when something is so."""
    first = None
    for revision in reversed(revisions):
        if not holds(revision.value):
            break
        first = revision
    return first


def since(revision: AnyRevision | None) -> str:
    """Write ``since 2026-… (offset 70)``; for a state from a snapshot, ``at the latest``; else that it is unknown."""
    if revision is None or revision.since == STATE:
        return "(since when is not known)"
    when = f"{iso(revision.time) or 'a time not known'} (offset {revision.offset})"
    return f"since {when}" if revision.since >= 0 else f"since {when} at the latest"


def sentence(story: Story, topic: str, revisions: Partitions, min_isr: int | None = None) -> str:
    """Summarize a partition's present state.

    ``min_isr`` is its ``min.insync.replicas``, ``None`` if it is not known.
    """
    last = revisions[-1]
    if last.value is None:
        return f"The topic {topic} was deleted at offset {last.offset}, {iso(last.time) or 'at a time not known'}."
    if is_unreported(last.value.leader):
        return "The leader is not reported."
    sentences = (
        _leaderless(story, topic, revisions)
        if last.value.leader < 0
        else [*_led(story, revisions), *_refused(revisions, min_isr)]
    )
    return " ".join([*sentences, *_moving(story, revisions), *_lossy(revisions)])


# --- without a leader ------------------------------------------------------------------------------------------------


def _leaderless(story: Story, topic: str, revisions: Partitions) -> list[str]:
    present = revisions[-1].value
    assert present is not None
    lost = holds_since(revisions, lambda partition: partition is not None and partition.leader < 0)
    before = _before(revisions, lost)
    in_sync = reported_ids(present.isr) or (before.isr if before is not None else ())
    text = f"No leader {since(lost)}"
    if len(in_sync) == 1:
        link = "only in-sync replica is" if reported_ids(present.isr) else "last in-sync replica was"
        text += f": its {link} {_was(story, in_sync[0], lost)}"
    elif in_sync:
        text += f": of its {'in-sync' if reported_ids(present.isr) else 'last in-sync'} replicas " + "; ".join(
            _was(story, broker, lost) for broker in in_sync
        )
    return [f"{text}.", *_candidates(story, topic, present)]


def _before(revisions: Partitions, at: AnyRevision | None) -> Partition | None:
    """Return the state just before a revision; ``None`` if it is the first."""
    return next(
        (before.value for before, revision in successive(revisions) if revision is at and before is not None), None
    )


def _candidates(story: Story, topic: str, present: Partition) -> list[str]:
    """Return which replicas may lead without data loss.

    Kafka elects only replicas, and reads the ELR without an ISR.
    """
    case = leaderless(story.image, topic, present)
    sentences = []
    if case.complete:
        only, awaited = ("Only broker", "it") if len(case.complete) == 1 else ("Only brokers", "one of them")
        be = "is" if len(case.complete) == 1 else "are"
        holders = f"{only} {ids(case.complete)} {be} known to hold all committed records ({case.source})"
        waits = f": the partition waits for {awaited}"
        if case.elects_unclean and set(case.complete) < set(present.replicas):
            waits = f", but {UNCLEAN_CONFIG} is true: the partition does not wait for {awaited}"
        sentences.append(f"{holders}{waits}.")
    else:
        holders = (
            f" (last known ELR: {ids(reported_ids(present.last_known_elr))})"
            if reported_ids(present.last_known_elr)
            else ""
        )
        remedy = "" if case.awaits_last_leader else ": what is left is an unclean election"
        sentences.append(f"No replica is known to hold all committed records{holders}{remedy}.")
    if case.departed:
        brokers, be = ("Broker", "is no replica") if len(case.departed) == 1 else ("Brokers", "are no replicas")
        sentences.append(
            f"{brokers} {ids(case.departed)} of the {case.source} {be} any more: Kafka elects among replicas only."
        )
    rest = [broker for broker in present.replicas if broker not in case.complete]
    up = [broker for broker in rest if _status(story, broker) == UNFENCED]
    if up:
        brokers, be, awaited = ("Broker", "is", "it") if len(up) == 1 else ("Brokers", "are", "one of them")
        may = f"an unclean election of {awaited} may lose some"
        sentences.append(f"{brokers} {ids(up)} {be} unfenced, but may lack records: {may}.")
    elif rest:
        who = "No other replica is up" if case.complete else "No replica is up"
        who = "Its only replica is not up" if case.is_alone else who
        sentences.append(f"{who} ({'; '.join(_state(story, broker) for broker in rest)}).")
    return sentences


def _was(story: Story, broker: int, effect: AnyRevision | None) -> str:
    """Write what happened to an in-sync replica: ``broker 2, which was fenced at offset 71 (…)``."""
    fell = fall(broker, story.broker(broker), effect)
    status = _status(story, broker)
    if status == UNFENCED:
        return f"broker {broker}, which is unfenced"
    if not fell:
        return f"broker {broker}, which is {status}"
    return f"broker {broker}, which was {' and '.join(fell)}"


def fall(broker: int, revisions: Brokers, effect: AnyRevision | None = None) -> list[str]:
    """Describe how a broker went away, oldest event first: ``fenced at offset 71 (…)``. Empty if it is unfenced.

    ``effect`` is the change of a partition that followed. The controller writes both in one batch, the partition first:
    an effect with the lower offset and the same time is mentioned in place of the time.
    """
    down = holds_since(revisions, lambda revision: broker_status(revision) != UNFENCED)
    at = revisions.index(down) if down is not None else len(revisions)
    events = [
        event for event in broker_events(broker, revisions[max(0, at - 1) :]) if at == 0 or event.at in revisions[at:]
    ]
    descriptions = [f"{_verb(event)} at offset {event.at.offset} ({_moment(event.at, effect)})" for event in events]
    return (
        descriptions
        if len(descriptions) <= 3
        else [descriptions[0], f"{len(descriptions) - 2} changes later", descriptions[-1]]
    )


def _moment(cause: AnyRevision, effect: AnyRevision | None) -> str:
    """Write when a broker's change happened, or that Kafka wrote it after its effect."""
    is_behind = effect is not None and effect.time == cause.time and effect.offset < cause.offset
    return "Kafka writes the cause after its effects" if is_behind else str(iso(cause.time))


def _verb(event: Event) -> str:
    if event.event == "broker-registered":
        return f"{event.description.removeprefix(f'broker {event.broker} ')},"
    name = event.event.removeprefix("broker-")
    return "shut down in a controlled way" if name == "controlled-shutdown" else name


def _status(story: Story, broker: int) -> str:
    revisions: Brokers = story.broker(broker)
    return broker_status(revisions[-1].value if revisions else None)


def _state(story: Story, broker: int) -> str:
    fell = fall(broker, story.broker(broker))
    return f"broker {broker}: {' and '.join(fell)}" if fell else f"broker {broker} is {_status(story, broker)}"


# --- with a leader ---------------------------------------------------------------------------------------------------


def _led(story: Story, revisions: Partitions) -> list[str]:
    present = revisions[-1].value
    assert present is not None
    start = holds_since(revisions, lambda partition: partition is not None and partition.leader == present.leader)
    sentences = [f"Broker {present.leader} leads {since(start)}."]
    out = [broker for broker in present.replicas if broker not in reported_ids(present.isr)]
    if not out:
        full = holds_since(
            revisions,
            lambda partition: partition is not None and set(partition.replicas) <= set(reported_ids(partition.isr)),
        )
        count = len(present.replicas)
        every = "Both" if count == 2 else f"All {count}"
        sentences.append(f"{every} replicas are in sync {since(full)}." if count > 1 else _alone(revisions))
    sentences += [_out(story, revisions, broker) for broker in out]
    preferred = present.replicas[0] if present.replicas else present.leader
    if preferred != present.leader:
        sentences.append(f"Its preferred leader is broker {preferred} ({_status(story, preferred)}).")
    return sentences


def _alone(revisions: Partitions) -> str:
    start = holds_since(revisions, lambda partition: partition is not None and len(partition.replicas) == 1)
    return f"It has no other replica {since(start)}: when that broker is away, there is no leader."


def _out(story: Story, revisions: Partitions, broker: int) -> str:
    """Return the sentences on why a replica is not in sync, as far as records show."""
    start = holds_since(
        revisions,
        lambda partition: (
            partition is not None and broker in partition.replicas and broker not in reported_ids(partition.isr)
        ),
    )
    registrations, status = story.broker(broker), _status(story, broker)
    present = revisions[-1].value
    assert present is not None
    eligible = " It is known to hold all committed records (ELR)." if broker in reported_ids(present.elr) else ""
    if status != UNFENCED:
        fell = fall(broker, registrations)
        why = f"it was {' and '.join(fell)}" if fell else f"it is {status}"
    elif _is_stored(story, present, broker):
        why = _not_caught_up(broker, registrations, start)
    else:
        why = (
            "it is unfenced, but does not have the replica's log directory (a failed disk, or one that was taken away)"
        )
    return f"Broker {broker} is out of sync {since(start)}: {why}.{eligible}"


def _not_caught_up(broker: int, revisions: Brokers, start: AnyRevision | None) -> str:
    """Say why an unfenced broker may be out of sync since ``start``: it was away then, or what nobody has written."""
    back = holds_since(revisions, lambda revision: broker_status(revision) == UNFENCED)
    if back is not None and start is not None and start.since >= 0:
        then = _away_at(revisions, start)
        if then:
            fell = " and ".join(fall(broker, then))
            return f"it was {fell}; it is unfenced since offset {back.offset}, and has not caught up yet"
    return "it is unfenced; it does not keep up with the leader, or has not caught up yet"


def _away_at(revisions: Brokers, start: AnyRevision) -> Brokers:
    """Return a broker's revisions until it came back after ``start``, if it was away then; else an empty list.

    Of a broker's change and its effect the controller may write either first: then both have the same time.
    """
    for at, (before, revision) in enumerate(successive(revisions)):
        if before is None or revision.offset <= start.offset:
            continue
        if broker_status(before.value) != UNFENCED and broker_status(revision.value) == UNFENCED:
            down = holds_since(revisions[:at], lambda value: broker_status(value) != UNFENCED)
            is_cause = down is not None and (down.offset < start.offset or down.time <= start.time)
            return revisions[:at] if is_cause else []
    return []


def _is_stored(story: Story, present: Partition, broker: int) -> bool:
    """Whether a registered broker has the log directory of its replica; true where that is not reported."""
    registered = story.broker(broker)[-1].value
    if registered is None or is_unreported(present.directories):
        return True
    place = dict(zip(present.replicas, present.directories, strict=True)).get(broker)
    return place is None or is_online(place, reported_ids(registered.directories))


def _refused(revisions: Partitions, min_isr: int | None) -> list[str]:
    """Return the sentence on a partition with a leader whose ISR is smaller than ``min.insync.replicas``."""
    present = revisions[-1].value
    assert present is not None
    in_sync = reported_ids(present.isr)
    if min_isr is None or is_unreported(present.isr) or len(in_sync) >= min_isr:
        return []
    start = holds_since(
        revisions,
        lambda partition: (
            partition is not None and partition.leader >= 0 and len(reported_ids(partition.isr)) <= len(in_sync)
        ),
    )
    replicas = "1 replica" if len(in_sync) == 1 else f"{len(in_sync)} replicas"
    verb = "is" if len(in_sync) == 1 else "are"
    least = f"min.insync.replicas is {min_isr}"
    return [f"Only {replicas} {verb} in sync {since(start)}, and {least}: writes with acks=all are refused."]


def _moving(story: Story, revisions: Partitions) -> list[str]:
    present = revisions[-1].value
    assert present is not None
    adding, removing = reported_ids(present.adding_replicas), reported_ids(present.removing_replicas)
    if not adding and not removing:
        return []
    start = holds_since(
        revisions,
        lambda partition: (
            partition is not None
            and bool(reported_ids(partition.adding_replicas) or reported_ids(partition.removing_replicas))
        ),
    )
    away = [broker for broker in adding if _status(story, broker) in (FENCED, UNREGISTERED)]
    back = f"broker {away[0]} is" if len(away) == 1 else f"brokers {ids(away)} are"
    stuck = f": it cannot end before {back} back (or it is cancelled)" if away else ""
    return [f"A reassignment adds {ids(adding)} and removes {ids(removing)} {since(start)}{stuck}."]


def _lossy(revisions: Partitions) -> list[str]:
    """Return the sentence on the last unclean election, whatever the state is now: records may have been lost."""
    elections = [
        revision
        for before, revision in successive(revisions)
        if revision.since >= 0
        and before is not None
        and before.value
        and revision.value
        and is_unclean(before.value, revision.value)
    ]
    if not elections:
        marked = revisions[-1].value is not None and _recovers(revisions[-1].value)
        return ["It is marked RECOVERING, by an unclean election before what is known."] if marked else []
    chosen = elections[-1]
    assert chosen.value is not None
    last = revisions[-1].value
    still = " It is still marked RECOVERING." if last is not None and _recovers(last) else ""
    return [
        f"Broker {chosen.value.leader} was elected uncleanly at offset {chosen.offset}: records may be lost.{still}"
    ]


def _recovers(partition: Partition) -> bool:
    return partition.leader_recovery_state == "RECOVERING"
