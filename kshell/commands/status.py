"""``status``: the cluster on one screen: ids, versions, quorum, counts, and the findings of ``health`` by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.client.inference import infer, registered_span, span
from kshell.cluster.health import state_of
from kshell.cluster.min_isr_flag import DESCRIPTION as MIN_ISR
from kshell.cluster.min_isr_flag import MIN_ISR_DEFAULT, MinIsrArguments, min_isr_of
from kshell.commands.health import level_of
from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Report, Result, Row, Rows, Section, StyledText, typed
from kshell.engine.walk import counted
from kshell.errors import NodeError
from kshell.metadata.feature_levels import KRAFT_VERSION, METADATA_VERSION, level_name
from kshell.metadata.health.check import CRITICAL, ERROR, WARNING, CheckedState
from kshell.metadata.health.examine import Health, examine
from kshell.metadata.partition_state import OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED
from kshell.sources.directory import describe
from kshell.sources.directory.sidecar_files import cluster_id
from kshell.tree.image import provenance

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_PROBLEMS = typed("level:string finding:string count:int64 first:string")
_TEXT_COLUMNS = tuple(column._replace(spare=-1) for column in _PROBLEMS)
_MOST = 8
"""Kinds of problems in text output at most, to fit on one screen."""


def run(session: Session, args: MinIsrArguments) -> Result:
    """Return the sections of the screen; problems are findings of level warning or worse. Raises KshellError."""
    state = state_of(session, min_isr_of(session, session.image, args))
    health = examine(state, session.progress)
    sections = [
        Section("cluster", "Cluster", _cluster(session, state)),
        Section("versions", "Versions", _versions(session, state)),
        Section("quorum", "Quorum", _quorum(session, state)),
        Section("counts", "Counts", _counts(state, health)),
    ]
    problems = _problems(health)
    result = Report([*sections, Section("problems", "Problems", Rows(_PROBLEMS, problems, tone=level_of))])
    facts: JsonObject = {section.key: section.body for section in sections}
    result.readable = Report(
        [
            _problems_shown(problems, is_known=not session.is_empty()),
            Section("cluster", "Cluster", _facts_shown(until=session.until, **facts)),
        ]
    )
    return result


def _cluster(session: Session, state: CheckedState) -> JsonObject:
    source = session.source
    listing, notes, nodes = session.loaded.listing, session.loaded.notes, source.nodes
    cluster = cluster_id(listing, notes) if nodes is None else nodes.cluster_id
    last = provenance(state.image) if not state.is_partial else dict.fromkeys(("offset", "epoch", "time", "timeMs"))
    return {
        "clusterId": cluster,
        "source": source.name or source.path,
        "kind": source.kind,
        "offset": last["offset"],
        "time": last["time"],
        "timeMs": last["timeMs"],
    }


def _versions(session: Session, state: CheckedState) -> JsonObject:
    level = state.features.finalized.get(METADATA_VERSION)
    lowest, highest, source = _release(session, state)
    return {
        "metadataVersion": None if level is None else level_name(METADATA_VERSION, level),
        "kraftVersion": state.features.finalized.get(KRAFT_VERSION),
        "lowestRelease": lowest,
        "highestRelease": highest,
        "releaseSource": source,
    }


def _release(session: Session, state: CheckedState) -> tuple[str | None, str | None, str]:
    """(lowest release, highest, source): inferred from what live nodes offer, else by registered levels, or unknown."""
    from kshell.cluster.nodes import INFERRED

    nodes = session.source.nodes
    if nodes is not None and session.until is None:
        inferred = span(_inferred(session, nodes))
        if inferred[0] is not None:
            return (*inferred, INFERRED)
    registered = registered_span(node.supported for node in state.features.nodes)
    return (*registered, "unknown" if registered[0] is None else "registered")


def _inferred(session: Session, nodes: Nodes) -> list[tuple[str | None, str | None]]:
    """The (lowest, highest) release that each node may run, by what it offers; empty if no node answers."""
    from kshell.cluster.nodes import survey

    try:
        node_survey = survey(session, nodes)
    except NodeError:
        return []
    return [
        infer(node.ranges, node.supported, node_survey.members[name].kind).bounds
        for name, node in node_survey.versions.items()
    ]


def _quorum(session: Session, state: CheckedState) -> JsonObject:
    quorum = state.quorum
    if quorum is None:
        if state.is_partial:
            facts = dict.fromkeys(("leaderId", "leaderEpoch"))
        else:
            quorum_facts = describe.quorum(session.loaded)
            facts = {name: quorum_facts[name][1] for name in ("leaderId", "leaderEpoch")}
        voters = list(state.voters) if state.voters else None
        return {**facts, "highWatermark": None, "voters": voters, "observers": None, "maxLag": None}
    replicas = [*quorum["voters"], *quorum["observers"]]
    lags = [replica["lag"] for replica in replicas if replica["lag"] is not None and replica["id"] >= 0]
    return {
        "leaderId": quorum["leaderId"],
        "leaderEpoch": quorum["leaderEpoch"],
        "highWatermark": quorum["highWatermark"],
        "voters": list(state.voters),
        "observers": sorted(replica["id"] for replica in quorum["observers"] if replica["id"] >= 0),
        "maxLag": max(lags, default=None),
    }


def _counts(state: CheckedState, health: Health) -> JsonObject:
    brokers = [entry.value for entry in state.image["brokers"].values()]
    fenced = sum(broker.fenced is True for broker in brokers)
    controllers = state.voters if state.is_partial else {*state.image["controllers"], *state.voters}
    return {
        "brokers": len(brokers),
        "brokersFenced": fenced,
        "brokersShuttingDown": sum(
            broker.in_controlled_shutdown is True and broker.fenced is not True for broker in brokers
        ),
        "controllers": len(controllers),
        "topics": health.topics,
        "partitions": health.partitions,
        "offline": health.counts[OFFLINE],
        "underMinIsr": health.counts[UNDER_MIN_ISR],
        "underReplicated": health.counts[UNDER_REPLICATED],
    }


def _problems(health: Health) -> list[JsonObject]:
    return [
        {
            "level": findings.check.level,
            "finding": findings.check.name,
            "count": len(findings),
            "first": next(iter(findings)).path,
        }
        for findings in health.by_check
        if findings.check.level in (CRITICAL, ERROR, WARNING)
    ]


def _problems_shown(problems: list[JsonObject], *, is_known: bool) -> Section:
    if not problems:
        return Section("problems", "Problems: none" if is_known else "Problems: not known, there are no records", {})
    rows: list[Row] = [
        problem | {"level": StyledText(problem["level"], problem["level"])} for problem in problems[:_MOST]
    ]
    more = f"{counted(len(problems) - _MOST, 'more kind')}, and " if len(problems) > _MOST else ""
    return Section("problems", f"Problems: `health` has {more}what to do", Rows(_TEXT_COLUMNS, rows))


def _facts_shown(
    cluster: JsonObject,
    versions: JsonObject,
    quorum: JsonObject,
    counts: JsonObject,
    until: int | None,
) -> dict[str, str]:
    """All sections but the problems as a few lines of text, so that the problems fit on the same screen."""
    fenced, leaving = counts["brokersFenced"], counts["brokersShuttingDown"]
    nodes = (
        f"{counted(counts['brokers'], 'broker')} ({fenced} fenced, {leaving} shutting down),"
        f" {counted(counts['controllers'], 'controller')}"
    )
    partitions = (
        f"{counted(counts['topics'], 'topic')}, {counted(counts['partitions'], 'partition')}:"
        f" {counts['offline']} offline, {counts['underMinIsr']} under min ISR,"
        f" {counts['underReplicated']} under-replicated"
    )
    return {
        "clusterId": cluster["clusterId"] or "-",
        "source": f"{cluster['source']} ({cluster['kind']})",
        "as of": _moment(cluster["offset"], cluster["time"], until),
        "versions": _named(
            {"metadata.version": versions["metadataVersion"], "kraft.version": versions["kraftVersion"]}
        ),
        "software": _software(versions["lowestRelease"], versions["highestRelease"], versions["releaseSource"]),
        "quorum": _named(
            {
                "leader": describe.leader_name(quorum["leaderId"]),
                "epoch": quorum["leaderEpoch"],
                "voters": quorum["voters"],
                "observers": quorum["observers"],
                "high watermark": quorum["highWatermark"],
                "largest lag": quorum["maxLag"],
            }
        ),
        "nodes": StyledText(nodes, ERROR if fenced else ""),
        "partitions": StyledText(partitions, ERROR if counts["offline"] or counts["underMinIsr"] else ""),
    }


def _moment(offset: int | None, time: str | None, until: int | None) -> str:
    if offset is None:
        return "not known"
    if offset >= 0:
        return f"offset {offset}, {time}"
    empty = "before the first metadata record: none has taken effect"
    return empty if until is None else f"offset {until}: no record has taken effect yet"


def _named(facts: JsonObject) -> str:
    """The known facts as ``name value, name value``; ``not known`` if there are none."""
    values = {name: value for name, value in facts.items() if value is not None}
    texts = {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items() if text != "") or "not known"


def _software(lowest: str | None, highest: str | None, source: str) -> str:
    if lowest is None:
        return "not known"
    return f"Kafka {lowest if lowest == highest else f'{lowest} to {highest}'} ({source})"


COMMAND = Command(
    name="status",
    task=Task.PROBLEMS,
    summary="the cluster on one screen: ids, versions, quorum, counts and problems",
    run=run,
    arguments=MinIsrArguments,
    flags=(MIN_ISR_DEFAULT,),
    examples=(
        Example("status", "one screen"),
        Example("status -o json", "one object, for a script"),
    ),
    description=(
        "Works on directories, on a quorum (-q), and on what brokers report (-b); what a source does not know is null."
        " lowestRelease and highestRelease are the releases of the nodes' software: inferred from everything that the"
        " nodes of a running cluster offer, or registered: from the levels of features that each has registered. What"
        " is newer than this kshell knows reads `4.4 or later`."
        " problems are the findings of health from warning up, by kind, each with how many there are and the first;"
        f" they do not change the exit code, which is health's business. {MIN_ISR}"
    ),
)
