"""Kafka's classes as a JVM has parsed and verified them (JEP 350): with them a server starts in half the time.

The first server of a release that ends in the orderly way leaves an archive; all later ones, brokers and controllers,
begin with it. A JVM that cannot use one says so on its standard output, and does without.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from tests.kafka import jars


def folder() -> Path:
    """The directory of all of them."""
    return jars.cache() / "archives"


_TRIED: set[Path] = set()
"""Archives that a JVM of this process's was to write."""


class Archive:
    """That of a class path and of the Java that is installed."""

    def __init__(self, class_path: str) -> None:
        """Name it; it may not be there yet."""
        java = os.path.realpath(jars.program("java"))
        status = os.stat(java)
        told = "\0".join((class_path, java, str(status.st_size), str(status.st_mtime_ns)))
        self.path = folder() / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"

    @property
    def reading(self) -> list[str]:
        """The flags of a JVM that begins with it; none where it is not there."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    def making(self) -> Making | None:
        """Return one that a JVM is to write; none where there is one, or where this process had one tried."""
        if self.path.exists() or self.path in _TRIED:
            return None
        _TRIED.add(self.path)
        return Making(self.path)


class Making:
    """An archive that a JVM writes when it ends; it counts with :meth:`finish`."""

    def __init__(self, path: Path) -> None:
        """Choose a name beside the final one: several processes may be at it."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(dir=path.parent)

    @property
    def flags(self) -> list[str]:
        """The flags of the JVM that writes it."""
        return [f"-XX:ArchiveClassesAtExit={self._written}"]

    @property
    def _written(self) -> Path:
        return Path(self._folder.name, self._path.name)

    def finish(self, *, is_whole: bool) -> None:
        """Keep what was written, unless the JVM was killed, perhaps in the middle; nothing else is left of it."""
        if is_whole and self._written.exists():
            self._written.replace(self._path)
        self._folder.cleanup()
