"""Read files in ranges, local or remote, so that a large file is never in memory as a whole."""

from __future__ import annotations

import errno
import mmap
import os
from typing import Protocol

from kshell.errors import SourceError
from kshell.protocol.windows import Window
from kshell.sources.directory.files import is_remote, open_read

_READ = 16 << 20
"""Bytes of a window that is read."""
_MAPPED = 64 << 20
"""Bytes of a window that is mapped: pages take memory only once they are read, and the system can take it back."""


class OpenFile(Protocol):
    """An open file that is read in ranges."""

    @property
    def size(self) -> int:
        """The file's size in bytes."""

    def pread(self, size: int, position: int) -> bytes:
        """``size`` bytes from ``position`` on, fewer only where the file ends. Raises OSError."""

    def data_from(self, position: int) -> int:
        """The first byte from ``position`` on that is stored (sparse files have holes); the size if there is none."""

    def close(self) -> None:
        """Close the file."""


class _LocalFile:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        # One call may return less than there is.
        while 0 < len(data) < size and (more := os.pread(self._descriptor, size - len(data), position + len(data))):
            data += more
        return data

    def data_from(self, position: int) -> int:
        seek_data = getattr(os, "SEEK_DATA", None)
        if seek_data is None:
            return position
        try:
            return os.lseek(self._descriptor, position, seek_data)
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else position  # some file systems do not report holes

    def mapped(self, position: int, size: int, *, populate: bool) -> Window:
        """Map ``size`` bytes from ``position`` on; ``populate`` loads all their pages at once."""
        start = position - position % mmap.ALLOCATIONGRANULARITY
        # To load all pages in one call saves a page fault each. A hole of a sparse file would take memory for nothing.
        populate = populate and self.data_from(position) < position + size
        flags = mmap.MAP_SHARED | (getattr(mmap, "MAP_POPULATE", 0) if populate else 0)
        length = position - start + size
        return Window(mmap.mmap(self._descriptor, length, flags=flags, prot=mmap.PROT_READ, offset=start), start)

    def close(self) -> None:
        os.close(self._descriptor)


def open_file(path: str) -> OpenFile:
    """Open a file of this machine or of a store. Raises as :func:`open_read`."""
    if is_remote(path):
        from kshell.sources import remote

        return remote.RemoteFile(path)
    return _LocalFile(open_read(path))


class FileWindows:
    """Access to a file's bytes through windows of some megabytes; one is retained; a context manager.

    ``limit``: the size that the file counts as having, though it may be longer. ``mapped``: map the windows where that
    is possible; only for files that nobody truncates, because touching a removed mapped page kills the process.
    ``is_sparsely_read``: do not load all pages of a mapped window at once, because few of them are used.

    Raises as :func:`open_read` when it is created; SourceError later.
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
        """A window with ``size`` bytes or more from ``position`` on; fewer if the file ends, or was cut meanwhile."""
        end = min(position + size, self.size)
        if not self._window.start <= position < self._window.end or end > self._window.end:
            size = min(max(size, _MAPPED if self._mapped else _READ), self.size - position)
            self._window = Window(b"", position)  # released first: two windows would need twice the memory
            if size > 0:
                self._window = self._read(position, size)
        return self._window

    def _read(self, position: int, size: int) -> Window:
        try:
            if self._mapped is not None:
                return self._mapped.mapped(position, size, populate=self._populate)
            data = self._file.pread(size, position)
        except (OSError, ValueError) as error:  # ValueError: it is shorter than what is to be mapped
            raise self._failure(error) from None
        if len(data) < size:
            self.size = position + len(data)
        return Window(data, position)

    def _failure(self, error: Exception) -> SourceError:
        return SourceError(f"{self._path}: {getattr(error, 'strerror', None) or error}")

    def data_from(self, position: int) -> int:
        """The first stored byte at or after ``position``; ``size`` if there is none."""
        try:
            return min(self._file.data_from(position), self.size)
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Close the file; windows stay valid."""
        self._file.close()

    def __enter__(self) -> FileWindows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
