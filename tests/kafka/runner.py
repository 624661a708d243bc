"""Kafka's tools, and our Java programs, one after another in one process for each release.

Most of what a tool takes is a JVM that starts and loads Kafka's classes; the tests run hundreds of them.
"""

from __future__ import annotations

import atexit
import base64
import subprocess
from collections.abc import Callable
from typing import NamedTuple

_MOST = 2
"""Processes that wait for the next: that of the release under test, and that of the latest, whose classes judge."""


class Ended(NamedTuple):
    """A program's end."""

    code: int
    out: str
    err: str


class Gone(Exception):
    """A process that ended with the program in it: not by Kafka's ``Exit`` but by the JVM's own."""


class Runner:
    """A process of ``Runner.java``: one program at a time."""

    def __init__(self, command: list[str]) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def run(self, classes: str, main: str, *args: str) -> Ended:
        """Run a main class, found in the directory ``classes`` too (or ``""``), to its end; raise Gone at its own."""
        assert self._process.stdin and self._process.stdout
        line = b" ".join(base64.b64encode(word.encode()) for word in (classes, main, *args)) + b"\n"
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Gone(main) from None
        answer = self._process.stdout.readline().split(b" ")
        if len(answer) != 3:
            raise Gone(main)
        out, err = map(base64.b64decode, answer[1:])
        return Ended(int(answer[0]), out.decode("utf-8"), err.decode("utf-8", "replace"))

    def close(self) -> None:
        """End the process; its pipes close with it."""
        self._process.kill()
        self._process.communicate()


class Runners:
    """Those that wait, by class path, the longest unused first. For one thread, as a test is."""

    def __init__(self) -> None:
        """None yet."""
        self._waiting: dict[str, Runner] = {}
        atexit.register(self.close)

    def run(self, class_path: str, command: Callable[[], list[str]], classes: str, main: str, *args: str) -> Ended:
        """Run a main class (see :meth:`Runner.run`) in the one of a class path, which ``command`` starts if need be."""
        runner = self._waiting.pop(class_path, None) or Runner(command())
        self._waiting[class_path] = runner
        while len(self._waiting) > _MOST:
            self._forget(next(iter(self._waiting)))
        try:
            return runner.run(classes, main, *args)
        except BaseException:
            # Gone, or ended by a time limit while the program is still at it: what that says would be taken for the
            # answer to the next.
            self._forget(class_path)
            raise

    def close(self) -> None:
        """End all of them."""
        for class_path in list(self._waiting):
            self._forget(class_path)

    def _forget(self, class_path: str) -> None:
        self._waiting.pop(class_path).close()
