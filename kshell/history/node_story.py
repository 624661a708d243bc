"""``why`` for a node: the events of one broker or controller, one row per record, and its present state in a sentence.

The answers know only what records say. A fenced broker is one that the active controller no longer counts on: no record
says whether its process died, hung or was cut off. Controllers register from metadata.version 3.7 on; which controller
was active, the quorum's LeaderChange records say in every release.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row, typed
from kshell.history.explain import (
    FENCED,
    UNFENCED,
    UNREGISTERED,
    Event,
    broker_change,
    broker_status,
    event_row,
    fall,
    holds_since,
    is_from,
    since,
)
from kshell.history.story import STATE, AnyRevision, Brokers, Revision, Story, successive
from kshell.metadata.families.cluster import CONTROLLERS, Broker, Controller, Listener
from kshell.metadata.families.quorum import LEADER, QUORUM, VOTERS
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.partial import is_unreported, reported_ids, reported_or_none
from kshell.metadata.partitions import Partition
from kshell.metadata.values import plain
from kshell.sources.points import Since

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

BROKER_COLUMNS = typed(
    "offset:int64 time:timestamp timeMs:int64 type:string event:string what:string status:string",
    "brokerEpoch:int64 incarnationId:string directories:[string] cordonedDirectories:[string]",
)
CONTROLLER_COLUMNS = typed("offset:int64 time:timestamp timeMs:int64 type:string event:string what:string epoch:int32")


# --- brokers ---------------------------------------------------------------------------------------------------------


def broker_rows(revisions: Brokers, first: Since | None) -> list[Row]:
    """Return one row per record (from ``first`` on) that changed a registration, with the registration after it."""
    rows: list[Row] = []
    for before, revision in successive(revisions):
        event = _broker_event(before, revision)
        if event is not None and is_from(event, first):
            broker: Broker | None = revision.value
            fields = {} if broker is None else {name: reported_or_none(part) for name, part in plain(broker).items()}
            rows.append(
                event_row(event)
                | {
                    "status": broker_status(broker),
                    "brokerEpoch": fields.get("epoch"),
                    **{name: fields.get(name) for name in ("incarnationId", "directories", "cordonedDirectories")},
                }
            )
    return rows


def _broker_event(before: Revision[Broker] | None, revision: Revision[Broker]) -> Event | None:
    if revision.since < 0:
        return _known_state(revision, broker_status(revision.value))
    old, new = None if before is None else before.value, revision.value
    changes = [(event, f"{text}{_detail(event, old, new)}") for event, text in broker_change(old, new)]
    if not changes:
        return None
    return Event(revision, changes[0][0], ", ".join(text for _, text in changes))


def _known_state(revision: AnyRevision, status: str) -> Event:
    """Return the event for a state that no record of the log explains; ``status`` describes it."""
    if revision.since == STATE:
        return Event(revision, "state", f"the present state: {status}; records between are not known")
    return Event(revision, "snapshot", f"as a snapshot has it: {status}")


def _detail(event: str, old: Broker | None, new: Broker | None) -> str:
    """Return more on a broker's event, from the registrations before and after it, to append to its description."""
    if new is None or old is None:
        return ""
    if event == "broker-fenced":
        # Kafka also fences a broker at the end of a controlled shutdown; one that never ended looks the same.
        return ", in its controlled shutdown" if old.in_controlled_shutdown else ", without a controlled shutdown"
    if event == "broker-registered":
        return "".join(f", {text}" for text in _registered_otherwise(old, new))
    return ""


def _registered_otherwise(old: Broker, new: Broker) -> Iterator[str]:
    same = old.incarnation_id == new.incarnation_id
    yield "by the same process" if same else "by a new process (another incarnation)"
    if old.rack != new.rack:
        yield f"rack {new.rack or 'none'}, before {old.rack or 'none'}"
    if old.listeners != new.listeners:
        yield f"listeners {_addresses(new.listeners)}, before {_addresses(old.listeners)}"
    if set(old.directories) != set(new.directories):
        yield f"{_count(len(new.directories), 'log directory', 'log directories')}, before {len(old.directories)}"
    levels = [broker.supported_features.get("metadata.version", {}).get("max") for broker in (old, new)]
    if levels[0] != levels[1] and None not in levels:
        yield f"supports metadata.version up to level {levels[1]}, before {levels[0]}"


def _addresses(listeners: tuple[Listener, ...]) -> str:
    return " ".join(f"{listener.name}://{listener.host}:{listener.port}" for listener in listeners) or "none"


def broker_sentence(story: Story, broker_id: int, revisions: Brokers) -> str:
    """Summarize a broker: its state, since when and why, and how many replicas and partitions depend on it."""
    present = revisions[-1].value
    status = broker_status(present)
    start = holds_since(revisions, lambda broker: broker_status(broker) == status)
    why = fall(broker_id, revisions) if status != UNFENCED else []
    text = f"Broker {broker_id} is {status} {since(start)}"
    if len(why) > 1:
        text += f": it was {' and '.join(why)}"
    elif status == FENCED:
        before = next((before for before, revision in successive(revisions) if revision is start), None)
        text += "" if before is None else _detail("broker-fenced", before.value, present)
    sentences = [f"{text}."]
    if status == UNFENCED and start is not None:
        earlier = fall(broker_id, revisions[: revisions.index(start)])
        if earlier and any(broker_status(old.value) == UNFENCED for old in revisions[: revisions.index(start)]):
            sentences.append(f"Before, it was {', '.join(earlier)}.")
    if status in (FENCED, UNREGISTERED):
        sentences.append("No record says what became of its process.")
    if present is not None and present.cordoned_directories and not is_unreported(present.cordoned_directories):
        number = len(present.cordoned_directories)
        sentences.append(f"{_count(number, 'log directory', 'log directories')} of it cordoned: no new replicas there.")
    return " ".join([*sentences, *_burden(story, broker_id)])


def _burden(story: Story, broker_id: int) -> Iterator[str]:
    """Yield sentences on the replicas of a broker, and on the partitions that wait for it."""
    leads = replicas = out_of_sync = waiting = 0
    for topic in story.image[TOPICS].values():
        for _, value in topic.scan():
            if not isinstance(value, Partition):
                continue
            if broker_id in value.replicas:
                replicas += 1
                leads += value.leader == broker_id
                out_of_sync += broker_id not in reported_ids(value.isr)
            if value.leader == -1 and broker_id in (*reported_ids(value.isr), *reported_ids(value.elr)):
                waiting += 1
    if not replicas:
        yield "It has no replica."
        return
    yield (
        f"It has {_count(replicas, 'replica', 'replicas')}, {out_of_sync} of them out of sync, and leads"
        f" {_count(leads, 'partition', 'partitions')}."
    )
    if waiting:
        verb = "has" if waiting == 1 else "have"
        yield f"{_count(waiting, 'partition', 'partitions')} without a leader {verb} it in the ISR or ELR."


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"


# --- controllers -----------------------------------------------------------------------------------------------------


class ControllerStory(NamedTuple):
    """What the log has on one controller, each list oldest first."""

    registrations: list[Revision[Controller]]
    leaders: list[Revision[Message]]
    """The quorum's LeaderChange records; the value is the record's fields."""
    voters: list[Revision[list[Message]]]
    """The quorum's KRaftVoters records (the value is the list of voters); empty if voters are configured statically."""

    def is_known(self, node_id: int) -> bool:
        """Whether the log says anything about the node as a controller."""
        changes = [revision.value for revision in self.leaders if revision.value is not None]
        leads = any(change["leaderId"] == node_id for change in changes)
        named = any(voter["voterId"] == node_id for change in changes for voter in change["voters"])
        return bool(self.registrations) or leads or named or any(_votes(node_id, revision) for revision in self.voters)

    @property
    def voter_ids(self) -> frozenset[int] | None:
        """Ids of the present voters; ``None`` if they are not known."""
        voters = self.voters[-1].value if self.voters else None
        if voters is None and self.leaders and self.leaders[-1].value is not None:
            voters = self.leaders[-1].value["voters"]
        return None if voters is None else frozenset(voter["voterId"] for voter in voters)


def controller_story(story: Story, node_id: int) -> ControllerStory:
    """Return what the log has on a controller."""
    return ControllerStory(
        story.values(CONTROLLERS.name, (node_id,), "UNREGISTER_CONTROLLER_RECORD"),
        story.values(QUORUM, (LEADER,), ""),
        story.values(QUORUM, (VOTERS,), ""),
    )


def controller_rows(history: ControllerStory, node_id: int, first: Since | None) -> list[Row]:
    """Return one row per record that registered the controller, or changed whether it is active or a voter."""
    events = [*_registered(history.registrations), *_led(history.leaders, node_id), *_voted(history.voters, node_id)]
    rows: list[Row] = []
    for event in sorted(events, key=lambda event: (event.at.offset, event.at.since)):
        if is_from(event, first):
            change = event.at.value if event.event in _OF_LEADERS else None
            rows.append(event_row(event) | {"epoch": None if change is None else event.at.epoch})
    return rows


_OF_LEADERS = frozenset(("controller-active", "controller-inactive"))


def _registered(revisions: list[Revision[Controller]]) -> Iterator[Event]:
    for before, revision in successive(revisions):
        old, new = None if before is None else before.value, revision.value
        if revision.since < 0:
            yield _known_state(revision, "registered")
        elif new is None:
            yield Event(revision, "controller-unregistered", "unregistered")
        elif old is None:
            yield Event(revision, "controller-registered", "registered")
        else:
            same = old.incarnation_id == new.incarnation_id
            process = "by the same process" if same else "by a new process (another incarnation)"
            yield Event(revision, "controller-registered", f"registered again, {process}")


def _led(revisions: list[Revision[Message]], node_id: int) -> Iterator[Event]:
    for before, revision in successive(revisions):
        old, new = None if before is None else _leader(before), _leader(revision)
        if revision.since < 0:
            yield _known_state(revision, "the active controller" if new == node_id else f"controller {new} is active")
        elif new == node_id:
            text = "becomes the active controller" if old != node_id else "is the active controller in a new epoch"
            yield Event(revision, "controller-active", text)
        elif old == node_id:
            yield Event(revision, "controller-inactive", f"no longer active: controller {new} is")


def _voted(revisions: list[Revision[list[Message]]], node_id: int) -> Iterator[Event]:
    for before, revision in successive(revisions):
        was, now = before is not None and _votes(node_id, before), _votes(node_id, revision)
        if revision.since < 0:
            yield _known_state(revision, "a voter" if now else "no voter")
        elif was != now:
            name, text = ("voter-added", "becomes a voter") if now else ("voter-removed", "is no voter any more")
            yield Event(revision, name, text)


def _leader(revision: Revision[Message]) -> int | None:
    """Return the id of the controller that a LeaderChange record makes active."""
    return None if revision.value is None else revision.value["leaderId"]


def _votes(node_id: int, revision: Revision[list[Message]]) -> bool:
    return any(voter["voterId"] == node_id for voter in revision.value or ())


def controller_sentence(history: ControllerStory, node_id: int, *, registers: bool) -> str:
    """Summarize a controller: whether it is active, a voter and registered, and since when.

    ``registers``: whether controllers register at the cluster's metadata.version (KIP-919).
    """
    sentences = []
    last = history.leaders[-1] if history.leaders else None
    if last is None:
        sentences.append("Which controller is active is not known.")
    else:
        leader = _leader(last)
        start = holds_since(history.leaders, lambda change: change["leaderId"] == leader)
        if leader == node_id:
            sentences.append(f"Controller {node_id} is the active controller {since(start)}.")
        else:
            sentences.append(f"Controller {node_id} is not active: controller {leader} is, {since(start)}.")
    voters = history.voter_ids
    if voters is not None:
        is_voter = node_id in voters
        place = "the only voter" if len(voters) == 1 else f"one of {len(voters)} voters"
        sentences.append(f"It is {place if is_voter else 'no voter'}.")
    registered = history.registrations[-1] if history.registrations else None
    if registered is None:
        because = "it has not run since then, or does not reach the active controller: `health` has what to do"
        sentences.append(
            f"It is not registered, as controllers are from metadata.version 3.7 on: {because}."
            if registers and voters is not None and node_id in voters
            else "It is not registered."
            if registers
            else "It is not registered: controllers register from metadata.version 3.7 on."
        )
    elif registered.value is None:
        sentences.append(f"It is unregistered {since(registered)}.")
    else:
        start = holds_since(history.registrations, lambda value: value is not None)
        sentences.append(f"It is registered {since(start)}.")
    return " ".join(sentences)
