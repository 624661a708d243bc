"""``clear``: an empty screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Command, Example
from kshell.engine.result import Nothing, Result

if TYPE_CHECKING:
    from kshell.engine.session import Session

_HOME_AND_ERASE = "\x1b[H\x1b[2J\x1b[3J"
"""The cursor goes to the first line, the screen and what was scrolled away are erased (ECMA-48)."""


def run(session: Session, args: Any) -> Result:
    """Clear the terminal; does nothing where standard output is none."""
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
