"""kshell: a metadata shell for Apache Kafka's KRaft mode.

Python callers start with ``kshell.open(directory=…)``; see :mod:`kshell.api`.
"""

import sys

# `python -m kshell` puts the current directory before the standard library: a file typing.py in a directory that
# a user inspects would be run. What kshell needs from there (in a checkout: kshell itself) is located by now.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and " -m kshell " in f" {' '.join(sys.orig_argv)} ":
    del sys.path[0]

from typing import TYPE_CHECKING, Any

from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.api import Session, open
    from kshell.result import Result

__all__ = ["Result", "Session", "__version__", "open"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: Any) -> None:
    """Add the magics ``%kafka`` and ``%%kafka``; IPython calls this for ``%load_ext kshell``."""
    from kshell.magic import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Remove the magics; IPython calls this for ``%unload_ext kshell``."""
    from kshell.magic import unload

    unload(ipython)


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line does without these modules.
    if name in ("open", "Session"):
        from kshell import api

        return getattr(api, name)
    if name == "Result":
        from kshell.result import Result

        return Result
    raise AttributeError(f"module 'kshell' has no attribute {name!r}")
