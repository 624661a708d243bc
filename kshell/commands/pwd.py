"""``pwd``: the working directory."""

from __future__ import annotations

from kshell.engine.declaration import Arguments, Command, Example, Task
from kshell.engine.result import Result, Text
from kshell.engine.session import Session


def run(session: Session, args: Arguments) -> Result:
    """Return the working directory as a path that other commands accept."""
    return Text(session.cwd_path)


COMMAND = Command(
    name="pwd",
    task=Task.TREE,
    summary="the working directory",
    run=run,
    examples=(
        Example("pwd", "where you are"),
        Example("pwd -o json", "the same as a JSON string"),
    ),
    needs_source=False,
)
