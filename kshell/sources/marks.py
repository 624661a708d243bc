"""Marks: names that users give to offsets of a log, so that they find them again.

They are stored in ``$XDG_STATE_HOME/kshell/marks.json``, readable by its owner only, by cluster id (or by path for a
directory without one). Without a home directory they stay in memory. The file is replaced in one step.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell import own_files
from kshell.errors import UsageError, did_you_mean
from kshell.sources.directory.sidecar_files import UNKNOWN, meta_properties
from kshell.sources.source import Source

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

_NAME = re.compile(r"[\w.+-][\w.+:-]{0,99}\Z")
_LARGEST = 1 << 22
_HOLDS, _MOVE = "marks", "move it away"
_HINT = "`mark` lists the marks there are, `mark NAME [POINT]` sets one"


class Mark(NamedTuple):
    """A named point: an offset, and the time of its record in epoch milliseconds (-1 if it is not known)."""

    name: str
    offset: int
    time_ms: int


class Marks:
    """The marks of one source. Every call reads the file again, because another shell may have changed it."""

    def __init__(self, path: str | None, source: str) -> None:
        self.path = path
        self.source = source
        self._memory: JsonObject = {}

    @classmethod
    def of(cls, source: Source, environment: Mapping[str, str]) -> Marks:
        """The marks of a source. Raises SourceError for a source without a log."""
        listing = source.listing()
        cluster_id = meta_properties(listing).get("cluster.id", UNKNOWN)
        identity = os.path.realpath(source.path) if cluster_id == UNKNOWN else f"cluster:{cluster_id}"
        return cls(file_path(environment), identity if source.path or cluster_id != UNKNOWN else source.name)

    def all(self) -> list[Mark]:
        """All marks, sorted by name. Raises UsageError for a file that kshell did not write."""
        own = self._load().get(self.source, {})
        return [Mark(name, stored["offset"], stored["timeMs"]) for name, stored in sorted(own.items())]

    def get(self, name: str) -> Mark:
        """The mark of that name. Raises UsageError if there is none, and proposes names that exist."""
        named = {mark.name: mark for mark in self.all()}
        if name not in named:
            hint = did_you_mean(name, named, _HINT, write="@{}".format)
            raise UsageError(f"@{name}: no such mark", hint=hint)
        return named[name]

    def add(self, mark: Mark) -> None:
        """Set a mark; it replaces one of the same name. Raises UsageError for an invalid name, CommandError."""
        if not _NAME.match(mark.name) or mark.name.startswith("-"):
            raise UsageError(f"{mark.name!r} cannot be a mark's name", hint="letters, digits, and . + - _ :")
        stored = self._load()
        stored.setdefault(self.source, {})[mark.name] = {"offset": mark.offset, "timeMs": mark.time_ms}
        self._save(stored)

    def remove(self, name: str) -> None:
        """Delete a mark. Raises UsageError if there is none of that name, CommandError."""
        self.get(name)
        stored = self._load()
        stored.get(self.source, {}).pop(name, None)
        self._save({source: marks for source, marks in stored.items() if marks})

    def _load(self) -> JsonObject:
        if self.path is None:
            return self._memory
        stored = own_files.read(self.path, _HOLDS, _LARGEST, _MOVE)
        if stored is None:
            return {}
        sources = stored.get("sources")
        if not isinstance(sources, dict) or not all(map(_is_marks, sources.values())):
            raise own_files.unreadable(self.path, _HOLDS, _MOVE)
        return sources

    def _save(self, sources: JsonObject) -> None:
        """Replace the file, with mode 0600. Raises CommandError."""
        if self.path is None:
            self._memory = sources
        else:
            ordered = {source: dict(sorted(marks.items())) for source, marks in sorted(sources.items())}
            own_files.write(self.path, {"sources": ordered})


def _is_marks(marks: object) -> bool:
    return isinstance(marks, dict) and all(
        isinstance(stored, dict) and type(stored.get("offset")) is int and type(stored.get("timeMs")) is int
        for stored in marks.values()
    )


def file_path(environment: Mapping[str, str]) -> str | None:
    """``$XDG_STATE_HOME/kshell/marks.json``, else in ``~/.local/state``; ``None`` if there is no home directory."""
    return own_files.path_of(environment, "XDG_STATE_HOME", "marks.json")
