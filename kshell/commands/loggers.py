"""``loggers``: list a node's log levels, or change one, which is all that kshell ever changes in a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kshell.commands.api_versions import complete_node
from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.result import Result, Rows, typed
from kshell.errors import (
    CommandError,
    ConnectError,
    NodeError,
    ServerError,
    SourceTimeoutError,
    UsageError,
    did_you_mean,
)
from kshell.metadata.values import NEWER_ENUM
from kshell.tables.configs import LOG_LEVELS
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select

if TYPE_CHECKING:
    from kshell.client.connection import Connection
    from kshell.client.loggers import Logger
    from kshell.client.nodes import Nodes
    from kshell.cluster.nodes import Member
    from kshell.engine.session import Session

_SET, _UNSET = "set", "unset"
_SHOWN_ONLY = ("OFF", "ALL")
"""Levels that can be in effect through a node's log4j configuration, but cannot be set by a request."""


def _level_sources() -> Iterable[str]:
    from kshell.client.loggers import SOURCES

    return SOURCES.values()


_FIELDS = (
    Field("name", "string", "the logger's name"),
    Field("level", Enumeration((*LOG_LEVELS, *_SHOWN_ONLY)), "the level in effect"),
    Field("source", Enumeration(_level_sources, NEWER_ENUM), "where it is set, in Kafka's words", True),
    Field("isReadOnly", "boolean", "whether it cannot be changed", True),
)
_CHANGE_COLUMNS = typed("node:int32 name:string before:string after:string")
_ROOT = "root"


class LoggersArguments(RowArguments):
    """Arguments and options of ``loggers``."""

    node: str
    action: str | None
    name: str | None
    level: str | None
    yes: bool


def run(session: Session, args: LoggersArguments) -> Result:
    """List, or change one logger after asking. Raises NodeError, UsageError; CommandError if the user declines."""
    node_id, change = _checked(args)
    from kshell.cluster.nodes import live_nodes

    nodes = live_nodes(session, "loggers")
    if change is not None and not args.yes and session.ask is None:
        raise UsageError(
            "loggers: there is no terminal to ask for confirmation", hint="--yes changes the level without asking"
        )
    member, connection, node_loggers = _connect(session, nodes, node_id)
    with contextlib.closing(connection):
        if change is not None:
            return _change_level(session, change, member, connection, node_loggers, asks=not args.yes)
    rows = [
        {"name": logger.name, "level": logger.level, "source": logger.source, "isReadOnly": logger.is_read_only}
        for logger in node_loggers
    ]
    return select(_FIELDS, rows, args)


def _connect(session: Session, nodes: Nodes, node_id: int) -> tuple[Member, Connection, list[Logger]]:
    """Connect to the node with an id; returns it, the connection and its loggers.

    If ids are not known (the principal may not ask), each address is tried as if it were that node: the others refuse.
    """
    from kshell.client.loggers import INVALID_REQUEST, loggers
    from kshell.cluster.nodes import connection_to, find_members

    failure: NodeError | None = None
    for member in find_members(session, nodes, node_id):
        try:
            connection = connection_to(nodes, member)
        except (ConnectError, SourceTimeoutError) as error:
            failure = error  # it may have been the wanted node: said rather than what another one answered
            continue
        try:
            return member._replace(id=node_id), connection, loggers(connection, node_id)
        except ServerError as error:
            connection.close()
            if error.code != INVALID_REQUEST:
                raise
            failure = failure or error
        except BaseException:
            connection.close()
            raise
    assert failure is not None
    raise failure


class _Change(NamedTuple):
    """The change of one logger that a command line asks for."""

    logger: str
    level: str | None
    """The new level; ``None`` to unset the logger's own level, so that it inherits one."""


def _checked(args: LoggersArguments) -> tuple[int, _Change | None]:
    """Check the arguments; returns the node's id and the change (``None``: list loggers). Raises UsageError."""
    hint = "`help loggers` shows how it is used"
    try:
        node_id = count(args.node)
    except ValueError as error:
        raise UsageError(f"loggers: {args.node}: a node's id is {error}", hint=hint) from None
    action, name, level = args.action, args.name, args.level
    if action is None:
        return node_id, None
    if action not in (_SET, _UNSET):
        raise UsageError(f"loggers: {action} is neither set nor unset", hint=hint)
    if has_row_options(args):
        raise UsageError(f"loggers: {action} takes no options that choose rows", hint=hint)
    if name is None or (level is None) == (action == _SET):
        needs = "a logger and a level" if action == _SET else "a logger, and no level"
        raise UsageError(f"loggers: {action} takes {needs}", hint=hint)
    if action == _UNSET and name == _ROOT:
        raise UsageError("loggers: root has nothing to inherit its level from: it cannot be unset", hint=hint)
    if level is not None and level.upper() not in LOG_LEVELS:
        raise UsageError(f"loggers: {level} is no level that Kafka takes", hint=f"levels: {', '.join(LOG_LEVELS)}")
    return node_id, _Change(name, level.upper() if level is not None else None)


def _change_level(
    session: Session,
    change: _Change,
    member: Member,
    connection: Connection,
    node_loggers: list[Logger],
    *,
    asks: bool,
) -> Rows:
    """Change the level, and return it before and after; for the latter the node is asked again."""
    from kshell.client.loggers import loggers, set_level

    name, level = change
    before = _level_of(node_loggers, name, member)
    if asks:
        assert session.ask is not None  # run() has checked it before connecting
        to = f"to {level}" if level is not None else "back to what it inherits"
        where = f"{member.title} ({connection.node})"
        if not session.ask(f"Change {name} at {where} from {before} {to}, until the node restarts?"):
            raise CommandError("loggers: nothing was changed")
    assert member.id is not None
    set_level(connection, member.id, name, level)
    after = _level_of(loggers(connection, member.id), name, member)
    session.remarks.append(f"{member.title} keeps this level until it restarts: the change is not stored")
    return Rows(_CHANGE_COLUMNS, [{"node": member.id, "name": name, "before": before, "after": after}])


def _level_of(node_loggers: Iterable[Logger], name: str, member: Member) -> str | None:
    levels = {logger.name: logger.level for logger in node_loggers}
    if name in levels:
        return levels[name]
    hint = did_you_mean(name, levels, f"`loggers {member.name}` lists those there are")
    raise CommandError(f"loggers: {member.title} has no logger {name}", hint=hint)


def _complete_action(session: Session, typed: str) -> Iterable[str]:
    return [_SET, _UNSET]


def _complete_level(tokens: list[str]) -> Iterable[str]:
    return LOG_LEVELS if _SET in tokens else ()


COMMAND = Command(
    name="loggers",
    task=Task.CLUSTER,
    summary="log levels of one controller or broker; set changes one until the node restarts",
    run=run,
    arguments=LoggersArguments,
    args=(
        Arg("node", "the node's id", complete=complete_node),
        Arg("action", "set or unset; the loggers are listed when absent", arity="?", complete=_complete_action),
        Arg("name", "the logger to change", arity="?"),
        Arg("level", "the level to set: TRACE, DEBUG, INFO, WARN, ERROR or FATAL", arity="?", after=_complete_level),
    ),
    flags=(Flag(("-y", "--yes"), "change the level without asking"), *row_flags(_FIELDS)),
    examples=(
        Example("loggers 3000", "the loggers of a controller; the sample does not run", 3),
        Example("loggers 1 --where 'level in [DEBUG, TRACE]' --columns name", "the verbose loggers", 3),
        Example("loggers 1 set kafka.server.KafkaApis DEBUG --yes", "make one broker log more, in a script", 3),
        Example("loggers 1 unset kafka.server.KafkaApis --yes", "back to the level that it inherits", 3),
    ),
    description=(
        "kshell asks the node itself, whichever controller leads (KIP-412, KIP-919); controllers answer from Kafka 3.7"
        " on. level is the one in effect: the logger's own, or the one that it inherits. Only loggers that exist in the"
        " running node are listed and can be changed. set and unset are the only calls of kshell that change anything:"
        " they ask first, and without a terminal they need --yes. The change lasts until the node restarts; what is"
        " printed is what the node says before and after. The principal needs DESCRIBE_CONFIGS on CLUSTER to list; to"
        " change, ALTER_CONFIGS on CLUSTER at a broker, CLUSTER_ACTION on CLUSTER at a controller. With -q, brokers are"
        " found by their registrations, at the listener with the security protocol of the client properties."
    ),
)
