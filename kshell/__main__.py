"""``python -m kshell``, and the ``kshell`` command."""

import gc
import os
import sys
from typing import NoReturn


def entry() -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    # A command makes objects that stay and no cycles to speak of: looking for garbage among them takes longer than
    # many an answer. The interactive shell turns the collector on again.
    gc.disable()
    try:
        from kshell.cli import main
    except KeyboardInterrupt:
        os._exit(130)

    # Started with a closed stream (`>&-`), Python has none: what would go there goes nowhere.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open to the end
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 2
    # Taking a large image apart object by object would take longer than many an answer.
    os._exit(code)


if __name__ == "__main__":
    entry()
