"""Notice when the reader of a pipe goes away, also while nothing is written to it (``follow | head -3``)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import IO, NoReturn


@contextlib.contextmanager
def watched(stream: IO[str], closed: type[Exception]) -> Iterator[None]:
    """Raise ``closed`` in the block, in the main thread, as soon as the other end of the stream's pipe is closed.

    A thread polls the pipe and sends SIGPIPE to the main thread.
    """
    fd = _fileno(stream)
    if fd is None or threading.current_thread() is not threading.main_thread() or not hasattr(select, "poll"):
        yield
        return

    def raise_closed(number: int, frame: FrameType | None) -> NoReturn:
        raise closed

    before = signal.signal(signal.SIGPIPE, raise_closed)
    stop_read, stop_write = os.pipe()
    thread = threading.Thread(
        target=_wait, args=(fd, stop_read, threading.get_ident()), name="kshell output", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        # The first call may raise for a signal that arrived meanwhile, and is suppressed; the second call is then safe.
        with contextlib.suppress(closed):
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.close(stop_write)
        thread.join()
        os.close(stop_read)
        if before is not None:
            signal.signal(signal.SIGPIPE, before)


def _fileno(stream: IO[str]) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _wait(fd: int, stop_read: int, thread: int) -> None:
    """Wait until the reader of the pipe is gone, and then send SIGPIPE; or until ``stop_read`` is closed."""
    poll = select.poll()
    poll.register(fd, 0)
    poll.register(stop_read, 0)
    if any(number == fd and event & (select.POLLERR | select.POLLHUP) for number, event in poll.poll()):
        signal.pthread_kill(thread, signal.SIGPIPE)
