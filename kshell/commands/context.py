"""``context``: list, add, use, show or remove contexts: names for a source and its client properties file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.client import contexts
from kshell.client.address import addresses
from kshell.client.contexts import CONTROLLERS, DIRECTORY, SERVERS, Context, Contexts
from kshell.client.properties import read
from kshell.client.settings import Settings, is_shown, source_of
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag
from kshell.engine.result import Column, Nothing, Report, Result, Rows, Section
from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.sources.directory.files import local_path

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

_ACTIONS = ("list", "add", "use", "show", "remove")
_COLUMNS = (
    Column("name", type="string"),
    Column("current", type="boolean"),
    Column("directory", wide=True, type="string"),
    Column("bootstrapControllers", type="string"),
    Column("bootstrapServers", type="string"),
    Column("config", type="string"),
)


class ContextArguments(Arguments):
    """Arguments and options of ``context``."""

    action: str | None
    name: str | None
    config: str | None
    bootstrap_controllers: str | None
    bootstrap_servers: str | None
    directory: str | None
    X: list[str] | None


def run(session: Session, args: ContextArguments) -> Result:
    """Run the action that the first argument names, on contexts that are read from the file each time."""
    action = args.action or "list"
    if action not in _ACTIONS:
        raise UsageError(
            f"context: {action} is none of {', '.join(_ACTIONS)}", hint="`help context` shows how it is used"
        )
    name = args.name
    if action == "list" and name is not None:
        raise UsageError("context: list takes no name", hint=f"context show {name}")
    if action != "list" and name is None:
        raise UsageError(f"context: {action} needs a name")
    source_options = {
        DIRECTORY: args.directory,
        CONTROLLERS: args.bootstrap_controllers,
        SERVERS: args.bootstrap_servers,
    }
    if action != "add" and (args.config or any(source_options.values())):
        raise UsageError(f"context: {action} takes no options", hint="only add does")
    if args.X:
        raise UsageError(
            "context: -X is not stored in a context: a property may be a password",
            hint="write it into a properties file: context add NAME --config FILE",
        )
    saved_contexts = contexts.load(os.environ)
    if name is None:
        return _list(saved_contexts)
    if action == "show":
        return _show(saved_contexts, name)
    if action == "add":
        saved_contexts.add(_new(name, args.config, source_options))
    elif action == "use":
        saved_contexts.use(name)
    else:
        saved_contexts.remove(name)
    saved_contexts.save()
    return Nothing()


def _list(saved_contexts: Contexts) -> Rows:
    rows = [
        contexts.described(context) | {"current": context.name == saved_contexts.current}
        for context in saved_contexts.named.values()
    ]
    rows.sort(key=lambda row: str(row["name"]))
    result = Rows(_COLUMNS, rows)
    used = [column for column in _COLUMNS if any(row[column.name] is not None for row in rows)]
    result.readable = Rows(tuple(column._replace(wide=False) for column in used) or _COLUMNS, rows)
    return result


def _show(saved_contexts: Contexts, name: str) -> Report:
    """One context, with the keys of its properties file and its protocol and mechanism, but no other values."""
    context = saved_contexts.get(name)
    facts: JsonObject = contexts.described(context) | {"current": saved_contexts.current == name}
    if context.config is not None:
        facts |= _of_properties(context.config)
    return Report([Section("", context.name, facts)])


def _of_properties(path: str) -> JsonObject:
    properties = read(path)
    settings = Settings.of(properties)
    return {
        "securityProtocol": settings.security_protocol,
        "saslMechanism": settings.sasl.mechanism if settings.sasl else None,
        "keys": sorted(key for key in properties if is_shown(properties, key)),
        "warnings": settings.warnings,
    }


def _new(name: str, config: str | None, source_options: dict[str, str | None]) -> Context:
    """Make a context, and check what needs no connection, so that one that cannot work is not saved."""
    sources = [(kind, value) for kind, value in source_options.items() if value]
    if len(sources) > 1:
        raise UsageError("context: one source is needed, and there are two: -d, -q and -b exclude each other")
    if not sources and config is None:
        raise UsageError("context: a source (-d, -q, -b), a properties file (--config) or both are needed")
    kind, value = sources[0] if sources else (None, None)
    if kind in (CONTROLLERS, SERVERS) and value is not None:
        addresses(value)
    if kind == DIRECTORY and value is not None:
        value = os.path.abspath(local_path(value))
    if config is not None:
        config = os.path.abspath(local_path(config))
        properties = read(config)
        settings = Settings.of(properties)
        if kind is None and source_of(settings) is None:
            raise UsageError(
                f"{config}: sets neither bootstrap.controllers nor bootstrap.servers", hint="add -q LIST or -b LIST"
            )
    return Context(name, kind, value, config)


def _complete_action(session: Session, typed: str) -> Iterable[str]:
    return [action for action in _ACTIONS if action.startswith(typed)]


def _names(tokens: list[str]) -> Iterable[str]:
    """Complete the name of an existing context, after an action that takes one."""
    if not tokens or tokens[-1] not in ("use", "show", "remove"):
        return ()
    try:
        return sorted(contexts.load(os.environ).named)
    except UsageError:
        return ()


COMMAND = Command(
    name="context",
    summary="names for sources, each with its client properties",
    run=run,
    arguments=ContextArguments,
    args=(
        Arg("action", "list (the default), add, use, show or remove", arity="?", complete=_complete_action),
        Arg("name", "the context", arity="?", after=_names),
    ),
    flags=(
        Flag(("--config",), "add: the Java client properties file to connect with; its path is kept", "FILE"),
        Flag(("-q", "--bootstrap-controllers"), "add: the controllers, host:port,…", "LIST"),
        Flag(("-b", "--bootstrap-servers"), "add: the brokers, host:port,…", "LIST"),
        Flag(("-d", "--directory"), "add: a metadata directory", "DIR"),
        Flag(
            ("-X",),
            "refused: a property may be a password, and is kept in the file of --config",
            "KEY=VALUE",
            repeat=True,
        ),
    ),
    examples=(
        Example("context add prod -q controller-1:9093,controller-2:9093", "a name for a quorum"),
        Example("context use prod", "the source from now on, where no other is given"),
        Example("context list", "every context"),
        Example("context show prod", "one of them; passwords are not shown"),
        Example("context remove prod", "forget it"),
    ),
    description=(
        "A context is a name for a source and a client properties file. kshell --context NAME opens it; the one that"
        " context use names is the default, below flags and environment. They are kept in"
        " $XDG_CONFIG_HOME/kshell/contexts.json, which holds the path of the properties file and never what is in it."
        " Without a source of its own, a context takes bootstrap.controllers or bootstrap.servers from that file."
    ),
    needs_source=False,
)
