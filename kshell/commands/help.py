"""``help``: the commands there are, and one of them, or a subject, on a screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kshell.engine import registry
from kshell.engine.declaration import Arg, Command, Example
from kshell.engine.result import Result, Rows, Text, typed
from kshell.engine.session import Session
from kshell.engine.usage import help_text


def run(session: Session, args: Any) -> Result:
    """All commands as rows, or one as text; an alias says what it stands for. Raises UsageError for an unknown word."""
    name = args.command
    if name is None:
        rows = [{"name": command.name, "summary": command.summary} for command in registry.commands()]
        return Rows(columns=typed("name:string summary:string"), rows=rows)
    if name in session.aliases and name not in registry.names():
        return Text(f"{name} is an alias for {session.aliases[name]}")
    if name in registry.names():
        return Text(help_text(registry.get(name)), markdown=True)
    from kshell.engine.help_pages import PAGES, unknown

    if name not in PAGES:
        raise unknown(name)
    return Text(PAGES[name](), markdown=True)


def _complete(session: Session, typed: str) -> Iterable[str]:
    from kshell.engine.help_pages import complete_subject

    return complete_subject(session, typed)


COMMAND = Command(
    name="help",
    summary="the commands, or how one is used",
    run=run,
    args=(
        Arg(
            "command",
            "a command, or one of exit-codes and where; commands are listed when absent",
            kind="command",
            arity="?",
            complete=_complete,
        ),
    ),
    examples=(
        Example("help", "the commands"),
        Example("help find", "how find is used"),
        Example("find --help", "the same"),
        Example("help exit-codes", "what scripts need to know"),
    ),
    needs_source=False,
)
