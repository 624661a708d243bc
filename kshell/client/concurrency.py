"""Several nodes asked at the same time: the first that answers, or all of them.

Threads are daemons, which those of a ``ThreadPoolExecutor`` are not: the interpreter joins these when it exits, so an
interrupt would wait for a node that does not answer. Their results are futures of the library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from kshell.errors import ConnectError, NodeError, SourceTimeoutError

Item = TypeVar("Item")
Result = TypeVar("Result")
STAGGER = 1.0
"""Seconds after which the next attempt starts while others are under way (RFC 8305 calls it a race)."""


def first_success(
    attempts: Sequence[Callable[[], Result]], unreachable: Callable[[list[NodeError]], NodeError]
) -> Result:
    """Return what the first attempt to succeed gives.

    The next attempt starts when none is under way any more, or when none has ended for :data:`STAGGER`. Those that are
    still under way at the end go on by themselves, and nobody waits for them.

    Args:
        attempts: at least one, in the order in which they are started.
        unreachable: turns the failures into one error, where no attempt reached its node; not called for a single one.

    Raises:
        BaseException: at once, when an attempt fails otherwise than by not reaching its node.
    """
    if len(attempts) == 1:
        return attempts[0]()
    waiting = list(attempts)
    running: set[Future[Result]] = set()
    failures: list[NodeError] = []
    is_due = True
    while waiting or running:
        if waiting and is_due:
            running.add(start(waiting.pop(0)))
        finished, running = wait(running, STAGGER if waiting else None, FIRST_COMPLETED)
        for future in finished:
            error = future.exception()
            if error is None:
                return future.result()
            if not isinstance(error, ConnectError | SourceTimeoutError):
                raise error
            failures.append(error)
        is_due = not (finished and running)
    raise unreachable(failures)


def concurrently(work: Callable[[Item], Result], items: Iterable[Item], *, most: int = 16) -> list[Result]:
    """Return what ``work`` gives for each item, in their order. Raises what it raises for the first item that fails.

    Args:
        work: called in a thread, but in the caller's own where there is a single item.
        items: one call each.
        most: how many are worked on at the same time.
    """
    items = list(items)
    if len(items) == 1:
        return [work(items[0])]
    futures: list[Future[Result]] = []
    running: set[Future[Result]] = set()
    for item in items:
        if len(running) == most:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            if any(future.exception() is not None for future in finished):
                break
        future = start(lambda item=item: work(item))  # type: ignore[misc]
        futures.append(future)
        running.add(future)
    return [future.result() for future in futures]


def start(work: Callable[[], Result]) -> Future[Result]:
    """Return what ``work`` will give, called in a thread that nobody waits for when the process ends."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised in the thread that asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="kshell client", daemon=True).start()
    return future
