"""Handle Ctrl-C and SIGTERM while Spark works: cancel its jobs at once, without Spark's messages about that."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_TERMINATED = 128 + signal.SIGTERM
_PATIENCE = 5.0
"""Seconds that Spark is given to cancel its jobs."""


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; raised like KeyboardInterrupt, so that the same cleanup runs."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise :class:`Terminated` within the block, so that temporary files are removed."""

    def heard(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated

    with handled({signal.SIGTERM: heard}):
        yield


@contextlib.contextmanager
def quiet(session: SparkSession) -> Iterator[None]:
    """Cancel a session's jobs, and silence its log, at Ctrl-C, at SIGTERM, and if the block raises anything.

    The session must run in this process.
    """

    def heard(number: int, frame: FrameType | None) -> NoReturn:
        # In a thread of its own: this one may be in the middle of a call to the JVM.
        hushing = threading.Thread(target=_hush, args=(session,), name="kshell interrupt", daemon=True)
        hushing.start()
        hushing.join(_PATIENCE)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    with handled({signal.SIGINT: heard, signal.SIGTERM: heard}):
        try:
            yield
        except BaseException:
            _hush(session)
            raise


def _hush(session: Any) -> None:
    """Cancel all jobs of a session, and turn its log off."""
    with contextlib.suppress(Exception):  # the JVM may be gone
        context = session.sparkContext
        # Tasks report accumulators to this server, which would print a traceback for each report that is cut short.
        if context._accumulatorServer is not None:  # None once the session is stopped
            context._accumulatorServer.handle_error = lambda *arguments: None
        context.setLogLevel("OFF")
        context.cancelAllJobs()


@contextlib.contextmanager
def handled(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    """Set signal handlers within the block, if this is the main thread: Python runs handlers only there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
