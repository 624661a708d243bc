"""Kafka's classes as a JVM has parsed and verified them (JEP 350): with them a server starts in half the time.

The first broker of a release that ends in the orderly way leaves an archive; all later servers, controllers too, begin
with it. A JVM that cannot use one says so on its standard output, and does without.
"""

from __future__ import annotations

import functools
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


@functools.cache
def _files(class_path: str) -> list[Path]:
    """The jars of a class path in which ``…/*`` stands for those of a directory."""
    parts = map(Path, class_path.split(os.pathsep))
    return [file for part in parts for file in (sorted(part.parent.glob("*.jar")) if part.name == "*" else [part])]


class Archive:
    """That of a class path and of the Java that is installed."""

    def __init__(self, class_path: str) -> None:
        """Name it; it may not be there yet."""
        # A JVM refuses an archive of other jars, and compares what this names.
        files = [Path(os.path.realpath(jars.program("java"))), *_files(class_path)]
        told = "\0".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
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
        try:
            return Making(self.path)
        except OSError:  # the cache was made by somebody else
            return None


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
        return [f"-XX:ArchiveClassesAtExit={self._written}", "-Xlog:cds*=error"]  # it names each class that it skips

    @property
    def _written(self) -> Path:
        return Path(self._folder.name, self._path.name)

    def finish(self, *, is_whole: bool) -> None:
        """Keep what was written, unless the JVM was killed, perhaps in the middle; nothing else is left of it."""
        if is_whole and self._written.exists():
            self._written.replace(self._path)
        self._folder.cleanup()
