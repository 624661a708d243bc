"""``configs``: configs of topics, brokers and groups; ``configs check`` says whether Kafka would accept values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kshell.cluster.configs import ask, complete_entity, expand, failure_of, parse_entity
from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.predicates import answers_by_rows, answers_unknown_without_rows
from kshell.engine.result import Result, Row, Rows, typed
from kshell.errors import (
    EXIT_FINDING,
    EXIT_OK,
    EXIT_SOURCE,
    KshellError,
    NodeError,
    UnsupportedVersionError,
    UsageError,
)
from kshell.metadata.families.configs import Resource, resource_segment
from kshell.metadata.redaction import REDACTED, config_is_secret
from kshell.sources.brokers.config_entries import UNKNOWN, ConfigEntry
from kshell.tables.config_conflicts import conflicts
from kshell.tables.configs import BROKER_LOGGER, check, readable, rows_of_log, rows_of_node
from kshell.tables.selection import RowArguments, asked_for, has_row_options, row_flags, select
from kshell.tables.state.cluster import CONFIG_FIELDS

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.brokers.config_entries import Described

_CHECKED = typed(
    "resourceType:string resourceName:string name:string value:string valid:boolean type:string expected:string"
    " reason:string"
)
_CHECK = "check"
_TELLS_TYPES = 3
"""The first version of DescribeConfigs whose response has types and documentation (KIP-569)."""
_OF_NODES = frozenset(("type", "isReadOnly", "isSensitive", "synonyms", "documentation"))
"""Fields that the log does not have."""
_BY_TABLES = (
    "checked against what Kafka 3.3 to 4.4 define, each alone and with the others given; not checked: values that"
    " are already set, and whether a restart is needed"
)


class ConfigsArguments(RowArguments):
    """Arguments and options of ``configs``."""

    entity: list[str]
    docs: bool
    overridden: bool
    effective: bool


def run(session: Session, args: ConfigsArguments) -> Result:
    """Return one row per config of the entities, or per config that is set; with ``check``, a verdict on each value."""
    if args.overridden and args.effective:
        raise UsageError("configs: --overridden and --effective exclude each other")
    if args.entity[:1] == [_CHECK]:
        if args.docs or args.overridden or args.effective or has_row_options(args):
            raise UsageError("configs check takes no options")
        return _check(session, args.entity[1:])

    entities: list[str] = args.entity or []
    resources = (
        [resource for entity in entities for resource in expand(session, entity)]
        if entities
        else sorted(session.image["configs"])
    )
    fields = [
        field._replace(wide=False) if args.docs and field.name == "documentation" else field for field in CONFIG_FIELDS
    ]
    rows, is_unknown = _rows(session, resources, args)
    result = select(fields, rows, args, readable=readable)
    if is_unknown:
        if not args.fail_if_any:
            answers_by_rows(result, some=EXIT_OK, none=EXIT_SOURCE)
        answers_unknown_without_rows(result)
    return result


def _rows(session: Session, resources: list[Resource], args: ConfigsArguments) -> tuple[list[Row], bool]:
    """The rows, and whether some may be missing because a node did not report what it was asked for."""
    nodes = session.source.nodes
    extended = args.docs or args.effective or args.overridden
    if nodes is None or session.until is not None or not (args.entity or extended):
        if extended:
            session.remarks.append("the log holds what was set, and neither defaults nor documentation: needs -q or -b")
        return list(rows_of_log(session.image["configs"], resources, session.redaction)), False
    rows: list[Row] = []
    failures: list[KshellError] = []
    any_from_log = is_unknown = False
    for described in ask(session, nodes, resources, docs=args.docs):
        failure = failure_of(described)
        if failure is None:
            rows += rows_of_node(described, session.redaction, overridden=args.overridden, effective=args.effective)
            _note_old(session, described)
            continue
        failures.append(failure)
        from_log = nodes.kind == "controller" and isinstance(failure, NodeError)
        any_from_log = any_from_log or from_log
        unknown = "only what was set is known, and the rest is unknown: " if from_log else ""
        hint = f" ({failure.hint})" if failure.hint else ""
        session.remarks.append(f"{resource_segment(described.resource)}: {unknown}{failure.message}{hint}")
        set_there: list[Row] = []
        if from_log:
            set_there += rows_of_log(session.image["configs"], [described.resource], session.redaction, type=UNKNOWN)
            rows += set_there
        if isinstance(failure, NodeError):
            # Who asks for what was set has it from the log; but a node without any may be one that is not there.
            is_known = from_log and (set_there or isinstance(failure, UnsupportedVersionError))
            is_unknown = is_unknown or not is_known or _needs_nodes(args)
    if failures and len(failures) == len(resources) and not rows and not any_from_log:
        session.remarks.clear()  # the error that is raised says the same
        raise failures[0]
    if not rows and not failures:
        session.remarks.append("nothing is set there: --effective shows what is in force")
    return rows, is_unknown


def _needs_nodes(args: ConfigsArguments) -> bool:
    """Whether the log alone cannot say which rows belong to the answer."""
    asked = frozenset() if args.where is None else asked_for(CONFIG_FIELDS, args.where)
    return args.effective or args.overridden or not _OF_NODES.isdisjoint(asked)


def _note_old(session: Session, described: Described) -> None:
    if described.origin.version < _TELLS_TYPES:
        node = described.origin.place.file
        session.remark(f"{node}: too old to report types and documentation (Kafka 2.6 and later do): they are unknown")


# --- check -----------------------------------------------------------------------------------------------------------


def _check(session: Session, arguments: list[str]) -> Rows:
    if len(arguments) < 2:
        raise UsageError(
            "configs check: an entity and KEY=VALUE are needed", hint="configs check TOPIC:orders retention.ms=1"
        )
    kind, name = resource = parse_entity(arguments[0])
    reported_entry = _reported_entries(session, resource)
    verdicts = []
    for assignment in arguments[1:]:
        key, equals, value = assignment.partition("=")
        if not equals or not key:
            raise UsageError(f"{key or '='}: not KEY=VALUE")
        verdicts.append((key, value, check(kind, key, value, reported_entry(key))))

    def present(key: str) -> str | None:
        entry = reported_entry(key)
        return None if entry is None else entry.value

    reasons = conflicts(kind, {key: value for key, value, verdict in verdicts if verdict.valid}, present)
    rows = []
    for key, value, verdict in verdicts:
        hidden = kind != BROKER_LOGGER and not session.redaction.show_secrets and config_is_secret(kind, key)
        facts = {"resourceType": kind, "resourceName": name, "name": key, "value": REDACTED if hidden else value}
        refused = {"valid": False, "reason": reasons[key]} if verdict.valid and key in reasons else {}
        rows.append(facts | verdict._asdict() | refused)
    return Rows(_CHECKED, rows, exit_code=EXIT_OK if all(row["valid"] for row in rows) else EXIT_FINDING)


def _reported_entries(session: Session, resource: Resource) -> Callable[[str], ConfigEntry | None]:
    """A lookup of the entry that a node reports for a key. Without a node it is empty, and a remark says so."""
    nodes = session.source.nodes
    entries: dict[str, ConfigEntry] = {}
    if nodes is None:
        session.remarks.append(f"{_BY_TABLES}; a running cluster (-q, -b) also says what it has")
        return entries.get
    for described in ask(session, nodes, [resource], docs=False):
        failure = failure_of(described)
        if isinstance(failure, NodeError):
            session.remarks.append(f"{_BY_TABLES}: {failure.message}")
        elif failure is not None:
            raise failure
        entries |= {entry.name: entry for entry in described.entries}
    return entries.get


def _complete(session: Session, typed: str) -> Iterable[str]:
    return [*complete_entity(session, typed), *([_CHECK] if _CHECK.startswith(typed) else [])]


COMMAND = Command(
    name="configs",
    task=Task.CLUSTER,
    summary="configs of topics, brokers and groups, with types, sources and documentation",
    run=run,
    arguments=ConfigsArguments,
    args=(
        Arg(
            "entity",
            "TYPE:NAME (TOPIC:orders, BROKER:1, GROUP:readers, CLIENT_METRICS:name, BROKER_LOGGER:1), BROKER for the"
            " default of all brokers; NAME may be a glob; everything that was set when absent; or check TYPE:NAME"
            " KEY=VALUE …",
            arity="*",
            complete=_complete,
        ),
    ),
    flags=(
        Flag(("--docs",), "with documentation; needs -q or -b"),
        Flag(("--overridden",), "whatever is not a default, wherever it was set; needs -q or -b"),
        Flag(("--effective",), "every config that is in force, defaults too; needs -q or -b"),
        *row_flags(CONFIG_FIELDS),
    ),
    examples=(
        Example("configs", "everything that was set"),
        Example("configs TOPIC:orders", "what was set for one topic"),
        Example("configs 'TOPIC:*' BROKER -o csv", "of every topic, and the default of all brokers"),
        Example(
            "configs --where 'name == min.insync.replicas' --columns resourceName,value",
            "one config, wherever it is set",
        ),
        Example(
            "configs check TOPIC:orders retention.ms=86400000 cleanup.policy=compact", "whether values would be taken"
        ),
        Example("configs check TOPIC:orders min.insync.replicas=0", "why a value would not be taken", exit_code=1),
    ),
    description=(
        "A directory holds what was set; a running cluster (-q, -b) is asked for the rest: types, synonyms (where else"
        " the value may come from), what is sensitive or read-only, documentation. A broker is asked about itself;"
        " controllers answer from Kafka 3.7 on, and before that types are UNKNOWN. Sensitive values, and those of keys"
        " that no Kafka from 3.3 to 4.4 defines, are redacted. The ACL that is needed is DESCRIBE_CONFIGS on the topic"
        " or group, else on CLUSTER:kafka-cluster. If a node does not report what it was asked for, the rest is shown,"
        " with a note; if no row is left, the exit code is 3. configs check changes nothing and asks no node to. It"
        " checks the type, the valid values that are known, and what Kafka refuses in combination with the other values"
        " on the line and, at a running cluster, with those in force (local.retention.ms above retention.ms)."
    ),
    exit_1_when="with check: a value would not be taken",
)
