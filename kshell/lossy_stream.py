"""The standard streams as kshell has them: what cannot be said on standard error is lost, and nothing else is."""

from __future__ import annotations

import contextlib
import io
import os
import sys
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


def prepare_streams() -> None:
    """Make the standard streams of a process ones that a command can use: there, and standard error lossy."""
    # Started with a closed stream (`>&-`), Python has none: what would go there goes nowhere.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open to the end
    sys.stderr = LossyStream.around(sys.stderr)
