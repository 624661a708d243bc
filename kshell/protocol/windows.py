"""Read the bytes of a file through windows, so that a large file is never in memory as a whole."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kshell.protocol.primitives import Buffer


class Window(NamedTuple):
    """Some bytes of a file; ``start`` is the position in the file of the first byte of ``buf``."""

    buf: Buffer
    start: int

    @property
    def end(self) -> int:
        """The position in the file after the last byte."""
        return self.start + len(self.buf)


class Windowed(Protocol):
    """A source of windows for a walk along batches: a file, or bytes in memory (:class:`InMemory`)."""

    @property
    def size(self) -> int:
        """The size in bytes; it shrinks when a read finds that the file ends earlier."""

    def window(self, position: int, size: int) -> Window:
        """Return bytes that begin at or before ``position`` and include at least ``size`` bytes from there on.

        There are fewer only where the file ends. Raises SourceError.
        """

    def data_from(self, position: int) -> int:
        """Return the first position from ``position`` on that is stored; the hole before it reads as zeros.

        Holes exist in sparse files only. The result is ``size`` if nothing more is stored.
        """


class InMemory:
    """A :class:`Windowed` over bytes in memory: always one window with all of them."""

    def __init__(self, buf: Buffer) -> None:
        self._window = Window(buf, 0)
        self.size = len(buf)

    def window(self, position: int, size: int) -> Window:
        """Return the window with all bytes, whatever was asked for."""
        return self._window

    def data_from(self, position: int) -> int:
        """Return ``position``: bytes in memory have no holes."""
        return position


def windowed(data: Buffer | Windowed) -> Windowed:
    """Return ``data``, with bytes in memory wrapped in :class:`InMemory`."""
    return InMemory(data) if isinstance(data, Buffer) else data
