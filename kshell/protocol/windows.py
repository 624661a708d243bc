"""Bytes that are read through windows, so that a large file is never in memory as a whole."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kshell.protocol.primitives import Buffer


class Window(NamedTuple):
    """Some bytes of a file; ``start`` is the place of the first one in it."""

    buf: Buffer
    start: int

    @property
    def end(self) -> int:
        """The place after the last byte."""
        return self.start + len(self.buf)


class Windowed(Protocol):
    """What a walk along batches reads from: a file, or bytes in memory (:class:`InMemory`)."""

    @property
    def size(self) -> int:
        """How many bytes there are; fewer than before once a read has met an earlier end."""

    def window(self, position: int, size: int) -> Window:
        """Bytes from ``position`` on: ``size`` of them or more, fewer only where the file ends before.

        Raises SourceError.
        """

    def data_from(self, position: int) -> int:
        """The first byte from ``position`` on that is stored; what a sparse file leaves out before it reads as zeros.

        ``size`` where nothing more is stored.
        """


class InMemory:
    """Bytes that are in memory anyway: one window."""

    def __init__(self, buf: Buffer) -> None:
        self._window = Window(buf, 0)
        self.size = len(buf)

    def window(self, position: int, size: int) -> Window:
        """All of them."""
        return self._window

    def data_from(self, position: int) -> int:
        """Nothing is left out."""
        return position


def windowed(data: Buffer | Windowed) -> Windowed:
    """Bytes in memory like those of a file."""
    return InMemory(data) if isinstance(data, Buffer) else data
