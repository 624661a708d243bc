"""The present state of a partition in a sentence: who leads since when, who does not and since when, and why.

Only what records say: an outage's cause outside the cluster is in no log. What may happen next follows from Kafka's
rules for elections (KIP-966): in-sync replicas and eligible leader replicas hold every committed record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshell.history.events import broker_events, ids, is_unclean, told_directories
from kshell.history.lifetimes import Brokers, Held, Partitions, runs
from kshell.history.story import STATE, Story, told
from kshell.metadata.election import leaderless
from kshell.metadata.families.cluster import Broker
from kshell.metadata.partial import is_untold
from kshell.metadata.partition_state import is_online
from kshell.metadata.partitions import Partition
from kshell.tree.image import iso

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
