"""Files that are read in ranges, wherever they are, so that nobody holds all of a large one."""

from __future__ import annotations

import os
from typing import Protocol

from kshell.sources.files import is_remote, open_read


class OpenFile(Protocol):
    """A file that is read in ranges. ``size``: its bytes when it was opened."""

    @property
    def size(self) -> int:
        """Bytes."""

    def pread(self, size: int, position: int) -> bytes:
        """Bytes from there on, perhaps fewer; none at the end. Raises OSError."""

    def close(self) -> None:
        """Gives it back."""


class _LocalFile:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        os.close(self._descriptor)


def open_file(path: str) -> OpenFile:
    """A file, of this machine or of a store. Raises as :func:`open_read`."""
    if is_remote(path):
        from kshell.sources import remote

        return remote.RemoteFile(path)
    return _LocalFile(open_read(path))
