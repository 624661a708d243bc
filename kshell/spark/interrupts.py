"""Ctrl-C and SIGTERM while Spark works: it ends at once and without a word, as what it was doing does not count."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_TERMINATED = 128 + signal.SIGTERM
_PATIENCE = 5.0
"""Seconds that Spark is given to cancel its jobs."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: ended from outside, in the orderly way."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises :class:`Terminated`, so that what is to be removed at the end is."""

    def heard(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated

    with _handled({signal.SIGTERM: heard}):
        yield


@contextlib.contextmanager
def quiet(session: SparkSession) -> Iterator[None]:
    """A session of this process that is given up at Ctrl-C and SIGTERM, and when anything is raised: its jobs are
    cancelled, and it does not say that they were.
    """

    def heard(number: int, frame: FrameType | None) -> NoReturn:
        # In a thread of its own: this one may be in the middle of a question to the JVM.
        hushing = threading.Thread(target=_hush, args=(session,), name="kshell interrupt", daemon=True)
        hushing.start()
        hushing.join(_PATIENCE)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    with _handled({signal.SIGINT: heard, signal.SIGTERM: heard}):
        try:
            yield
        except BaseException:
            _hush(session)
            raise


def _hush(session: Any) -> None:
    with contextlib.suppress(Exception):  # the JVM may be gone
        context = session.sparkContext
        # What a task says of itself comes through this server, which would tell that its sentence was cut short.
        if context._accumulatorServer is not None:  # it is stopped
            context._accumulatorServer.handle_error = lambda *arguments: None
        context.setLogLevel("OFF")
        context.cancelAllJobs()


@contextlib.contextmanager
def _handled(handlers: dict[signal.Signals, Any]) -> Iterator[None]:
    """Only the main thread hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
