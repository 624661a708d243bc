"""``features``: finalized levels, what the nodes support, and whether a level can be raised or lowered (KIP-584).

Each question has its own rows: the state, ``--can-upgrade`` and ``--can-downgrade``, and ``map`` (all releases).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kshell.client.releases import supported_features
from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.predicates import code_of_verdicts
from kshell.engine.result import Report, Result, Row, Rows, Section
from kshell.errors import EXIT_FINDING, EXIT_OK, UsageError
from kshell.metadata.feature_levels import (
    LATEST,
    METADATA_VERSION,
    default_levels,
    level_name,
    level_title,
    levels,
    version_level,
)
from kshell.metadata.feature_update import check
from kshell.tables.declaration import Field
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.feature_update import ClusterFeatures, LevelVerdict, Range
    from kshell.metadata.kafka_tools import KafkaTools

_LEVEL = (
    Field("feature", "string", "the feature's name"),
    Field("level", "int16", "the finalized level; in the map, any level"),
)
_NAME = Field("name", "string", "what a level of metadata.version is called")
_WAY = Field("inTheWay", ["string"], "the nodes that keep it from being used or changed")
_COMMAND = Field("command", "string", "the command that changes it; null: nothing is to be changed, or cannot be", True)
_STATE = (
    *_LEVEL,
    _NAME,
    Field("minVersion", "int16", "the lowest level that all nodes support", wide=True),
    Field("maxVersion", "int16", "the highest level that all nodes support", spare=1),
    Field("highestVersion", "int16", "the highest level that any node supports", wide=True),
    _WAY,
    Field("nodes", {"*": {"min": "int16", "max": "int16"}}, "what each node supports", wide=True),
    _COMMAND,
)
_CHANGE = (
    *_LEVEL,
    Field("target", "int16", "the level that is asked for"),
    Field("possible", "boolean", "whether the change would be accepted; null where that is not known"),
    _WAY._replace(spare=1),
    Field("reason", "string", "why not", prose=True),
    _COMMAND,
)
_MAP = (
    *_LEVEL,
    _NAME,
    Field("release", "string", "the first release whose servers support the level; null: none does yet"),
    Field("lastRelease", "string", "the last one, where later ones do not"),
    Field("metadataVersion", "string", "the metadata.version with which clusters have the level by default"),
    Field("needs", {"*": "int16"}, "levels of other features without which it cannot be finalized"),
)
_ALL = tuple({field.name: field for field in (*_STATE, *_CHANGE, *_MAP)}.values())
_POSSIBLE = {True: "yes", False: "no", None: "unknown"}


class FeaturesArguments(RowArguments):
    """Arguments and options of ``features``."""

    what: str | None
    can_upgrade: list[str] | None
    can_downgrade: list[str] | None


def run(session: Session, args: FeaturesArguments) -> Result:
    """Answer one question: the state, ``--can-upgrade`` or ``--can-downgrade``, or ``map``.

    Raises UsageError, or KshellError if the source has no image.
    """
    if args.what not in (None, "map"):
        ready = f"`features --can-upgrade {args.what}` says whether the cluster is ready for a release; "
        hint = f"{ready if args.what[:1].isdigit() else ''}`features map` lists the levels of all releases"
        raise UsageError(f"features: {args.what}: not known", hint=hint)
    questions = [bool(args.can_upgrade), bool(args.can_downgrade), args.what is not None]
    if sum(questions) > 1:
        raise UsageError("features: --can-upgrade, --can-downgrade and map are three questions: give one of them")
    if args.what is not None:
        return _answer(_MAP, _map(), args, _map_readable)
    from kshell.cluster.features import cluster_features
    from kshell.cluster.kafka_tools import kafka_tools

    if not any(questions):
        cluster = cluster_features(session)
        return _answer(_STATE, _state(cluster, kafka_tools(session, cluster)), args, _state_readable)
    wanted = args.can_upgrade or args.can_downgrade or []
    targets = parse_targets(wanted, upgrade=bool(args.can_upgrade))
    cluster = cluster_features(session, ask=True)
    upgrade = bool(args.can_upgrade)
    verdicts = _verdicts(cluster, targets, upgrade=upgrade)
    tools = kafka_tools(session, cluster)
    rows = [_row(verdict) | {"command": _command(verdict, tools, upgrade=upgrade)} for verdict in verdicts]
    code = code_of_verdicts(verdict.possible for verdict in verdicts)
    result = _answer(_CHANGE, rows, args, _change_readable, code)
    if not has_row_options(args):
        table = result.readable if isinstance(result.readable, Rows) else result
        target = " ".join(wanted)
        sentence = _sentence(code, verdicts, cluster, target)
        result.readable = Report([Section("answer", sentence, {}), Section("features", "", table)])
    return result


def _sentence(code: int, verdicts: Sequence[LevelVerdict], cluster: ClusterFeatures, target: str) -> str:
    """Say in a sentence what the exit code says, and how many nodes prevent the change."""
    if code == EXIT_OK:
        is_there = all(verdict.level == verdict.target for verdict in verdicts)
        answer = "every level is finalized already, nothing to do" if is_there else "possible"
        reporting = sum(node.supported is not None for node in cluster.nodes)
        rest = "" if reporting == len(cluster.nodes) else ", and whether the others do is not known"
        support = f"; {reporting} of {len(cluster.nodes)} nodes support it{rest}" if cluster.nodes else ""
        notes = [f"; {verdict.feature}: {verdict.reason}" for verdict in verdicts if verdict.reason is not None]
        return f"{target}: {answer}{support}{''.join(notes)}"
    if code != EXIT_FINDING:
        return f"{target}: not known"
    refused = [verdict for verdict in verdicts if verdict.possible is False]
    blocking = {node.title for verdict in verdicts for node in verdict.nodes}
    if not blocking:
        reasons = "; ".join(f"{verdict.feature}: {verdict.reason}" for verdict in refused)
        return f"{target}: not possible: {reasons}"
    nodes = f"{len(blocking)} of {len(cluster.nodes)} nodes"
    unknown = sum(node.supported is None and node.title not in blocking for node in cluster.nodes)
    doubt = f", and of {unknown} more it is not known" if unknown else ""
    if not all(verdict.waits_for_software for verdict in refused):
        return f"{target}: not possible, for the reasons below; {nodes} are in the way{doubt}"
    run = "runs" if len(blocking) == 1 else "run"
    steps = "upgrade that first, then the levels"
    return f"{target}: not yet: {nodes} {run} software that does not support it{doubt}; {steps}"


def _answer(
    fields: tuple[Field, ...],
    rows: Sequence[Row],
    args: FeaturesArguments,
    readable: Callable[[Row], Row],
    exit_code: int = EXIT_OK,
) -> Rows:
    """Apply ``--where``, ``--columns`` and the like. Raises UsageError for a column that only another question has."""
    names = {field.name for field in fields}
    for name in (*(args.columns or ()), *(key.name for key in args.sort or ())):
        if name not in names:
            raise UsageError(f"features: this answer has no field {name}", hint=f"fields: {', '.join(sorted(names))}")
    return select(fields, rows, args, readable=readable, exit_code=exit_code)


# --- the present state ---------------------------------------------------------------------------------------------


def _state(cluster: ClusterFeatures, tools: KafkaTools) -> list[Row]:
    """One row per feature that is finalized or that some node supports; metadata.version is first."""
    supported = {name for node in cluster.nodes for name in node.supported or ()}
    names = sorted({*supported, *cluster.finalized}, key=lambda name: (name != METADATA_VERSION, name))
    return [_feature(cluster, name, tools) for name in names]


def _state_readable(row: Row) -> Row:
    nodes = [f"{title} {span['min']}-{span['max']}" for title, span in row["nodes"].items()]
    return {**row, "nodes": nodes, "inTheWay": row["inTheWay"] or None}


def _feature(cluster: ClusterFeatures, name: str, tools: KafkaTools) -> JsonObject:
    level = cluster.finalized.get(name, 0)
    # A node that does not know the feature supports its level 0 only.
    ranges = {node.title: node.supported.get(name, (0, 0)) for node in cluster.nodes if node.supported is not None}
    low, high = shared_range(ranges.values())
    highest = max((top for _, top in ranges.values()), default=None)
    return {
        "feature": name,
        "level": level,
        "name": level_name(name, level),
        "minVersion": low,
        "maxVersion": high,
        "highestVersion": highest,
        "inTheWay": [title for title, (least, top) in ranges.items() if top != highest or not least <= level <= top],
        "nodes": {title: {"min": least, "max": top} for title, (least, top) in ranges.items()},
        "command": None if high is None else _raise_to(cluster, name, high, tools),
    }


def _raise_to(cluster: ClusterFeatures, name: str, level: int, tools: KafkaTools) -> str | None:
    """The command that raises a feature to a level; ``None`` if there is nothing to raise or it would be refused."""
    if level <= cluster.finalized.get(name, 0):
        return None
    (verdict,) = check(cluster, {name: level}, upgrade=True)
    return _command(verdict, tools, upgrade=True)


def _command(verdict: LevelVerdict, tools: KafkaTools, *, upgrade: bool) -> str | None:
    """The command for a change; ``None`` if it is not possible, or would be accepted without an effect."""
    if not verdict.possible or verdict.reason is not None or verdict.target == verdict.level:
        return None
    template = f"kafka-features.sh {'upgrade' if upgrade else 'downgrade'} --feature {{change}}"
    return tools.fill(template, {"change": f"{verdict.feature}={verdict.target}"})


def shared_range(ranges: Iterable[Range]) -> tuple[int | None, int | None]:
    """The (lowest, highest) level in all ranges; (``None``, ``None``) if they do not overlap, or there is none."""
    reported = list(ranges)
    low, high = max((span[0] for span in reported), default=1), min((span[1] for span in reported), default=0)
    return (low, high) if low <= high else (None, None)


# --- --can-upgrade and --can-downgrade -----------------------------------------------------------------------------


def parse_targets(texts: Iterable[str], *, upgrade: bool) -> dict[str, int]:
    """Parse ``4.3`` or ``metadata.version=30`` into levels by feature. Raises UsageError.

    A release stands for the default levels of a new cluster; an upgrade leaves out features with level 0.
    """
    targets: dict[str, int] = {}
    for target in texts:
        name, equals, text = target.partition("=")
        if not equals:
            version = version_level(name)
            if version is None:
                raise UsageError(f"{target}: no release or metadata.version that is known", hint=_hint())
            more = {feature: level for feature, level in default_levels(version).items() if level or not upgrade}
        else:
            more = {name: _level(target, name, text)}
        twice = targets.keys() & more.keys()
        if twice:
            raise UsageError(f"{', '.join(sorted(twice))}: more than one level is given")
        targets |= more
    return targets


def _level(target: str, name: str, text: str) -> int:
    if name == METADATA_VERSION and (version := version_level(text)) is not None:
        return version
    if not (text.isascii() and text.isdigit() and int(text[:6]) < 1 << 15 and len(text) < 6):
        raise UsageError(f"{target}: {text or 'nothing'} is no level", hint=_hint())
    return int(text)


def _hint() -> str:
    return "such as 4.4, 4.4-IV2 or transaction.version=2; features map lists all"


def _verdicts(cluster: ClusterFeatures, targets: Mapping[str, int], *, upgrade: bool) -> list[LevelVerdict]:
    known_names = {name for node in cluster.nodes for name in node.supported or ()} | set(cluster.finalized)
    # Lowering a feature to 0 that no node knows and that is not finalized changes nothing.
    wanted = {name: level for name, level in targets.items() if level or name in known_names or len(targets) == 1}
    return check(cluster, wanted, upgrade=upgrade)


def _row(verdict: LevelVerdict) -> JsonObject:
    return {
        "feature": verdict.feature,
        "level": verdict.level,
        "target": verdict.target,
        "possible": verdict.possible,
        "inTheWay": [node.title for node in verdict.nodes],
        "reason": verdict.reason,
    }


def _change_readable(row: Row) -> Row:
    return {
        **row,
        "level": level_title(row["feature"], row["level"]),
        "target": level_title(row["feature"], row["target"]),
        "possible": _POSSIBLE[row["possible"]],
        "inTheWay": row["inTheWay"] or None,
    }


# --- map: the levels of all releases -------------------------------------------------------------------------------


def _map() -> list[Row]:
    """One row per level of each feature, with the first and the last release that support it."""
    rows: list[Row] = []
    for name, entries in levels().items():
        for entry in entries:
            first, last = _releases(name, entry.level)
            rows.append(
                {
                    "feature": name,
                    "level": entry.level,
                    "name": level_name(name, entry.level),
                    "release": first,
                    "lastRelease": last,
                    "metadataVersion": level_name(METADATA_VERSION, entry.version),
                    "needs": dict(entry.needs),
                }
            )
    return rows


def _map_readable(row: Row) -> Row:
    needs = [f"{name} {level_title(name, least)}" for name, least in row["needs"].items()]
    return {**row, "needs": needs or None}


def _releases(name: str, level: int) -> tuple[str | None, str | None]:
    """(the first release that supports a level, the last one, or ``None`` if the newest release still does)."""
    features_by_release = supported_features()
    having = [release for release, spans in features_by_release.items() if name in spans and _is_in(spans[name], level)]
    if not having:
        return None, None
    first = having[0]
    if name == METADATA_VERSION and first == next(iter(features_by_release)):
        # Levels from before 3.3, the first release in the table, are named for the release that brought them.
        first = (level_name(name, level) or "").partition("-")[0]
    return first, None if having[-1] == next(reversed(features_by_release)) else having[-1]


def _is_in(span: Range, level: int) -> bool:
    return span[0] <= level <= span[1]


def _complete_target(session: Session, typed: str) -> Iterable[str]:
    """Complete a level: releases, newest first, then ``FEATURE=LEVEL``."""
    named = dict.fromkeys(
        (level_name(METADATA_VERSION, entry.level) or "").partition("-")[0]
        for entry in levels()[METADATA_VERSION][6:LATEST]
    )
    return [*reversed(named), *(f"{name}={entry.level}" for name, entries in levels().items() for entry in entries)]


def _complete_what(session: Session, typed: str) -> Iterable[str]:
    return ("map",)


COMMAND = Command(
    name="features",
    task=Task.PROBLEMS,
    summary="finalized features, what the nodes support, and whether the cluster is ready for another release",
    run=run,
    arguments=FeaturesArguments,
    args=(Arg("what", "map: which release brought which level", arity="?", complete=_complete_what),),
    flags=(
        Flag(
            ("--can-upgrade",),
            "whether features can be raised to a release's levels (4.4), or to FEATURE=LEVEL",
            metavar="VERSION",
            repeat=True,
            complete=_complete_target,
        ),
        Flag(
            ("--can-downgrade",),
            "the same for lowering them",
            metavar="VERSION",
            repeat=True,
            complete=_complete_target,
        ),
        *row_flags(_ALL),
    ),
    examples=(
        Example("features", "what is finalized, and what all nodes support"),
        Example("features --can-upgrade 4.3", "whether the cluster can be finalized at 4.3"),
        Example("features --can-downgrade metadata.version=4.2", "what a downgrade would lose", 1),
        Example("features map", "which release brought which level; needs no source"),
    ),
    description=(
        "minVersion and maxVersion are what all registered nodes share, highestVersion is what the newest supports:"
        " inTheWay are the nodes that support less, or not the finalized level. --can-upgrade and --can-downgrade"
        " answer as `kafka-features.sh upgrade --dry-run` and `downgrade --dry-run` do, for each feature: VERSION is a"
        " release (4.4 means all its default levels), a metadata.version (4.4-IV2), or FEATURE=LEVEL (repeatable)."
        " possible is null (unknown) where a level is newer than this kshell, and where somebody's support is not"
        " known: controllers register from metadata.version 3.7-IV0 on, before that only a live source (-q) can ask"
        " them. kraft.version is part of the quorum. In the map, release is the first whose servers support the level,"
        " lastRelease the last one, and metadataVersion what has it by default."
    ),
    exit_1_when="with --can-upgrade or --can-downgrade: some of it is not possible (3 where that is unknown)",
    needs_source=False,
)
