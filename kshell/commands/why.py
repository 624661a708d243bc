"""``why``: how a partition got its leader, or lost it; and the history of a topic, a broker or a controller.

An answer has events, the present state, and a sentence with the next step, all derived from the log's *story*
(:mod:`kshell.history.story`): the past of all objects up to a point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kshell.cluster.broker_load import loads
from kshell.cluster.features import cluster_features
from kshell.cluster.health import steps_of
from kshell.cluster.kafka_tools import kafka_tools
from kshell.commands.as_of import complete_point
from kshell.engine import tones
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Column, Report, Result, Row, Rows, Section, StyledText, typed
from kshell.errors import EXIT_OK, CommandError
from kshell.history.explain import COLUMNS, broker_status, event_rows, holds_since, named_brokers, sentence
from kshell.history.node_story import (
    BROKER_COLUMNS,
    CONTROLLER_COLUMNS,
    broker_rows,
    broker_sentence,
    controller_rows,
    controller_sentence,
    controller_story,
)
from kshell.history.story import (
    NODE_KINDS,
    Brokers,
    Partitions,
    PartitionTarget,
    Revision,
    Story,
    complete_target,
    now_or_before,
    story_of,
    target,
)
from kshell.history.topic_story import (
    EVENT_COLUMNS,
    PARTITION_COLUMNS,
    partition_states,
    topic_rows,
    topic_sentence,
    topic_story,
)
from kshell.metadata.election import leaderless, steps
from kshell.metadata.families.cluster import BROKERS, CONTROLLERS, Broker
from kshell.metadata.feature_levels import CONTROLLERS_REGISTER, METADATA_VERSION
from kshell.metadata.names import encode_name
from kshell.metadata.partial import reported_ids
from kshell.metadata.partition_state import MinIsr, effective_min_isr, problems, state
from kshell.metadata.partitions import Partition
from kshell.metadata.values import plain
from kshell.sources.points import Since
from kshell.tree.image import epoch_ms, iso
from kshell.tree.paths import NODE_PLACES, TOPICS_BY_NAME, join, split

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.protocol.primitives import Uuid

_WIDE = frozenset(column.name for column in COLUMNS) - {"offset", "time", "what", "leader", "isr", "elr", "replicas"}
_TEXT_COLUMNS = ("offset", "time", "leader", "isr", "elr", "replicas", "what")
_BROKERS = typed(
    "id:int32 status:string sinceOffset:int64 sinceTime:timestamp sinceTimeMs:int64 inReplicas:boolean inIsr:boolean"
    " inElr:boolean"
)
_SPARED = {"sinceOffset": 1, "state": -1}
_BROKER_SPARED = {"sinceTime": 1, "inReplicas": 2, "status": -1}
"""Columns that a narrow terminal drops, from first (2) to last (-1): the status is what users look for."""
_TONE = {"state": tones.state}
_TITLES = {"sentence": "now", "nextStep": "next", "lastResort": "last resort"}
"""Keys of the closing section whose text goes first in text output -> their titles there."""
_BAD_PARTITION_EVENTS = frozenset(("leader-lost", "unclean-election", "deleted"))


_NODE_ID = re.compile(r"[0-9]{1,9}")


class WhyArguments(Arguments):
    """Arguments and options of ``why``."""

    target: str
    number: str | None
    since: str | None
    until: str | None


def run(session: Session, args: WhyArguments) -> Result:
    """Return events, state and a closing sentence about a partition (with its brokers), topic, broker or controller.

    Raises:
        CommandError: there is no such partition, topic or node, now or in the log.
    """
    then = until(session, args.until)
    story = story_of(then, "why")
    first = since(session, story, args.since)
    node = _node(session, story, args.target) if args.number is None else None
    if node is not None:
        kind, node_id = node
        result = (_broker if kind == "broker" else _controller)(then, story, node_id, first)
    else:
        _refuse_node_in_two_words(story, args)
        subject = target(then, story, _partition_word(args), prefers_partition=True)
        if subject.partition is None:
            result = _topic(then, story, subject, first)
        else:
            result = _partition(then, story, subject, first)
    if then is not session:
        session.remarks += then.problems()
        result.exit_code = then.exit_code() if then.is_loaded else EXIT_OK
    return result


def _node(session: Session, story: Story, text: str) -> tuple[str, int] | None:
    """Return the kind and id of the node that a text names: ``broker-3``, or its path if no topic has that name."""
    kind, _, node_id = text.partition("-")
    if kind not in NODE_KINDS:
        path = split(text, session.cwd)
        kinds = [kind for kind, place in NODE_PLACES.items() if place == path[:-1]]
        if not kinds or text in story.names():
            return None
        kind, node_id = kinds[0], path[-1]
    return (kind, int(node_id)) if _NODE_ID.fullmatch(node_id) else None


def _refuse_node_in_two_words(story: Story, args: WhyArguments) -> None:
    """Raise CommandError for ``broker 3``, which should be ``broker-3``, unless there is a topic ``broker``."""
    if args.number is not None and args.target in NODE_KINDS and args.target not in story.names():
        node = f"{args.target}-{args.number}"
        raise CommandError(
            f"{args.target}/{args.number}: no such partition", hint=f"write `why {node}` for the {args.target}"
        )


def _partition_word(args: WhyArguments) -> str:
    return args.target if args.number is None else f"{args.target}/{args.number}"


def _partition(session: Session, story: Story, subject: PartitionTarget, first: Since | None) -> Report:
    topic, number, topic_id = subject.topic, subject.partition, story.id_of(subject)
    if topic_id is None or number is None:
        raise CommandError(f"{topic}: no such topic")  # not reached: target() has found it
    revisions = story.partition(topic_id, number)
    if not revisions:
        raise CommandError(f"{topic}-{number}: the partition's record cannot be read", hint="`cat` shows its bytes")
    rows = event_rows(story, revisions, first)
    about = {
        "topic": topic,
        "topicId": str(topic_id),
        "partition": number,
        "path": join((*TOPICS_BY_NAME, encode_name(topic), str(number))),
    }
    present = revisions[-1].value
    configured = None if present is None else _configured_min_isr(story, topic, present)
    least = None if present is None else effective_min_isr(present, configured)
    closing = {
        "sentence": sentence(story, topic, revisions, least) + _lowered(present, configured, least),
        **_next_steps(session, story, topic, number, revisions),
        "history": story.reach + _earlier(story, topic, topic_id),
    }
    title, brokers = f"{topic}-{number}", _brokers(story, revisions)
    result = Report(
        [
            Section("partition", title, about),
            Section("events", "Events", Rows(COLUMNS, rows)),
            Section("state", "State", _state(story, present, configured)),
            Section("brokers", "Brokers", Rows(_BROKERS, brokers)),
            Section("answer", "Answer", closing),
        ]
    )
    result.readable = _readable(title, about, rows, brokers, closing)
    return result


def _broker(session: Session, story: Story, broker_id: int, first: Since | None) -> Report:
    revisions = story.broker(broker_id)
    if not revisions:
        is_named = loads(story.image)[broker_id].replicas > 0
        raise _no_node(session, story, "broker", broker_id, story.image[BROKERS.name], is_replica=is_named)
    about = {"broker": broker_id, "path": join((*NODE_PLACES["broker"], str(broker_id)))}
    present = revisions[-1].value
    finding = None
    if present is not None and present.fenced is True:
        finding = "brokerFenced" if loads(story.image)[broker_id].replicas else "staleRegistration"
    elif present is not None and present.in_controlled_shutdown is True:
        finding = "brokerShuttingDown"
    closing = {
        "sentence": broker_sentence(story, broker_id, revisions),
        **_node_steps(session, finding, id=broker_id),
        "history": story.reach,
    }
    state = {"status": broker_status(present), **({} if present is None else plain(present))}
    rows = broker_rows(revisions, first)
    return _of_node("broker", f"Broker {broker_id}", about, Rows(BROKER_COLUMNS, rows), _as_of(story) | state, closing)


def _controller(session: Session, story: Story, node_id: int, first: Since | None) -> Report:
    history = controller_story(story, node_id)
    if not history.is_known(node_id):
        raise _no_node(session, story, "controller", node_id, story.image[CONTROLLERS.name])
    about = {"controller": node_id, "path": join((*NODE_PLACES["controller"], str(node_id)))}
    present = history.registrations[-1].value if history.registrations else None
    is_stale = present is not None and history.voter_ids is not None and node_id not in history.voter_ids
    level = story.image["features"].get(METADATA_VERSION)
    registers = level is not None and isinstance(level.value, int) and level.value >= CONTROLLERS_REGISTER
    closing = {
        "sentence": controller_sentence(history, node_id, registers=registers),
        **_node_steps(session, "staleController" if is_stale else None, id=node_id),
        "history": story.reach,
    }
    state = {"registered": present is not None, **({} if present is None else plain(present))}
    rows = Rows(CONTROLLER_COLUMNS, controller_rows(history, node_id, first))
    return _of_node("controller", f"Controller {node_id}", about, rows, _as_of(story) | state, closing)


def _no_node(
    session: Session, story: Story, kind: str, node_id: int, registered: Iterable[int], *, is_replica: bool = False
) -> CommandError:
    """The error for a node that is not and never was registered; ``is_replica``: whether partitions still name it."""
    hint = f"registered: {', '.join(f'{kind}-{number}' for number in sorted(registered)) or 'none'}"
    if is_replica:
        hint += f"; partitions name it as a replica: `partitions --where '{node_id} in replicas'`"
    if f"{kind}-{node_id}" in story.names():
        hint += f"; the topic of that name: `why {join((*TOPICS_BY_NAME, f'{kind}-{node_id}'))}`"
    elif kind in story.names():
        hint += f"; the partition: `why {kind}/{node_id}`"
    return CommandError(f"{kind}-{node_id}: no such {kind}, {now_or_before(session)}", hint=hint)


def _of_node(key: str, title: str, about: JsonObject, events: Rows, state: JsonObject, closing: JsonObject) -> Report:
    result = Report(
        [
            Section(key, title, about),
            Section("events", "Events", events),
            Section("state", "State", state),
            Section("answer", "Answer", closing),
        ]
    )
    result.readable = _answer_first(key, title, about, [_events_shown(events)], closing)
    return result


def _answer_first(key: str, title: str, about: JsonObject, story: list[Section], closing: JsonObject) -> Report:
    """The text output: the present state and what to do, then the events, then the path in the tree."""
    answer = {title: closing[name] for name, title in _TITLES.items() if name in closing}
    place: JsonObject = {name: about[name] for name in ("path", "topicId") if name in about}
    rest = [*story, Section("place", "", {**place, "history": closing["history"]})]
    return Report([Section(key, title, answer), *rest], is_answer_first=True)


_BAD_NODE_AND_TOPIC_EVENTS = frozenset(
    ("broker-fenced", "broker-unregistered", "broker-directory-lost", "leader-lost", "unclean-election", "deleted")
)


def _events_shown(events: Rows) -> Section:
    """The events for text output: columns for programs are wide, and what happened is the last of the others."""
    rows = [
        {**row, "what": StyledText(row["what"], "error") if row["event"] in _BAD_NODE_AND_TOPIC_EVENTS else row["what"]}
        for row in events.rows
    ]
    if not rows:
        return Section("events", "Events: none", {})
    hidden = ("timeMs", "event", "type")
    names = [column.name for column in events.columns if column.name not in (*hidden, "what")]
    columns = (
        *(Column(column.name, column.wide) for column in events.columns if column.name in names),
        Column("what", prose=True),
        *(Column(name, wide=True) for name in hidden),
    )
    return Section("events", "Events", Rows(columns, rows))


def _topic(session: Session, story: Story, subject: PartitionTarget, first: Since | None) -> Report:
    name, topic_id = subject.topic, story.id_of(subject)
    if topic_id is None:
        raise CommandError(f"{name}: no such topic")  # not reached: target() has found it
    history = topic_story(story, name, topic_id)
    least = MinIsr(story.image)
    states = partition_states(history, least)
    events = Rows(EVENT_COLUMNS, topic_rows(history, session.redaction, first))
    about = {"topic": name, "topicId": str(topic_id), "path": join((*TOPICS_BY_NAME, encode_name(name)))}
    closing = {
        "sentence": topic_sentence(history, states, least),
        "history": story.reach + _earlier(story, name, topic_id),
    }
    partitions = Rows(PARTITION_COLUMNS, states)
    result = Report(
        [
            Section("topic", name, about),
            Section("events", "Events", events),
            Section("partitions", "Partitions", partitions),
            Section("answer", "Answer", closing),
        ]
    )
    columns = _fitted(PARTITION_COLUMNS, _SPARED)
    partitions_shown = (
        Section("partitions", "Partitions", Rows(columns, states))
        if states
        else Section("partitions", "Partitions: none", {})
    )
    result.readable = _answer_first("topic", name, about, [_events_shown(events), partitions_shown], closing)
    return result


def _fitted(columns: Iterable[Column], spares: Mapping[str, int]) -> tuple[Column, ...]:
    """Columns for text output; ``spares`` gives the order in which a narrow terminal drops them, highest first."""
    return tuple(
        column._replace(
            wide=column.name == "sinceTimeMs", spare=spares.get(column.name, 0), tone=_TONE.get(column.name)
        )
        for column in columns
    )


def until(session: Session, point: str | None) -> Session:
    """The session as of the point of ``--until``, or the session itself if it shows that point or an older one."""
    if point is None:
        return session
    then = session.reshape(point=point)
    limit = session.until
    return session if then.until is None or (limit is not None and limit <= then.until) else then


def since(session: Session, story: Story, point: str | None) -> Since | None:
    """The point of ``--since``, ``None`` for the start of the log; ``now`` is after the last record of the story."""
    if point is None:
        return None
    begin = session.since(point)
    last = story.end()[0]
    if begin is None:
        return Since(last + 1)
    if begin.offset > last and begin.last_ms is None:
        session.remarks.append(f"--since (offset {begin.offset}) is after offset {last}, the last one that is shown")
    return begin


def _earlier(story: Story, topic: str, topic_id: Uuid) -> str:
    older = story.older_ids(topic)
    if topic_id in older:
        return "; a topic of the same name is there now, or was there later"
    if not older:
        return ""
    if len(older) == 1:
        return "; a topic of the same name was there before, and deleted: `log` has it"
    return f"; {len(older)} topics of the same name were there before, and deleted: `log` has them"


def _configured_min_isr(story: Story, topic: str, present: Partition) -> int | None:
    """The min.insync.replicas that is set for a partition, which Kafka's tools and all tables compare it with.

    ``None`` if it is not in the log.
    """
    return MinIsr(story.image).of(topic, present.leader if isinstance(present.leader, int) else None)


def _lowered(present: Partition | None, configured: int | None, least: int | None) -> str:
    """A sentence where more replicas are asked for than a partition has: brokers then ask for all that it has."""
    if present is None or configured is None or least is None or least >= configured:
        return ""
    count = len(present.replicas)
    return (
        f" min.insync.replicas is {configured}, more than its {count} {'replica' if count == 1 else 'replicas'}:"
        f" brokers ask for {least}."
    )


def _next_steps(session: Session, story: Story, topic: str, number: int, revisions: Partitions) -> JsonObject:
    """The next step for a partition without a leader, and the last resort if that fails; empty if it has a leader."""
    present = revisions[-1].value
    if present is None or present.leader != -1:
        return {}
    cluster = cluster_features(session)
    case = leaderless(story.image, topic, present, controller=cluster.leader_id, is_partial=not session.source.has_log)
    tools = kafka_tools(session, cluster)
    first, fallback, if_never = steps(case, topic, number, tools)
    step: JsonObject = {"nextStep": first.text, "commands": list(first.commands)}
    if fallback is not None:
        step |= {"lastResort": f"{if_never}: {fallback.text}", "lastResortCommands": list(fallback.commands)}
    return step


def _node_steps(session: Session, name: str | None, **places: object) -> JsonObject:
    """The next step that ``health`` has for a finding on a node; empty if there is no finding."""
    if name is None:
        return {}
    step = steps_of(session)(name, places)
    return {"nextStep": step.text, "commands": list(step.commands)}


def _state(story: Story, present: Partition | None, configured: int | None) -> JsonObject:
    facts = _as_of(story)
    if present is None:
        return {**facts, "state": "deleted"}
    return {**facts, "state": state(problems(present, configured)), **plain(present)}


def _as_of(story: Story) -> JsonObject:
    offset, time = story.end()
    return {"asOf": None if offset < 0 else offset, "time": iso(time), "timeMs": epoch_ms(time)}


def _brokers(story: Story, revisions: Partitions) -> list[Row]:
    """One row per broker that the partition names (replicas, ISR, ELR); of a deleted one, in its last state."""
    last = next((revision.value for revision in reversed(revisions) if revision.value is not None), None)
    if last is None:
        return []
    rows: list[Row] = []
    for broker in [*last.replicas, *sorted(named_brokers(last).difference(last.replicas))]:
        registrations = story.broker(broker)
        status = broker_status(registrations[-1].value if registrations else None)
        run = _status_since(registrations, status)
        at = run if run is not None and run.since >= 0 else None
        rows.append(
            {
                "id": broker,
                "status": status,
                "sinceOffset": at.offset if at else None,
                "sinceTime": iso(at.time) if at else None,
                "sinceTimeMs": epoch_ms(at.time) if at else None,
                "inReplicas": broker in last.replicas,
                "inIsr": broker in last.isr,
                "inElr": broker in reported_ids(last.elr),
            }
        )
    return rows


def _status_since(revisions: Brokers, status: str) -> Revision[Broker] | None:
    """The revision since which a broker has had its present status without interruption."""
    return holds_since(revisions, lambda value: broker_status(value) == status)


def _readable(title: str, about: JsonObject, rows: list[Row], brokers: list[Row], closing: JsonObject) -> Report:
    """The text output for a partition: in each line of the events, what happened comes last."""
    columns = (
        *(Column(name, prose=name == "what") for name in _TEXT_COLUMNS),
        *(Column(name, wide=True) for name, *_ in COLUMNS if name in _WIDE),
    )
    events = Rows(columns, [_styled(row) for row in rows])
    story = [
        Section("events", "Events", events) if rows else Section("events", "Events: none", {}),
        Section("brokers", "Brokers", Rows(_fitted(_BROKERS, _BROKER_SPARED), brokers)),
    ]
    return _answer_first("partition", title, about, story, closing)


def _styled(row: Row) -> Row:
    leader = StyledText("none", "error") if row["leader"] == -1 else row["leader"]
    text = StyledText(row["what"], "error") if row["event"] in _BAD_PARTITION_EVENTS else row["what"]
    return {**row, "leader": leader, "what": text}


def _complete(session: Session, typed: str) -> Iterable[str]:
    """Complete a target: nodes, topics and partitions."""
    nodes = [f"{kind}-{number}" for kind in ("broker", "controller") for number in sorted(session.image[f"{kind}s"])]
    return dict.fromkeys([*(node for node in nodes if node.startswith(typed)), *complete_target(session, typed)])


COMMAND = Command(
    name="why",
    task=Task.PROBLEMS,
    summary="how a partition came to its leader, or to none; the story of a topic, a broker or a controller",
    run=run,
    arguments=WhyArguments,
    args=(
        Arg(
            "target",
            "TOPIC-PARTITION (orders-3, orders/3), TOPIC, broker-N, controller-N, or the path of one in the tree",
            kind="text or path",
            complete=_complete,
        ),
        Arg("number", "the partition's number, if TARGET is a topic (orders 3)", arity="?"),
    ),
    flags=(
        Flag(("--since",), "events from that point on", metavar="POINT", complete=complete_point, dashed=True),
        Flag(("--until",), "the story up to that point", metavar="POINT", complete=complete_point, dashed=True),
    ),
    examples=(
        Example("why legacy-import-0", "why it has no leader"),
        Example("why orders-0 -o json", "the same of another partition, for a program"),
        Example("why broker-3", "what became of a broker"),
        Example("why orders", "a topic as a whole: configs, and what happened to its partitions"),
        Example("why legacy-import-0 --until 181", "before it lost its leader"),
    ),
    description=(
        "Every record that changed the partition, and what happened to the brokers that had it: registered,"
        " fenced, unfenced, in controlled shutdown, unregistered. Each row has the partition after it."
        " An unclean election is one of a replica that was neither in sync nor eligible (ELR)."
        " Records say what and when, never who, and never why a machine went away. The history starts where the log"
        " starts: an older snapshot gives a state, no events. --since leaves out events of records from before it (also"
        " of those that a metadata transaction put into effect later), not what they did: the sentence is always about"
        " the whole story. Deleted topics work as well, as long as the log still has their records."
        " From brokers (-b) only the present state is known.\n\n"
        "Of a topic: its creation, partitions that were added, its own configs, and leaders that were lost or found,"
        " unclean elections and reassignments of its partitions. Of a broker: registered (by a new process, if its"
        " incarnation is another), fenced with or without a controlled shutdown before it, unfenced, log directories"
        " lost or cordoned, unregistered. Of a controller: registered, active or not any more, a voter or not. A"
        " partition of a topic that is called broker is written broker/3."
    ),
)
