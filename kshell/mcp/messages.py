"""What the server says to whoever looks at its standard error; standard output has the protocol alone."""

from __future__ import annotations

import sys


def tell(sentence: str) -> None:
    """Print a sentence that was escaped."""
    sys.stderr.write(f"kshell: {sentence}\n")
    sys.stderr.flush()
