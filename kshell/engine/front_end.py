"""What every front end that prints needs around a command: a deadline, an end of progress, and notes, each once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NoReturn, Protocol

from kshell.engine.execution import Call
from kshell.engine.session import Session
from kshell.errors import DeadlineError


class FrontEnd(Protocol):
    """What an :class:`Engine` needs of the place where answers are shown."""

    def answer(self, call: Call) -> int:
        """Run the call, show its answer, and return the exit code. Raises KshellError."""

    def finish(self) -> None:
        """The answer is complete, or there is none: progress goes away, and paging ends."""

    def tell(self, label: str, sentences: list[str]) -> None:
        """Show sentences about the data; ``label`` is ``error`` or ``note``."""


class Engine:
    """Runs calls for one front end, and tells once what is wrong with the data and what the user should know of it."""

    def __init__(self, session: Session, front_end: FrontEnd, ask: Callable[[str], bool] | None) -> None:
        """``ask`` asks the user a yes-or-no question; ``None`` where there is no user."""
        self._front_end = front_end
        self._told: set[str] = set()
        session.announce = lambda: self.announce(session)
        session.ask = ask

    def run(self, call: Call) -> int:
        """Run one call and return its exit code. Raises KshellError, and whatever the front end raises."""
        try:
            with time_limit(call):
                return self._front_end.answer(call)
        finally:
            self._front_end.finish()
            self.announce(call.session)

    def announce(self, session: Session) -> None:
        """Tell what has not been told yet."""
        for label, sentences in (("error", session.problems()), ("note", session.notes())):
            news = [sentence for sentence in sentences if sentence not in self._told]
            self._told.update(news)
            if news:
                self._front_end.tell(label, list(dict.fromkeys(news)))


@contextlib.contextmanager
def time_limit(call: Call) -> Iterator[None]:
    """The call's ``--timeout``; where it was spent on a source that does not answer, the error says so."""
    try:
        with deadline(call.shape.timeout):
            yield
    except DeadlineError as error:
        raise call.session.why(error) from None


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Ends what runs inside after ``seconds`` with a DeadlineError; ``None`` waits for ever."""
    if seconds is None:
        yield
        return
    import signal
    from types import FrameType

    def expired(number: int, frame: FrameType | None) -> NoReturn:
        raise DeadlineError(f"gave up after {seconds:g} s", hint="--timeout sets how long a command may take")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
