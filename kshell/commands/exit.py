"""``exit``: leave the shell, or stop reading a file of commands."""

from __future__ import annotations

from kshell.engine.declaration import Arg, Arguments, Command, Example
from kshell.engine.result import Exit, Result
from kshell.engine.session import Session
from kshell.errors import UsageError

_HIGHEST = 255


class ExitArguments(Arguments):
    """Arguments and options of ``exit``."""

    code: str | None


def run(session: Session, args: ExitArguments) -> Result:
    """Raise Exit, which the front end catches to end with this exit code."""
    code = args.code or "0"
    if not (code.isascii() and code.isdigit() and len(code) < 5 and int(code) <= _HIGHEST):
        raise UsageError(f"exit: {code!r} is no exit code", hint=f"a number from 0 to {_HIGHEST}")
    raise Exit(int(code))


COMMAND = Command(
    name="exit",
    summary="leave the shell, or stop reading commands",
    run=run,
    arguments=ExitArguments,
    args=(Arg("code", "the exit code, 0 when absent", arity="?"),),
    examples=(
        Example("exit", "leave with exit code 0"),
        Example("exit 3", "end a file of commands with an exit code of its own", 3),
    ),
    needs_source=False,
)
