"""Ask several nodes at the same time: wait for the first that answers, or for all of them.

The threads are daemons. Those of a ``ThreadPoolExecutor`` are not: the interpreter joins them when it exits, so after
an interrupt the user would wait for a node that does not answer. Results are ``concurrent.futures.Future`` objects.
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
"""Seconds after which the next attempt starts while earlier ones still run (RFC 8305 describes such a race)."""


def first_success(
    attempts: Sequence[Callable[[], Result]], unreachable: Callable[[list[NodeError]], NodeError]
) -> Result:
    """Return the result of the first attempt that succeeds.

    The next attempt starts when no earlier one runs any more, or when none has ended for :data:`STAGGER` seconds.
    Attempts that still run when a result is there go on in the background, and nobody waits for them.

    Args:
        attempts: at least one, in the order in which they are started.
        unreachable: turns the failures into one error if no attempt reached its node; not called for a single attempt.

    Raises:
        BaseException: immediately, if an attempt fails with anything else than ConnectError or SourceTimeoutError.
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
    """Call ``work`` for each item in threads, ``most`` at a time, and return the results in the order of the items.

    For a single item, ``work`` is called in the caller's thread. Raises the exception of the first item, in their
    order, that failed; after a failure no more calls are started.
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
    """Call ``work`` in a daemon thread, which never delays the end of the process; return the future of its result."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised in the thread that asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="kshell client", daemon=True).start()
    return future
