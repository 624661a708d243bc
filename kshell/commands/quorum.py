"""``quorum``: leader, epoch and high watermark of the metadata quorum, and how far voters and observers lag.

A live source is asked with DescribeQuorum. Else the log and the files next to it give leader, epoch and voters only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.engine.arguments import parse, seconds
from kshell.engine.declaration import Arguments, Command, Example, Flag, Task
from kshell.engine.predicates import code_of_verdicts
from kshell.engine.result import Column, Report, Result, Row, Rows, Section
from kshell.engine.session import ago
from kshell.errors import UsageError
from kshell.protocol.primitives import ZERO_UUID
from kshell.sources.directory import describe
from kshell.sources.directory.sidecar_files import cluster_id
from kshell.tables.declaration import Field, columns

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_REPLICA = (
    "id",
    "directoryId",
    "logEndOffset",
    "lag",
    "lastFetchTimestamp",
    "lastCaughtUpTimestamp",
    "endpoints",
)
_REQUIREMENT = (
    Field("requirement", "string", "kraftVersion, software, nodes, voters or properties"),
    Field("fulfilled", "boolean", "whether it is met; null if not known"),
    Field("evidence", "string", "the facts", prose=True),
    Field("nextStep", "string", "what to do", prose=True),
    Field("command", "string", "the command that makes the quorum dynamic; null while something is missing", True),
)
_TEXT_COLUMNS = ("role", "id", "lag", "lastFetch", "lastCaughtUp", "endpoints")
_PROGRESS = ("lag", "lastFetch", "lastCaughtUp")
_WIDE_COLUMNS = ("logEndOffset", "directoryId", "lastFetchTimestamp", "lastCaughtUpTimestamp")


class QuorumArguments(Arguments):
    """Arguments and options of ``quorum``."""

    can_upgrade: bool
    watch: bool
    interval: float | None


def run(session: Session, args: QuorumArguments) -> Result:
    """Describe the quorum; with ``--can-upgrade`` or ``--watch``, what these options say."""
    if args.watch:
        return _watched(session, args)
    if args.interval is not None:
        raise UsageError("quorum: -n is for --watch", hint="quorum --watch -n 1")
    if args.can_upgrade:
        return _can_upgrade(session)
    nodes = session.source.nodes
    quorum = _of_log(session) if nodes is None or session.until is not None else _of_nodes(nodes)
    result = Report([Section("", "", quorum)])
    result.readable = _readable(quorum)
    return result


def _can_upgrade(session: Session) -> Result:
    """Return one row per requirement for making a static quorum dynamic; exit code 1 if one that counts is not met."""
    from kshell.cluster.dynamic_quorum import requirements
    from kshell.cluster.features import cluster_features
    from kshell.cluster.kafka_tools import kafka_tools

    cluster = cluster_features(session, ask=True)
    nodes = session.source.nodes
    quorum = None if nodes is None or session.until is not None else _of_nodes(nodes)
    required = requirements(cluster, quorum, kafka_tools(session, cluster))
    code = code_of_verdicts(requirement.fulfilled for requirement in required if requirement.is_required)
    return Rows(columns(_REQUIREMENT), [requirement.row() for requirement in required], exit_code=code)


def _watched(session: Session, args: QuorumArguments) -> Result:
    """Run ``watch quorum`` with the options of this command line."""
    from kshell.commands.watch import COMMAND as WATCH

    options = (("-o", args.output), ("--color", args.color))
    line = ["quorum", *(token for name, value in options if value is not None for token in (name, value))]
    line += ["--no-header"] if args.no_header else []
    watch = parse(WATCH, line[:1])
    watch.command = line
    watch.interval = args.interval or watch.interval
    return WATCH.run(session, watch)


def _of_nodes(nodes: Nodes) -> JsonObject:
    """The quorum as its leader describes it, under the field names of this command's output. Raises NodeError."""
    from kshell.sources.quorum.facts import describe_quorum

    if nodes.cluster_id is None and nodes.kind == "broker":
        nodes.describe(nodes.any())
    return describe_quorum(nodes)


def _of_log(session: Session) -> JsonObject:
    """The quorum as control records and the files next to the log describe it; lag and observers are not on disk."""
    loaded = session.loaded
    facts = describe.quorum(loaded)
    return {
        "clusterId": cluster_id(loaded.listing, loaded.notes),
        "leaderId": facts["leaderId"][1],
        "leaderEpoch": facts["leaderEpoch"][1],
        "highWatermark": None,
        "voters": [_voter(voter) for voter in describe.voters(loaded)],
        "observers": None,
    }


def _voter(voter: Row) -> JsonObject:
    points = [{name: point[name] for name in ("name", "host", "port")} for point in voter.get("endpoints", ())]
    directory = voter.get("voterDirectoryId")
    fields = {
        "id": voter["voterId"],
        "directoryId": None if directory == str(ZERO_UUID) else directory,
        "endpoints": points,
    }
    return {name: fields.get(name) for name in _REPLICA}


# --- text output -----------------------------------------------------------------------------------------------------


def _readable(quorum: JsonObject) -> Report:
    head = {name: quorum[name] for name in ("clusterId", "leaderId", "leaderEpoch", "highWatermark")}
    head["leaderId"] = describe.leader_name(head["leaderId"])
    # Ages are relative to the leader's clock if known: a leader reports the time of its answer as its own last fetch.
    leader = next((voter for voter in quorum["voters"] if voter["id"] == quorum["leaderId"]), None)
    now = (leader["lastFetchTimestamp"] if leader else None) or int(time.time() * 1000)
    rows = [_row("leader" if voter is leader else "voter", voter, now) for voter in _by_id(quorum["voters"])]
    rows += [_row("observer", observer, now) for observer in _by_id(quorum["observers"] or ())]
    # For a directory the lag is not known: empty columns would take the space that endpoints need.
    unknown = [name for name in _PROGRESS if all(row[name] is None for row in rows)]
    columns = tuple(Column(name, wide=name in (*unknown, *_WIDE_COLUMNS)) for name in (*_TEXT_COLUMNS, *_WIDE_COLUMNS))
    title = "Voters and observers" if quorum["observers"] is not None else "Voters"
    return Report([Section("", "Quorum", head), Section("replicas", title, Rows(columns, rows))])


def _by_id(replicas: Iterable[Row]) -> list[Row]:
    return sorted(replicas, key=lambda replica: replica["id"])


def _row(role: str, replica: Row, now: int) -> Row:
    return {
        **replica,
        "role": role,
        "lastFetch": _age(replica["lastFetchTimestamp"], now),
        "lastCaughtUp": _age(replica["lastCaughtUpTimestamp"], now),
        "endpoints": [_endpoint(point) for point in replica["endpoints"]] or None,
    }


def _endpoint(point: Row) -> str:
    host = f"[{point['host']}]" if ":" in point["host"] else point["host"]
    return f"{point['name']}://{host}:{point['port']}"


def _age(timestamp: int | None, now: int) -> str | None:
    """An age from two epoch milliseconds; below 10 s with tenths, for a follower fetches about twice a second."""
    if timestamp is None:
        return None
    seconds = max(now - timestamp, 0) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s ago"

    return ago(seconds)


COMMAND = Command(
    name="quorum",
    task=Task.CLUSTER,
    summary="leader, epoch and high watermark of the metadata quorum, and how its voters and observers keep up",
    run=run,
    arguments=QuorumArguments,
    flags=(
        Flag(("--can-upgrade",), "whether a static quorum can become a dynamic one (KIP-853), and what is missing"),
        Flag(("--watch",), "ask again and again, and show what changes"),
        Flag(
            ("-n", "--interval"),
            "with --watch: ask again after this many seconds, 2 when absent",
            "SECONDS",
            convert=seconds,
        ),
    ),
    examples=(
        Example("quorum", "who leads, who votes"),
        Example("quorum -o json", "as one object, for a script"),
        Example("quorum --can-upgrade", "whether the voters can be kept in the log from now on"),
        Example("watch --until 'leaderEpoch > 1' quorum -o jsonl", "wait for an election"),
    ),
    description=(
        "On a running quorum the leader is asked (DescribeQuorum; the principal needs DESCRIBE on CLUSTER), and nothing"
        " else is loaded. lag is in offsets behind the leader's log; text shows lastFetchTimestamp and"
        " lastCaughtUpTimestamp as ages by the leader's clock, -o wide and every other format as Kafka has them (epoch"
        " milliseconds). A value that no node reported is null or empty: endpoints and directory ids before 3.9, the"
        " cluster's id at controllers before 3.7. From a directory, or at a point (--as-of), leader, epoch and voters"
        " are known; the high watermark and observers are not in the log. As of a point, the leader is the one that the"
        " log names: null where the LeaderChange record of its epoch is deleted. --can-upgrade says for each thing that"
        " kraft.version 1 needs whether it is there; only controllers of Kafka 4.1 or later change a quorum."
    ),
    exit_1_when="with --can-upgrade: something is missing (3 where it is not known)",
)
