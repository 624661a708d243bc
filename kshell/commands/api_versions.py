"""``api-versions``: which versions of which APIs each node offers, and which all of them share (KIP-35)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kshell.client.compatibility import shared
from kshell.engine.arguments import count
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Column, Result, Row, Rows
from kshell.errors import UsageError
from kshell.protocol.names import API_NAMES, NEWER_API, api_name
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session

Range = tuple[int, int]
_FIELDS = (
    Field("apiKey", "int16", "the API's number"),
    Field("apiName", Enumeration(API_NAMES.values(), NEWER_API), "its name"),
    Field("minVersion", "int16", "the lowest version that all nodes take; null if there is none"),
    Field("maxVersion", "int16", "the highest one"),
    Field("nodes", {"*": {"min": "int16", "max": "int16"}}, "what each node takes, by its id or address"),
)
_DIFFERS = " *"


class ApiVersionsArguments(RowArguments):
    """Arguments and options of ``api-versions``."""

    node: int | None
    all: bool


def run(session: Session, args: ApiVersionsArguments) -> Result:
    """Return one row per API that at least one node offers. Raises NodeError if no node answers."""
    if args.node is not None and args.all:
        raise UsageError("api-versions: --node asks one node, --all every one: give one of them")
    from kshell.cluster.nodes import live_nodes, survey

    node_survey = survey(session, live_nodes(session, "api-versions"), node_id=args.node, everyone=args.all)
    ranges = node_survey.ranges
    common = shared(ranges)
    result = select(_FIELDS, [_row(key, span, ranges) for key, span in common.items()], args)
    if args.columns is None:
        kinds = {name: member.kind for name, member in node_survey.members.items()}
        result.readable = _readable(result, ranges, kinds)
    return result


def _row(key: int, span: Range | None, ranges: Mapping[str, Mapping[int, Range]]) -> Row:
    low, high = span or (None, None)
    offered = {node: ranges[node][key] for node in ranges if key in ranges[node]}
    nodes = {node: {"min": first, "max": last} for node, (first, last) in offered.items()}
    return {"apiKey": key, "apiName": api_name(key), "minVersion": low, "maxVersion": high, "nodes": nodes}


def _readable(chosen: Iterable[Row], ranges: Mapping[str, Mapping[int, Range]], kinds: Mapping[str, str]) -> Rows:
    """A row per API, a column per group of equal nodes; ``*`` marks what not all nodes of a kind share."""
    groups: dict[tuple[str, frozenset[tuple[int, Range]]], list[str]] = {}
    for node, offered in ranges.items():
        groups.setdefault((kinds[node], frozenset(offered.items())), []).append(node)
    of_kind = {
        kind: shared({node: offered for node, offered in ranges.items() if kinds[node] == kind})
        for kind in {kind for kind, _ in groups}
    }
    rows = []
    for api in chosen:
        key, low, high = api["apiKey"], api["minVersion"], api["maxVersion"]
        row = {"apiKey": key, "apiName": api["apiName"], "shared": "none" if low is None else _text((low, high))}
        for (kind, _), names in groups.items():
            row[",".join(names)] = _cell(ranges[names[0]].get(key), of_kind[kind].get(key))
        rows.append(row)
    return Rows(tuple(Column(name) for name in ("apiKey", "apiName", "shared", *map(",".join, groups.values()))), rows)


def _cell(span: Range | None, common: Range | None) -> str | None:
    if span is None:
        return None
    return _text(span) + ("" if span == common else _DIFFERS)


def _text(span: Range) -> str:
    return f"{span[0]}-{span[1]}" if span[0] != span[1] else str(span[0])


def complete_node(session: Session, typed: str) -> Iterable[str]:
    """Complete a node id: those of the controllers and brokers in the image."""
    node_ids = {*session.image["controllers"], *session.image["brokers"]}
    return [str(node_id) for node_id in sorted(node_ids)]


COMMAND = Command(
    name="api-versions",
    task=Task.CLUSTER,
    summary="which versions of which APIs each node offers, and which all of them share",
    run=run,
    arguments=ApiVersionsArguments,
    flags=(
        Flag(("--node",), "ask only that node", metavar="ID", convert=count, complete=complete_node),
        Flag(("--all",), "ask controllers and brokers, whichever the source lists"),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("api-versions", "every controller (-q) or broker (-b); the sample does not run", 3),
        Example("api-versions --node 3000 -o jsonl", "one node, for a script", 3),
        Example("api-versions --where 'minVersion == null' --columns apiName,nodes", "what not all of them share", 3),
    ),
    description=(
        "Every node is asked directly, in parallel, each over its own connection. minVersion and maxVersion are the"
        " range that all nodes that answered share: from the highest minimum to the lowest maximum, null if that range"
        " is empty or if one of the nodes does not have the API. In text, nodes that offer the same are one column, and"
        " a range is marked with * where it differs from what all nodes of its kind share. Nodes that do not answer are"
        " named on standard error; the exit code is 3 when none does. Controllers are named by address where the"
        " cluster does not report their ids (below 3.7). --all takes brokers from their registrations (-q), and"
        " controllers from the quorum (-b, 3.9 and later); a node that is both has two entries, broker-ID and"
        " controller-ID."
    ),
)
