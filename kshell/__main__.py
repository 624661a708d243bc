"""``python -m kshell``, and the ``kshell`` command."""

import gc
import os
import sys
from typing import NoReturn


def entry() -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    # Importing makes thousands of objects that stay: the collector need not look at them, now or later.
    gc.disable()
    from kshell.cli import main

    gc.freeze()
    gc.enable()
    # Started with a closed stream (`>&-`), Python has none: what would go there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    # Taking a large image apart object by object would take longer than many an answer.
    os._exit(code)


if __name__ == "__main__":
    entry()
