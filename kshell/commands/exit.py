"""``exit``: the end."""

from __future__ import annotations

from typing import Any

from kshell.engine.declaration import Arg, Command, Example
from kshell.engine.result import Exit, Result
from kshell.engine.session import Session
from kshell.errors import UsageError

_HIGHEST = 255


def run(session: Session, args: Any) -> Result:
    """Raises Exit, which is for the front end."""
    code = args.code or "0"
    if not (code.isascii() and code.isdigit() and len(code) < 5 and int(code) <= _HIGHEST):
        raise UsageError(f"exit: {code!r} is no exit code", hint=f"a number from 0 to {_HIGHEST}")
    raise Exit(int(code))


COMMAND = Command(
    name="exit",
    summary="leave the shell, or stop reading commands",
    run=run,
    args=(Arg("code", "the exit code, 0 when absent", arity="?"),),
    examples=(
        Example("exit", "leave with exit code 0"),
        Example("exit 3", "end a file of commands with an exit code of its own", 3),
    ),
    needs_source=False,
)
