"""The history: a private file of lines, one a line, newest last. Without a place for it, memory only.

A line that starts with a blank is not kept, so that users can keep one to themselves.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from prompt_toolkit.history import History

_MOST_LINES = 10_000
"""How many lines are read back, the newest."""


def state_directory() -> str | None:
    """``$XDG_STATE_HOME/kshell`` or ``~/.local/state/kshell``; ``None`` when there is no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "kshell") if os.path.isabs(base) else None


class ShellHistory(History):
    """``path`` is where lines go; ``note`` says why they go nowhere, if so."""

    def __init__(self, directory: str | None = None) -> None:
        super().__init__()
        self.note: str | None = None
        self.path: str | None = None
        where = directory or state_directory()
        if where is None:
            self.note = "the history is not kept: there is no home directory"
            return
        try:
            os.makedirs(where, mode=0o700, exist_ok=True)
            self.path = os.path.join(where, "history")
            os.close(self._open(os.O_RDWR))
        except OSError as error:
            self.path = None
            self.note = f"the history is not kept: {where}: {error.strerror}"

    def _open(self, how: int) -> int:
        """The file, created when it is missing, readable by its owner only."""
        assert self.path is not None
        descriptor = os.open(self.path, how | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            os.fchmod(descriptor, 0o600)
        return descriptor

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, as prompt_toolkit wants them."""
        return list(reversed(self.lines()))

    def lines(self) -> list[str]:
        """What the file holds, oldest first."""
        if self.path is None:
            return []
        try:
            with open(self.path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                return [line for line in file.read().split("\n") if line][-_MOST_LINES:]
        except OSError:
            return []

    def append_string(self, string: str) -> None:
        """Keep each line of what was entered (several were pasted), unless it starts with a blank or holds nothing."""
        for line in string.split("\n"):
            if line.strip() and not line[0].isspace():
                super().append_string(line)

    def store_string(self, string: str) -> None:
        """One write in append mode a line: several shells may share the file."""
        if self.path is None:
            return
        try:
            descriptor = self._open(os.O_WRONLY)
        except OSError:
            return
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            file.write(string.encode("utf-8", "surrogateescape") + b"\n")
