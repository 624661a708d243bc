"""``history``: the lines typed in this session and, in the interactive shell, in those before it."""

from __future__ import annotations

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag
from kshell.engine.result import Result, Rows, typed
from kshell.engine.session import Session


class HistoryArguments(Arguments):
    """Arguments and options of ``history``."""

    text: str | None
    n: int | None


def run(session: Session, args: HistoryArguments) -> Result:
    """Return the lines that contain the text, oldest first; with ``-n``, the newest N of them. Numbers start at 1."""
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
        multiline=True,  # with newlines and tabs spelled \n and \t, a query would be another one where it is pasted
    )


COMMAND = Command(
    name="history",
    summary="the lines that were typed",
    run=run,
    arguments=HistoryArguments,
    args=(Arg("text", "only lines with this text in them", arity="?"),),
    flags=(Flag(("-n",), "only the newest N lines", metavar="N", convert=count),),
    examples=(
        Example("history -n 10", "the last ten lines"),
        Example("history dump", "lines that have to do with dump"),
    ),
    needs_source=False,
)
