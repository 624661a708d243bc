"""``pwd``: the working directory."""

from __future__ import annotations

from typing import Any

from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result, Text
from kshell.engine.session import Session


def run(session: Session, args: Any) -> Result:
    """The path as other commands take it."""
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
