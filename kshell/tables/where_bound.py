"""A search with a pattern that ends: what :mod:`.where_pattern` cannot see beforehand is given up after a while.

Python's engine goes back and forth without a limit of its own, holds the interpreter's lock all the time, and listens
to nothing but signals. So a timer of the process's own time rings: not the one of ``--timeout``, which goes on beside.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from kshell.errors import CommandError

SECONDS = 1.0
"""Processor time that one text may take."""
_REPETITION = re.compile(r"[*+?{]")
Search = Callable[[str], object]


class _RangError(Exception):
    """The timer rang inside a search."""


def bounded(pattern: re.Pattern[str]) -> Search:
    """The pattern's search. Raises CommandError when a text takes too long.

    A pattern with one repetition, and no group, cannot, and is not watched. Another thread than the main one cannot be.
    """
    repetitions = len(_REPETITION.findall(pattern.pattern))
    if not repetitions or (repetitions == 1 and "(" not in pattern.pattern):
        return pattern.search
    import signal

    if not hasattr(signal, "setitimer"):
        return pattern.search

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise _RangError

    def search(text: str) -> object:
        if threading.current_thread() is not threading.main_thread():
            return pattern.search(text)
        before = signal.signal(signal.SIGVTALRM, ring)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            return pattern.search(text)
        except _RangError:
            raise CommandError(
                f"the pattern {pattern.pattern} takes more than {SECONDS:g} s on a text of {len(text)} characters",
                hint="repetitions that can share a text in many ways take for ever: .*.*x is .*x, (a|aa)* is a*",
            ) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    return search
