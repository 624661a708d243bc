"""Standard error as kshell has it: what cannot be said there is lost, and nothing else is."""

from __future__ import annotations

import contextlib
import io
from typing import TextIO


class LossyStream(io.TextIOWrapper):
    """A text stream whose writing never fails.

    A full disk under a log, or a reader that went away, must not turn an answer's exit code into another one.
    """

    _kept: TextIO

    @classmethod
    def around(cls, stream: TextIO) -> LossyStream:
        """Over the bytes of a stream, which is kept: its end would close them."""
        around = cls(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
        around._kept = stream
        return around

    def write(self, text: str, /) -> int:
        """The number of characters, written or not."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Hand on what is buffered, if that is possible."""
        with contextlib.suppress(OSError):
            super().flush()
