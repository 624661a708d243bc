"""``man``: everything about a command."""

from __future__ import annotations

from typing import Any

from kshell.commands.base import registry
from kshell.commands.base.result import Result, Text
from kshell.commands.base.spec import Arg, Command, Example
from kshell.commands.base.usage import man_text
from kshell.session import Session


def run(session: Session, args: Any) -> Result:
    """The long form of ``help``."""
    return Text(man_text(registry.get(args.command)), markdown=True)


COMMAND = Command(
    name="man",
    summary="everything about a command",
    run=run,
    args=(Arg("command", "a command", kind="command", complete=registry.complete_name),),
    examples=(
        Example("man dump", "its description, options, examples and exit codes"),
        Example("man find -o markdown > find.md", "as a page of its own"),
    ),
    needs_source=False,
)
