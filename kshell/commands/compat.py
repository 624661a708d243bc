"""``compat``: which features of Kafka a running cluster can use, and which nodes prevent the others (KIP-35)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kshell.client.compatibility import capabilities, check, find
from kshell.engine.declaration import Arg, Command, Example, Task
from kshell.engine.predicates import code_of_verdicts
from kshell.engine.result import Report, Result, Row, Rows, Section, typed
from kshell.errors import EXIT_OK, UsageError, did_you_mean
from kshell.protocol.names import api_name
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select

if TYPE_CHECKING:
    from kshell.client.compatibility import Blocker, Capability, Compatibility
    from kshell.cluster.nodes import Survey
    from kshell.engine.session import Session


def _capabilities() -> Mapping[str, Capability]:
    return capabilities()


_SPANS = {"*": {"min": "int16", "max": "int16"}}
_FIELDS = (
    Field("feature", Enumeration(_capabilities), "the feature's name"),
    Field("kip", Enumeration(lambda: (feature.kip for feature in _capabilities().values())), "the KIP that brought it"),
    Field("usable", "boolean", "whether it can be used; null where that is not known"),
    Field("required", _SPANS, "versions of APIs and levels of features that it needs", True),
    Field("shared", _SPANS, "those that all nodes have; null where there are none", True),
    Field("inTheWay", ["string"], "the nodes that keep it from being used"),
    Field("reason", "string", "why it cannot be used, or why that is not known"),
    Field("about", "string", "what it is", True),
)
_OFFLINE = "a directory shows which levels can be raised: `features --can-upgrade 4.4`"
_USABLE = {True: "yes", False: "no", None: "unknown"}


class CompatArguments(RowArguments):
    """Arguments and options of ``compat``."""

    feature: str | None


def run(session: Session, args: CompatArguments) -> Result:
    """Return one row per feature. Raises UsageError for an unknown feature, NodeError if no node answers."""
    wanted = _wanted(args.feature)
    from kshell.cluster.nodes import live_nodes, survey

    node_survey = survey(session, live_nodes(session, "compat", _OFFLINE), everyone=True)
    verdicts = [check(feature, node_survey.ranges, node_survey.finalized) for feature in wanted]
    rows = [_row(verdict, node_survey) for verdict in verdicts]
    is_single_feature = args.feature is not None
    code = code_of_verdicts(row["usable"] for row in rows) if is_single_feature else EXIT_OK
    result = select(_FIELDS, rows, args, readable=_readable, exit_code=code)
    if is_single_feature and not has_row_options(args):
        result.readable = _page(rows)
    return result


def _wanted(name_or_kip: str | None) -> list[Capability]:
    if name_or_kip is None:
        return list(capabilities().values())
    matches = find(name_or_kip)
    if not matches:
        if re.fullmatch(r"\d+\.\d+(\.\d+)?", name_or_kip):
            release = ".".join(name_or_kip.split(".")[:2])
            ready = f"whether the cluster is ready for a release: `features --can-upgrade {release}`"
            raise UsageError(f"compat: {name_or_kip} is a release, and no feature or KIP", hint=ready)
        hint = did_you_mean(
            name_or_kip.lower(), [*capabilities(), *_kips()], "`compat` without a name lists all features"
        )
        raise UsageError(f"compat: {name_or_kip} is no feature or KIP that is known", hint=hint)
    return matches


def _row(verdict: Compatibility[str], node_survey: Survey) -> Row:
    feature = verdict.feature
    blockers = verdict.blockers
    # A blocker is certain, even if some nodes were not asked.
    usable = False if blockers else verdict.usable
    reasons = _reasons(blockers)
    # A node that did not answer may prevent the use, so "yes" would be a guess; "no" is not.
    silent = [name for name in node_survey.silent if node_survey.members[name].kind in feature.kinds]
    if usable is True and silent:
        usable = None
    if usable is None:
        reasons += [f"{requirement} is not reported" for requirement in verdict.unknown]
        reasons += [f"{node_survey.members[name].kind} {name} was not asked" for name in silent]
        if not verdict.nodes and not silent:
            reasons.append(f"no {' or '.join(sorted(feature.kinds))} is known")
    levels = {name: {"min": level, "max": None} for name, level in feature.levels.items()}
    finalized = {name: _level(node_survey.finalized, name) for name in feature.levels}
    return {
        "feature": feature.name,
        "kip": feature.kip,
        "usable": usable,
        "required": {api_name(key): _span(span) for key, span in feature.requires.items()} | levels,
        "shared": {requirement.api_name: _span(requirement.shared) for requirement in verdict.requirements} | finalized,
        "inTheWay": list(dict.fromkeys(blocker.node for blocker in blockers if blocker.node is not None)),
        "reason": "; ".join(reasons) or None,
        "about": feature.about,
    }


def _level(finalized: Mapping[str, int] | None, name: str) -> dict[str, int | None] | None:
    return None if finalized is None else {"min": finalized.get(name, 0), "max": finalized.get(name, 0)}


def _span(span: tuple[int, int | None] | None) -> dict[str, int | None] | None:
    return None if span is None else {"min": span[0], "max": span[1]}


def _reasons(blockers: Iterable[Blocker[str]]) -> list[str]:
    """Each reason once, with the nodes to which it applies in front."""
    nodes_by_reason: dict[str, list[str]] = {}
    for blocker in blockers:
        nodes_by_reason.setdefault(blocker.reason, []).extend([blocker.node] if blocker.node is not None else [])
    return [f"{', '.join(nodes)}: {reason}" if nodes else reason for reason, nodes in nodes_by_reason.items()]


def _readable(row: Row) -> Row:
    return {
        **row,
        "usable": _USABLE[row["usable"]],
        "required": [f"{name} {_format_span(span)}" for name, span in row["required"].items()],
        "shared": [f"{name} {_format_span(span)}" for name, span in row["shared"].items()],
        "inTheWay": row["inTheWay"] or None,
    }


def _page(rows: Iterable[Row]) -> Report:
    """The text output for single features: the verdict, and a table of required against shared versions."""
    columns = typed("name:string required:json shared:json")
    sections = []
    for row in rows:
        facts = {"about": row["about"], "usable": _USABLE[row["usable"]], "inTheWay": row["inTheWay"] or None}
        sections.append(Section(row["feature"], f"{row['feature']} ({row['kip']})", facts | {"reason": row["reason"]}))
        needs = [
            {"name": name, "required": _format_span(span), "shared": _format_span(row["shared"][name])}
            for name, span in row["required"].items()
        ]
        sections.append(Section("needs", f"What {row['feature']} needs", Rows(columns, needs)))
    return Report(sections)


def _format_span(span: Mapping[str, int | None] | None) -> str:
    if span is None:
        return "none"
    if span["max"] is None:
        return f"{span['min']}+"
    return str(span["min"]) if span["min"] == span["max"] else f"{span['min']}-{span['max']}"


def _kips() -> list[str]:
    return list(dict.fromkeys(feature.kip for feature in capabilities().values()))


def _complete(session: Session, typed: str) -> Iterable[str]:
    return [*capabilities(), *_kips()]


COMMAND = Command(
    name="compat",
    task=Task.CLUSTER,
    summary="what the cluster can do, and which node is in the way",
    run=run,
    arguments=CompatArguments,
    args=(Arg("feature", "a feature or a KIP; all that are known when absent", arity="?", complete=_complete),),
    flags=row_flags(_FIELDS),
    examples=(
        Example("compat", "every feature that is known; the sample does not run", 3),
        Example("compat KIP-932", "whether share groups can be used, with what they need", 3),
        Example("compat --where 'usable == false' --columns feature,inTheWay", "what cannot be used, and by whom", 3),
        Example("compat dynamic-quorum -o json", "one feature by its name, for a script", 3),
    ),
    description=(
        "Controllers and brokers are asked which versions they offer (as api-versions --all does). A feature is usable"
        " when the versions that each of its APIs needs overlap with what all nodes of the kind that matters share, and"
        " when the levels that it needs are finalized. Else inTheWay names the nodes that keep it from being usable,"
        " and reason says why. usable is null (unknown) where nobody knows: a node was not asked, or a level is not"
        " reported."
    ),
    exit_1_when="with a FEATURE: it is not usable (3 where that is unknown)",
)
