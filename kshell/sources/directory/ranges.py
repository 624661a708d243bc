"""Files that are read in ranges, wherever they are, so that a large one is never in memory as a whole."""

from __future__ import annotations

import errno
import mmap
import os
from typing import Protocol

from kshell.errors import SourceError
from kshell.protocol.windows import Window
from kshell.sources.directory.files import is_remote, open_read

_READ = 16 << 20
"""Bytes that are read at once where all of a file is."""
_MAPPED = 64 << 20
"""Bytes that are mapped at once: they take memory only while somebody looks at them, and until it is needed."""


class OpenFile(Protocol):
    """A file that is read in ranges. ``size``: its bytes when it was opened."""

    @property
    def size(self) -> int:
        """Bytes."""

    def pread(self, size: int, position: int) -> bytes:
        """Bytes from there on, perhaps fewer; none at the end. Raises OSError."""

    def data_from(self, position: int) -> int:
        """The first byte from there on that is stored (a sparse file leaves zeros out); the file's size for none."""

    def close(self) -> None:
        """Release it."""


class _LocalFile:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._descriptor, size, position)

    def data_from(self, position: int) -> int:
        seek_data = getattr(os, "SEEK_DATA", None)
        if seek_data is None:
            return position
        try:
            return os.lseek(self._descriptor, position, seek_data)
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else position  # some file systems do not tell

    def mapped(self, position: int, size: int, *, populate: bool) -> Window:
        start = position - position % mmap.ALLOCATIONGRANULARITY
        # One call that maps them all saves a fault a page; what a sparse file leaves out would take memory for nothing.
        populate = populate and self.data_from(position) < position + size
        flags = mmap.MAP_SHARED | (getattr(mmap, "MAP_POPULATE", 0) if populate else 0)
        length = position - start + size
        return Window(mmap.mmap(self._descriptor, length, flags=flags, prot=mmap.PROT_READ, offset=start), start)

    def close(self) -> None:
        os.close(self._descriptor)


def open_file(path: str) -> OpenFile:
    """A file, of this machine or of a store. Raises as :func:`open_read`."""
    if is_remote(path):
        from kshell.sources import remote

        return remote.RemoteFile(path)
    return _LocalFile(open_read(path))


class FileWindows:
    """A file's bytes through windows of some megabytes, the last of which is at hand; a context manager.

    ``limit``: where it counts as ended, though it may go on. ``mapped``: for files that nobody changes; their windows
    are mapped where that is possible, else read; touching a mapped page that is gone kills the process. With
    ``is_sparsely_read`` only what is looked at of a mapped window takes memory.

    Raises as :func:`open_read`, when it is opened; SourceError later.
    """

    def __init__(
        self, path: str, *, limit: int | None = None, mapped: bool = False, is_sparsely_read: bool = False
    ) -> None:
        self._path = path
        self._file = open_file(path)
        self._mapped = self._file if mapped and isinstance(self._file, _LocalFile) else None
        self._populate = not is_sparsely_read
        self._window = Window(b"", 0)
        try:
            size = self._file.size
        except OSError as error:
            self._file.close()
            raise self._failure(error) from None
        self.size = size if limit is None else min(size, limit)

    def window(self, position: int, size: int) -> Window:
        """Bytes from ``position`` on, ``size`` or more; fewer where the file ends, or was cut meanwhile."""
        end = min(position + size, self.size)
        if not self._window.start <= position < self._window.end or end > self._window.end:
            size = min(max(size, _MAPPED if self._mapped else _READ), self.size - position)
            self._window = Window(b"", position)  # two at once would need twice the memory
            if size > 0:
                self._window = self._read(position, size)
        return self._window

    def _read(self, position: int, size: int) -> Window:
        try:
            if self._mapped is not None:
                return self._mapped.mapped(position, size, populate=self._populate)
            return self._pread(position, size)
        except (OSError, ValueError) as error:  # ValueError: it is shorter than what is to be mapped
            raise self._failure(error) from None

    def _pread(self, position: int, size: int) -> Window:
        parts: list[bytes] = []
        end = position
        while size > 0 and (part := self._file.pread(size, end)):
            parts.append(part)
            end += len(part)
            size -= len(part)
        if size > 0:
            self.size = end
        return Window(parts[0] if len(parts) == 1 else b"".join(parts), position)

    def _failure(self, error: Exception) -> SourceError:
        return SourceError(f"{self._path}: {getattr(error, 'strerror', None) or error}")

    def data_from(self, position: int) -> int:
        """The first byte from there on that is stored; ``size`` for none."""
        try:
            return min(self._file.data_from(position), self.size)
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Release the file; windows stay valid."""
        self._file.close()

    def __enter__(self) -> FileWindows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
