"""Messages of the server on standard error, for the user. Standard output is reserved for the protocol."""

from __future__ import annotations

import sys


def report(sentence: str) -> None:
    """Print a sentence, which must be escaped already."""
    sys.stderr.write(f"kshell: {sentence}\n")
    sys.stderr.flush()
