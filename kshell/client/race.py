"""The first of several attempts that goes well; one that takes its time does not keep the next from starting."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from kshell.errors import ConnectError, NodeError, SourceTimeoutError

T = TypeVar("T")
STAGGER = 1.0
"""Seconds after which the next attempt starts beside those that are still under way (RFC 8305 calls it a race)."""


def first(attempts: Sequence[Callable[[], T]], unreachable: Callable[[list[NodeError]], NodeError]) -> T:
    """What the first attempt to succeed gives. Raises at once what is no failure to reach a node, else ``unreachable``.

    Attempts that are still under way then go on by themselves: what they bring is their own business.
    """
    if len(attempts) == 1:
        return attempts[0]()
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run(attempt: Callable[[], T]) -> None:
        try:
            done.put((attempt(), None))
        except BaseException as error:  # told to whoever waits
            done.put((None, error))

    failures: list[NodeError] = []
    started = 0
    while len(failures) < len(attempts):
        if started < len(attempts) and started == len(failures):
            threading.Thread(target=run, args=(attempts[started],), name="kshell connecting", daemon=True).start()
            started += 1
        try:
            found, error = done.get(timeout=STAGGER if started < len(attempts) else None)
        except queue.Empty:
            threading.Thread(target=run, args=(attempts[started],), name="kshell connecting", daemon=True).start()
            started += 1
            continue
        if error is None:
            assert found is not None
            return found
        if not isinstance(error, ConnectError | SourceTimeoutError):
            raise error
        failures.append(error)
    raise unreachable(failures)
