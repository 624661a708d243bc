"""Run the calls of tools one after another in the main thread, each on its source and within a deadline.

:func:`open_sources` opens the sources at the start. :class:`Calls` then takes jobs from the thread of the protocol.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType, SimpleNamespace
from typing import NamedTuple

from kshell.engine import tools
from kshell.engine.execution import deadline, prepare_words
from kshell.engine.session import Session
from kshell.errors import DeadlineError, KshellError, UsageError, did_you_mean
from kshell.escape import terminal
from kshell.mcp.answers import Answer, answer, failure
from kshell.mcp.messages import report
from kshell.render.faults import own_fault
from kshell.sources.changes import ChangeDetector
from kshell.sources.choose import CONTEXT, DEMO, DIRECTORY, choose, open_source

_HINT = "ask for less (a path, a condition, a later since); whoever starts the server sets --timeout"


class OpenSource(NamedTuple):
    """A source that stays open between calls, and what detects whether it has changed since the last one."""

    session: Session
    changes: ChangeDetector


def open_sources(
    sources: list[tuple[str, str]], environment: Mapping[str, str], options: SimpleNamespace
) -> tuple[dict[str, OpenSource], list[str]]:
    """Open all sources, or without any the one that the environment names; return them by name, and warnings.

    Args:
        sources: (kind, value) of each, as :func:`kshell.sources.choose.choose` takes one.
        environment: variables that name a source or the place of contexts.
        options: the command line, with ``config``, ``X`` and ``on_corruption``.

    Raises:
        UsageError: two sources have the same name, or there is no source.
        SourceError: a source has nothing to read.
    """
    sources_by_name: dict[str, OpenSource] = {}
    warnings: list[str] = []
    for flags in [{kind: value} for kind, value in sources] or [{}]:
        choice = choose(flags, environment, options.config, options.X or ())
        name = flags.get(CONTEXT) or (DEMO if choice.kind == DEMO else choice.value)
        if name in sources_by_name:
            raise UsageError(f"{name} is given twice", hint="give each source once")
        source = open_source(choice, options.on_corruption if choice.kind in (DIRECTORY, DEMO) else None)
        warnings += choice.warnings
        source.name = name
        session = Session(source)
        session.is_confined = True
        session.travels()
        sources_by_name[name] = OpenSource(session, ChangeDetector(session))
    return sources_by_name, warnings


class Cancelled(KeyboardInterrupt):
    """The client has cancelled the running call."""


class Job:
    """A call that waits or runs. In the end the main thread calls ``on_answer``: (answer, whether it is an error)."""

    def __init__(self, tool: str, arguments: Mapping[str, object], on_answer: Callable[[Answer, bool], None]) -> None:
        self.tool = tool
        self.arguments = arguments
        self.on_answer = on_answer
        self.is_cancelled = False


class Calls:
    """The queue of one client's calls. The main thread runs :meth:`run`; any thread may call the other methods."""

    def __init__(self, sources: Mapping[str, OpenSource], timeout: float) -> None:
        """``timeout``: seconds that one call may take."""
        self.sources = sources
        self._timeout = timeout
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._running: Job | None = None

    def add(self, job: Job) -> None:
        """Put a call at the end of the queue."""
        self._jobs.put(job)

    def close(self) -> None:
        """End :meth:`run` after the calls that are in the queue."""
        self._jobs.put(None)

    def cancel(self, job: Job) -> None:
        """Interrupt the call if it is running (by SIGUSR1 to the main thread); skip it if it still waits."""
        job.is_cancelled = True
        if self._running is job:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def run(self) -> None:
        """Run calls until :meth:`close`. Ctrl-C raises KeyboardInterrupt."""
        signal.signal(signal.SIGUSR1, self._interrupt)
        while (job := self._jobs.get()) is not None:
            if job.is_cancelled:
                continue
            try:
                self._running = job
                outcome = self.call(job.tool, job.arguments)
                self._running = None
            except Cancelled:
                continue
            finally:
                self._running = None
            job.on_answer(*outcome)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        job = self._running
        if job is not None and job.is_cancelled:
            raise Cancelled

    def call(self, tool: str, arguments: Mapping[str, object]) -> tuple[Answer, bool]:
        """Run one call; return the answer, and whether it is an error. Raises only what is no ``Exception``."""
        session: Session | None = None
        try:
            with deadline(self._timeout):
                command = tools.get(tool)
                limit = tools.limit_of(arguments)
                tokens = tools.command_tokens(command, arguments)
                opened = self._source(arguments)
                session = opened.session
                if command.needs_source:
                    opened.changes.changed()
                call = prepare_words(session, [command.name, *tokens])
                return answer(command, call.session, call.run(), limit), False
        except DeadlineError as error:
            error.hint = _HINT
            return failure(error if session is None else session.why(error)), True
        except KshellError as error:
            return failure(error), True
        except Exception as error:
            fault = own_fault(error)
            report(f"mcp: {terminal(tool)}: {fault.message}")
            return failure(fault), True

    def _source(self, arguments: Mapping[str, object]) -> OpenSource:
        names = list(self.sources)
        name = arguments.get(tools.SOURCE)
        if name is None and len(names) == 1:
            return self.sources[names[0]]
        listed = f"sources: {', '.join(names)}"
        if name is None:
            raise UsageError("several clusters are open: say which", hint=listed)
        if str(name) not in self.sources:
            raise UsageError(f"{name}: no such source", hint=did_you_mean(str(name), names, listed))
        return self.sources[str(name)]
