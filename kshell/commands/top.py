"""``top``: start the full-screen view of the cluster (:mod:`kshell.top`), which can move to any point of its log."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from kshell.commands.diff import source_named
from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.result import Nothing, Result
from kshell.errors import UsageError
from kshell.extras import require

if TYPE_CHECKING:
    from kshell.engine.session import Session

_INSTEAD = "`status` prints one screen, `watch status` prints it again and again"


class TopArguments(Arguments):
    """Arguments and options of ``top``."""

    source: str | None


def run(session: Session, args: TopArguments) -> Result:
    """Show the screen until the user leaves.

    Raises:
        UsageError: there is no terminal, or the package that draws the screen is not installed.
        KshellError: the source cannot be read.
    """
    # Only a front end that can ask questions has a terminal; notebooks and Python have none, even if stdin is one.
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if session.ask is None or not is_terminal:
        raise UsageError("top: needs a terminal for its full screen", hint=_INSTEAD)
    require("top", "tui", "textual")
    named = None if args.source is None else source_named(session, args.source)
    if named is not None:
        named.settings = session.settings
    screen_session = session if named is None else named
    try:
        # Load before the screen is drawn, so that progress, Ctrl-C and errors work as for every command.
        _ = screen_session.image
        # Late and by name: commands may not import a front end, but here the screen is the result.
        importlib.import_module("kshell.top.screen").run(screen_session)
    finally:
        if named is not None:
            named.source.close()
        elif session.source.is_live:
            session.reload()  # the screen has consumed the changes that this session would have noticed
    return Nothing()


COMMAND = Command(
    name="top",
    task=Task.PROBLEMS,
    summary="the cluster as a full screen: problems, topics, brokers, quorum and events, at any moment of the log",
    run=run,
    arguments=TopArguments,
    args=(Arg("source", "a directory, a file or context:NAME; the session's source if absent", arity="?"),),
    examples=(
        Example("top", "needs a terminal; in a script it says what to use instead", 2),
        Example("top --as-of 100", "begins at an earlier moment", 2),
    ),
    description=(
        "Needs the extra tui and a terminal. Keys: 1 to 5 choose a panel, Enter opens a row (a topic, its partitions,"
        " the story of one as `why` shows it), Esc goes back, / filters, ? lists all keys, q and Ctrl-C quit. The"
        " slider is the log: Left and Right go by a record, < and > by a hundredth of the log, Home to its first record"
        " and End to now; every panel is the state as of it. The first step reads the log once; all others are quick."
        " At now, a running cluster is asked every two seconds. Events are those of the last 500 offsets. Secrets are"
        " redacted as everywhere. Notebooks and Python cannot show it: there, `status` and `health` answer the same"
        " questions."
    ),
    needs_source=False,
)
