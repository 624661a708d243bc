"""The process: ``python -m kshell``, and the command ``kshell``."""

import gc

# Modules are there to stay. Looking for garbage among them, while they are imported and again at the end of the
# process, takes longer than the command that was asked for.
gc.disable()
from kshell.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    raise SystemExit(main())
