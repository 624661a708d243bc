"""Several nodes at the same time: the first that answers, or all of them.

Threads are daemons: an interrupt must not wait for a node that does not answer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kshell.errors import ConnectError, NodeError, SourceTimeoutError

T = TypeVar("T")
Item = TypeVar("Item")
Found = TypeVar("Found")
STAGGER = 1.0
"""Seconds after which the next attempt starts beside those that are still under way (RFC 8305 calls it a race)."""


def first(attempts: Sequence[Callable[[], T]], unreachable: Callable[[list[NodeError]], NodeError]) -> T:
    """What the first attempt to succeed gives. Raises at once what is no failure to reach a node, else ``unreachable``.

    The next attempt starts when one fails, or takes its time. Those that are still under way at the end go on by
    themselves: what they bring is their own business.
    """
    if len(attempts) == 1:
        return attempts[0]()
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run(attempt: Callable[[], T]) -> None:
        try:
            done.put((attempt(), None))
        except BaseException as error:  # told to whoever waits
            done.put((None, error))

    waiting = list(attempts)
    failures: list[NodeError] = []
    is_due = True
    while len(failures) < len(attempts):
        if is_due and waiting:
            threading.Thread(target=run, args=(waiting.pop(0),), name="kshell connecting", daemon=True).start()
        try:
            found, error = done.get(timeout=STAGGER if waiting else None)
        except queue.Empty:
            is_due = True
            continue
        if error is None:
            assert found is not None
            return found
        if not isinstance(error, ConnectError | SourceTimeoutError):
            raise error
        failures.append(error)
        is_due = len(attempts) - len(waiting) == len(failures)
    raise unreachable(failures)


def at_once(work: Callable[[Item], Found], items: Iterable[Item], *, most: int = 16) -> list[Found]:
    """What ``work`` gives for each item, in their order; ``most`` are worked on at the same time. Raises what it does.

    A single item needs no thread.
    """
    waiting: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
    count = 0
    for count, item in enumerate(items, 1):
        waiting.put((count - 1, item))
    found: dict[int, Found] = {}
    failures: list[Exception] = []

    def take() -> None:
        while not failures:
            try:
                number, item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                found[number] = work(item)
            except Exception as error:  # raised below, in the caller's own thread
                failures.append(error)

    if count == 1:
        take()
    else:
        threads = [threading.Thread(target=take, daemon=True) for _ in range(min(count, most))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return [found[number] for number in range(count)]
