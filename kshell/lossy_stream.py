"""The standard streams as kshell needs them: all three exist, and errors of writing to standard error are ignored."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO


class LossyStream(io.TextIOWrapper):
    """A text stream that ignores errors of writing.

    A full disk under a log file, or a closed pipe, on standard error must not change an answer's exit code.
    """

    _wrapped: TextIO

    @classmethod
    def around(cls, stream: TextIO) -> LossyStream:
        """Wrap a stream's buffer; the stream itself is retained, because it would close the buffer when it is freed."""
        around = cls(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
        around._wrapped = stream
        return around

    def write(self, text: str, /) -> int:
        """Return the number of characters, whether they were written or not."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, if possible."""
        with contextlib.suppress(OSError):
            super().flush()


def prepare_streams() -> None:
    """Replace missing standard streams, and make standard error lossy."""
    # If a stream is closed at the start (`>&-`), Python has None in its place: /dev/null replaces it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # stays open
    sys.stderr = LossyStream.around(sys.stderr)
