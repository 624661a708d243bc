"""Installs a lock into the environment whose Python runs this, and says all the while what is being done.

``python -I requirements/install.py LOCK``, which ``./dev`` calls. Needs what a new environment has: Python and pip.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable
from compileall import compile_file
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

PIP = (
    *(sys.executable, "-I", "-u", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
    *("--no-color", "--progress-bar", "off", "--no-compile", "--require-hashes"),
)
PAUSE = {True: 0.2, False: 15.0}
"""Seconds between two reports: at a terminal, where a line is rewritten, and in a log, where each is a new line."""

_COLLECTING = re.compile(r"Collecting ([A-Za-z0-9._-]+)==(\S+)")
_SIZE = re.compile(r" *Downloading \S+ \((.+)\)$")
_BUILDING = re.compile(r" *Building wheel for ([A-Za-z0-9._-]+)")


class Progress:
    """One line of what is being done and for how long, rewritten at a terminal, printed now and then elsewhere."""

    def __init__(self, activity: str) -> None:
        self._begin = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._printed = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.show(activity, now=True)
        self._reporter = threading.Thread(target=self._report, daemon=True)
        self._reporter.start()

    def show(self, activity: str | Callable[[], str], *, now: bool = False) -> None:
        """What is being done from here on.

        Args:
            activity: a function is called for each report.
            now: print it at once in a log, too, where it would wait for its turn.
        """
        self._activity: Callable[[], str] = activity if callable(activity) else lambda: activity
        if now or self._is_terminal:
            self._print()

    def end(self, conclusion: str) -> None:
        """The last line, which stays."""
        self._ended.set()
        self._reporter.join()
        self._activity = lambda: conclusion
        self._print()
        if self._is_terminal:
            print(file=sys.stderr)

    def _report(self) -> None:
        while not self._ended.wait(PAUSE[self._is_terminal]):
            self._print()

    def _print(self) -> None:
        with self._lock:
            minutes, seconds = divmod(int(time.monotonic() - self._begin), 60)
            line = f"dev: {minutes}:{seconds:02} {self._activity()}"
            if line == self._printed:
                return
            self._printed = line
            if self._is_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\x1b[K{line[:width]}", end="", file=sys.stderr, flush=True)
            else:
                print(line, file=sys.stderr, flush=True)


class Installation:
    """What pip has said so far, and how far it is."""

    def __init__(self, lock: Path, progress: Progress) -> None:
        self._progress = progress
        self._packages = len(re.findall(r"^[A-Za-z0-9][^ #]*==", lock.read_text(), re.MULTILINE))
        self._collected = 0
        self._fetching = ""
        self.output: list[str] = []

    def read(self, line: str) -> None:
        """One line of pip's."""
        self.output.append(line)
        if line.startswith("Ignoring "):  # a pin for another system
            self._packages -= 1
        elif line.startswith("Requirement already satisfied:"):
            self._collected += 1
        elif (match := _COLLECTING.match(line)) is not None:
            self._collected += 1
            self._fetching = f"fetching package {self._collected} of {self._packages}: {match[1]} {match[2]}"
            self._progress.show(self._fetching)
        elif (match := _SIZE.match(line)) is not None and self._collected:
            self._progress.show(f"{self._fetching} ({match[1]})")
        elif (match := _BUILDING.match(line)) is not None:
            self._progress.show(f"building {match[1]}, which comes as a source archive", now=True)
        elif line.startswith("Installing collected packages:"):
            self._progress.show(_Arrivals(line.count(",") + 1), now=True)


class _Arrivals:
    """How many packages have arrived, because pip installs them all without a word."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._before = self._installed()

    @staticmethod
    def _installed() -> int:
        return len(list(Path(sysconfig.get_path("purelib")).glob("*.dist-info")))

    def __call__(self) -> str:
        return f"installing {self._count} packages, {max(self._installed() - self._before, 0)} done"


def compile_all(folders: Iterable[str], progress: Progress) -> None:
    """Compile what pip would compile, but on all cores. Some packages bring templates that are no Python yet."""
    files = sorted({str(path) for folder in folders for path in Path(folder).rglob("*.py")})
    done = 0
    progress.show(lambda: f"compiling {len(files)} files, {done} done", now=True)
    # Not forked: a thread reports meanwhile.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for _ in pool.map(partial(compile_file, quiet=2), files, chunksize=32):
            done += 1


def main(lock: Path, *arguments: str) -> int:
    """Install a lock; the exit code is pip's. ``arguments`` are handed to pip."""
    progress = Progress(f"installing {lock.parent.name}/{lock.name} into {sys.prefix}")
    installation = Installation(lock, progress)
    with subprocess.Popen(
        [*PIP, *arguments, "-r", str(lock)],
        # An older pip would run what a source archive brings to install itself, and leave no record of its files.
        env=os.environ | {"PIP_USE_PEP517": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        assert pip.stdout is not None
        try:
            for line in pip.stdout:
                installation.read(line.rstrip("\n"))
            code = pip.wait()
        except KeyboardInterrupt:  # pip has heard it, too
            pip.wait()
            progress.end("interrupted")
            return 130
    if code:
        progress.end("pip failed; what it said at last:")
        print("\n".join(installation.output[-40:]), file=sys.stderr)
        return code
    root = lock.resolve().parents[1]
    compile_all([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(root / "kshell")], progress)
    progress.end("installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
