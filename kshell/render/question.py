"""A question to the person at the terminal, with yes or no for an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kshell.escape import terminal as escape


def asker(before: Callable[[], None]) -> Callable[[str], bool] | None:
    """What asks the person at the terminal, after ``before``; ``None`` where standard input or error is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(question: str) -> bool:
        before()
        return confirmed(question)

    return ask


def confirmed(question: str) -> bool:
    """Asks on standard error; only ``y`` and ``yes`` mean yes, the end of the input means no."""
    sys.stderr.write(f"{escape(question)} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
