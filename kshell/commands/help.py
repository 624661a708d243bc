"""``help``: the commands there are, and one of them on a screen."""

from __future__ import annotations

from typing import Any

from kshell.commands.base import registry
from kshell.commands.base.result import Result, Rows, Text, typed
from kshell.commands.base.spec import Arg, Command, Example
from kshell.commands.base.usage import help_text
from kshell.session import Session


def run(session: Session, args: Any) -> Result:
    """All commands as rows, or one as text; an alias says what it stands for."""
    name = args.command
    if name is None:
        rows = [{"name": command.name, "summary": command.summary} for command in registry.commands()]
        return Rows(columns=typed("name:string summary:string"), rows=rows)
    if name in session.aliases and name not in registry.names():
        return Text(f"{name} is an alias for {session.aliases[name]}")
    return Text(help_text(registry.get(name)), markdown=True)


COMMAND = Command(
    name="help",
    summary="the commands, or how one is used",
    run=run,
    args=(
        Arg(
            "command",
            "a command; all are listed when absent",
            kind="command",
            arity="?",
            complete=registry.complete_name,
        ),
    ),
    examples=(
        Example("help", "the commands"),
        Example("help find", "how find is used"),
        Example("find --help", "the same"),
    ),
    needs_source=False,
)
