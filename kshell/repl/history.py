"""The history of typed lines, in a file that only its owner can read, newest last.

If the file cannot be written, the history is in memory only. A line that starts with a blank is not stored, so that
users can keep it private. In the file, a blank therefore begins each further line of an entry of several.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from prompt_toolkit.history import History

from kshell.engine.execution import logical_lines
from kshell.engine.language import open_quote

_MOST_ENTRIES = 10_000
"""The most entries that are read from the file, the newest ones."""
_CONTINUATION = "\n "
"""What stands in the file for a newline within an entry."""


def state_directory() -> str | None:
    """``$XDG_STATE_HOME/kshell`` or ``~/.local/state/kshell``; ``None`` when there is no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "kshell") if os.path.isabs(base) else None


class ShellHistory(History):
    """The history for prompt_toolkit. ``path`` is its file; if that is ``None``, ``note`` says why there is none."""

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
        """Open the file with the flags ``how``, create it if it is missing, and make it readable by its owner only."""
        assert self.path is not None
        descriptor = os.open(self.path, how | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            os.fchmod(descriptor, 0o600)
        return descriptor

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, newest first, as prompt_toolkit requires."""
        return list(reversed(self.lines()))

    def lines(self) -> list[str]:
        """Return the newest entries of the file, oldest first; an empty list if it cannot be read.

        An entry may have several lines. The rest of one whose first line was cut off is left out.
        """
        if self.path is None:
            return []
        try:
            with open(self.path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                lines = file.read().split("\n")
        except OSError:
            return []
        entries: list[list[str]] = []
        for line in filter(None, lines):
            if not line.startswith(" "):
                entries.append([line])
            elif entries:
                entries[-1].append(line[1:])
        return ["\n".join(entry) for entry in entries[-_MOST_ENTRIES:]]

    def append_string(self, string: str) -> None:
        """Store each line of the input (several may be pasted), unless it is empty or starts with a blank.

        A line that goes on over several, in quotes, is one entry with its newlines. If the quote is never closed, only
        its first line is stored: the others were not run, and some may be meant to be private.
        """
        for _, text in logical_lines(string.split("\n")):
            line = text.partition("\n")[0] if open_quote(text) else text
            if line.strip() and not line[0].isspace():
                super().append_string(line)

    def store_string(self, string: str) -> None:
        """Append an entry to the file with a single write, because several shells may share the file."""
        if self.path is None:
            return
        try:
            descriptor = self._open(os.O_WRONLY)
        except OSError:
            return
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            lines = string.replace("\n", _CONTINUATION)
            file.write(lines.encode("utf-8", "surrogateescape") + b"\n")
