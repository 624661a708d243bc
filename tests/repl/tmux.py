"""A real terminal for tests: tmux on a socket of its own, waited for by looking at its screen."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests import goldens
from tests.needed import is_required

NEEDS_TMUX = pytest.mark.skipif(shutil.which("tmux") is None and not is_required(), reason="tmux is not installed")
ROOT = Path(__file__).parents[2]
SCREENS = Path(__file__).parent / "screens"
PATIENCE = 30.0
KSHELL = (sys.executable, "-P", "-m", "kshell")
_POLL = 0.05
_count = itertools.count()
_MASKS = (
    (re.compile(r"kshell \d+\.\d+\S*"), "kshell VERSION"),
    (re.compile(r"as of offset \d+ · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z"), "as of offset N · TIME"),
    (re.compile(r"epoch \d+"), "epoch N"),
    (re.compile(r"\S*\.0\.1:\d+\S*"), "ADDRESSES"),
    (re.compile(r" +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "  TIME"),
    (re.compile(r"offset \d+"), "offset N"),
    (re.compile(r"leader 300\d"), "leader ID"),
)


class Terminal:
    """kshell, or another program, in a terminal of ``columns`` x ``lines``. Close it, whatever happens."""

    def __init__(
        self,
        home: Path,
        *args: str,
        columns: int = 80,
        lines: int = 24,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = KSHELL,
    ) -> None:
        # A server of its own: one that is ending would still take a new session.
        socket = f"kshell-test-{os.getpid()}-{next(_count)}"
        self._tmux = [shutil.which("tmux") or "tmux", "-L", socket]
        settings = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environ or {}),
        }
        words = ["env", "-i", *(f"{name}={value}" for name, value in ({"TERM": "screen"} | settings).items())]
        shell = shlex.join([*words, *program, *args])
        # The exit code stays on the screen. The shell only keeps the terminal there, and Ctrl-C is not for it.
        line = f"trap : INT; {shell}; echo EXIT=$?; exec sleep 1000"
        size = ["-x", str(columns), "-y", str(lines)]
        # Its own configuration, none; one server with one session.
        self._run("-f", os.devnull, "new-session", "-d", "-s", "t", *size, "sh", "-c", line)
        self._run("set-option", "-g", "status", "off")

    def _run(self, *words: str) -> str:
        environ = {name: value for name, value in os.environ.items() if name != "TMUX"}
        return subprocess.run(
            [*self._tmux, *words], check=True, capture_output=True, encoding="utf-8", env=environ, timeout=PATIENCE
        ).stdout

    def close(self) -> None:
        """Ends everything in it."""
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def type(self, text: str) -> None:
        """Text, as it is."""
        self._run("send-keys", "-t", "t", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Text as a terminal pastes it: between brackets, for a program that asked for them."""
        self._run("set-buffer", "--", text)
        self._run("paste-buffer", "-p", "-t", "t")

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: ``Enter``, ``C-c``, ``Tab``."""
        self._run("send-keys", "-t", "t", *keys)

    def enter(self, line: str) -> None:
        """A line at the prompt. It is sent when it is to be seen: an empty prompt afterwards is that of the next one,
        and keys that are pressed there are not lost in between.
        """
        self.type(line)
        self.wait(f"> {re.escape(line)}")
        self.press("Enter")

    def resize(self, columns: int, lines: int) -> None:
        """Another size of the window."""
        self._run("resize-window", "-t", "t", "-x", str(columns), "-y", str(lines))

    def screen(self, *, colors: bool = False) -> str:
        """What is to be seen now, without blanks at line ends; ``colors``: with the escape sequences."""
        text = self._run("capture-pane", "-p", "-t", "t", *(["-e"] if colors else []))
        return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))

    def wait(self, pattern: str, *, seconds: float = PATIENCE) -> re.Match[str]:
        """Until the screen holds what the pattern says; ``^`` and ``$`` are ends of lines."""
        found: list[re.Match[str] | None] = []

        def is_there() -> bool:
            found.append(re.search(pattern, self.screen(), re.MULTILINE))
            return found[-1] is not None

        self._until(is_there, lambda: f"{pattern!r} does not come up", seconds)
        match = found[-1]
        assert match is not None
        return match

    def wait_for_prompt(self, path: str, *, seconds: float = PATIENCE) -> None:
        """Until the cursor is behind an empty prompt at ``path``, and loading has ended."""
        self._until(lambda: self._is_prompt(f"kshell:{path}>"), lambda: f"no prompt at {path}", seconds)

    def _is_prompt(self, prompt: str) -> bool:
        column, row = map(int, self._run("display-message", "-p", "-t", "t", "#{cursor_x} #{cursor_y}").split())
        lines = self.screen().split("\n")
        if row >= len(lines) or not any(re.search(r" · as of offset| · lag \d", line) for line in lines):
            return False
        return lines[row] == prompt and column == len(prompt) + 1

    def wait_for_bell(self) -> None:
        """Until the terminal's bell has rung; once it has, it stays so."""

        def rung() -> bool:
            return self._run("display-message", "-p", "-t", "t", "#{window_bell_flag}") == "1\n"

        self._until(rung, lambda: "the bell does not ring", PATIENCE)

    def settled(self) -> str:
        """The screen, once it stays the same for a while."""
        seen = [self.screen()]

        def is_still() -> bool:
            seen.append(self.screen())
            return len(seen) > 6 and len(set(seen[-6:])) == 1

        self._until(is_still, lambda: "the screen does not come to rest", PATIENCE)
        return seen[-1]

    def _until(self, done: Callable[[], bool], what: Callable[[], str], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"{what()} within {seconds:g} s; the screen:\n{self.screen()}")
            time.sleep(_POLL)

    def shows(self, name: str) -> None:
        """Compares with the golden screen; ``KSHELL_UPDATE_GOLDEN=1`` writes it anew."""
        shown = masked(self.settled())
        path = SCREENS / f"{name}.txt"
        if goldens.are_written():
            SCREENS.mkdir(exist_ok=True)
            path.write_text(shown + "\n", encoding="utf-8")
        assert shown + "\n" == path.read_text(encoding="utf-8"), goldens.differs(path)


def masked(screen: str) -> str:
    """The screen without what differs between versions and recordings."""
    for pattern, name in _MASKS:
        screen = pattern.sub(name, screen)
    return "\n".join(line.rstrip() for line in screen.split("\n"))
