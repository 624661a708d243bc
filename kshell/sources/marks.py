"""Marks: names that people give to offsets of a log, so that they find them again.

They are in ``$XDG_STATE_HOME/kshell/marks.json``, readable by their owner only, for each cluster by its id (for a
directory that does not know it, by its path). Without a home they are kept in memory. The file is replaced in one step.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kshell.errors import CommandError, UsageError
from kshell.sources.files import meta_properties
from kshell.sources.source import Source

_NAME = re.compile(r"[\w.+-][\w.+:-]{0,99}\Z")
_LARGEST = 1 << 22
_HINT = "`mark` lists the marks there are, `mark NAME [POINT]` sets one"


class Mark(NamedTuple):
    """A named point: an offset, and when its record was written, in epoch milliseconds (-1 where nobody knows)."""

    name: str
    offset: int
    time_ms: int


class Marks:
    """The marks of one source. Every question reads the file, for another shell may have written it."""

    def __init__(self, path: str | None, source: str) -> None:
        self.path = path
        self.source = source
        self._memory: dict[str, Any] = {}

    @classmethod
    def of(cls, source: Source, environment: Mapping[str, str]) -> Marks:
        """The marks of a source. Raises SourceError for one that has no log."""
        listing = source.listing()
        known = meta_properties(listing).get("cluster.id", "unknown")
        identity = os.path.realpath(source.path) if known == "unknown" else f"cluster:{known}"
        return cls(file_path(environment), identity if source.path or known != "unknown" else source.name)

    def all(self) -> list[Mark]:
        """Every mark, by name. Raises UsageError for a file that is none of ours."""
        own = self._load().get(self.source, {})
        return [Mark(name, held["offset"], held["timeMs"]) for name, held in sorted(own.items())]

    def get(self, name: str) -> Mark:
        """The mark of that name. Raises UsageError, which proposes names that exist."""
        named = {mark.name: mark for mark in self.all()}
        if name not in named:
            import difflib

            close = difflib.get_close_matches(name, named, n=2)
            hint = f"did you mean {' or '.join(f'@{one}' for one in close)}?" if close else _HINT
            raise UsageError(f"@{name}: no such mark", hint=hint)
        return named[name]

    def add(self, mark: Mark) -> None:
        """Sets one, in place of one of the same name. Raises UsageError for a name that cannot be one, CommandError."""
        if not _NAME.match(mark.name) or mark.name.startswith("-"):
            raise UsageError(f"{mark.name!r} cannot be a mark's name", hint="letters, digits, and . + - _ :")
        stored = self._load()
        stored.setdefault(self.source, {})[mark.name] = {"offset": mark.offset, "timeMs": mark.time_ms}
        self._save(stored)

    def remove(self, name: str) -> None:
        """Forgets one. Raises UsageError, CommandError."""
        self.get(name)
        stored = self._load()
        stored.get(self.source, {}).pop(name, None)
        self._save({source: marks for source, marks in stored.items() if marks})

    def _load(self) -> dict[str, Any]:
        if self.path is None:
            return self._memory
        try:
            with open(self.path, encoding="utf-8") as file:
                stored = json.loads(file.read(_LARGEST))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise self._damaged() from None
        sources = stored.get("sources") if isinstance(stored, dict) and stored.get("version") == 1 else None
        if not isinstance(sources, dict) or not all(map(_is_marks, sources.values())):
            raise self._damaged()
        return sources

    def _damaged(self) -> UsageError:
        return UsageError(f"{self.path}: not a file of marks that this kshell can read", hint="move it away")

    def _save(self, sources: dict[str, Any]) -> None:
        """Writes the file anew, 0600. Raises CommandError."""
        if self.path is None:
            self._memory = sources
            return
        import tempfile

        folder = os.path.dirname(self.path)
        temporary = None
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            number, temporary = tempfile.mkstemp(prefix="marks-", dir=folder)  # 0600
            with open(number, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "sources": sources}, file, indent=2, sort_keys=True)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
            raise CommandError(f"{self.path}: {error.strerror}") from None


def _is_marks(marks: Any) -> bool:
    return isinstance(marks, dict) and all(
        isinstance(held, dict) and type(held.get("offset")) is int and type(held.get("timeMs")) is int
        for held in marks.values()
    )


def file_path(environment: Mapping[str, str]) -> str | None:
    """``$XDG_STATE_HOME/kshell/marks.json``, else in ``~/.local/state``; ``None`` where there is no home."""
    base = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # relative ones are to be ignored, says the XDG specification
        home = environment.get("HOME", "")
        base = os.path.join(home, ".local", "state") if home else ""
    return os.path.join(base, "kshell", "marks.json") if base else None
