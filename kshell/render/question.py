"""Ask the user at the terminal a yes-or-no question."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kshell.escape import terminal as escape


def asker(before: Callable[[], None]) -> Callable[[str], bool] | None:
    """Return a function that asks the user, after ``before``; ``None`` if standard input or error is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(question: str) -> bool:
        before()
        return confirmed(question)

    return ask


def confirmed(question: str) -> bool:
    """Ask on standard error; return true for ``y`` and ``yes`` only. The end of the input means no."""
    sys.stderr.write(f"{escape(question)} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
