"""``history``: the lines typed in this session and, in the interactive shell, in those before it."""

from __future__ import annotations

from typing import Any

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Command, Example, Flag
from kshell.engine.result import Result, Rows, typed
from kshell.engine.session import Session


def run(session: Session, args: Any) -> Result:
    """Oldest first, numbered from 1; the newest N, and of them those with the text in them."""
    numbered = list(enumerate(session.history, 1))
    if args.text is not None:
        numbered = [(number, line) for number, line in numbered if args.text in line]
    if args.n is not None:
        numbered = numbered[len(numbered) - min(args.n, len(numbered)) :]
    rows = [{"number": number, "line": line} for number, line in numbered]
    return Rows(
        columns=typed("number:int64 line:string"),
        rows=rows,
        style="lines",
        line=lambda row: f"{row['number']:>5}  {row['line']}",
    )


COMMAND = Command(
    name="history",
    summary="the lines that were typed",
    run=run,
    args=(Arg("text", "only lines with this text in them", arity="?"),),
    flags=(Flag(("-n",), "only the newest N lines", metavar="N", convert=count),),
    examples=(
        Example("history -n 10", "the last ten lines"),
        Example("history dump", "lines that have to do with dump"),
    ),
    needs_source=False,
)
