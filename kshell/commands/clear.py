"""``clear``: clear the terminal's screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arguments, Command, Example
from kshell.engine.result import Nothing, Result

if TYPE_CHECKING:
    from kshell.engine.session import Session

_HOME_AND_ERASE = "\x1b[H\x1b[2J\x1b[3J"
"""Move the cursor to the first line, and erase screen and scrollback (ECMA-48)."""


def run(session: Session, args: Arguments) -> Result:
    """Clear the terminal; does nothing if standard output is not a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(_HOME_AND_ERASE)
        sys.stdout.flush()
    return Nothing()


COMMAND = Command(
    name="clear",
    summary="clear the screen",
    run=run,
    examples=(Example("clear", "an empty screen"), Example("clear -o json", "the same: it has no answer")),
    needs_source=False,
)
