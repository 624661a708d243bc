"""kshell: a metadata shell for Apache Kafka's KRaft mode.

``kshell.open(directory=…)`` is the way in for Python callers; see :mod:`kshell.api`.
"""

import sys

# `python -m kshell` puts the current directory before the standard library: a file typing.py in a directory that
# somebody looks at would be run. What kshell needs of that directory (in a checkout: itself) is found by now.
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
    """``%load_ext kshell``: the magics ``%kafka`` and ``%%kafka``."""
    from kshell.magic import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext kshell``."""
    from kshell.magic import unload

    unload(ipython)


def __getattr__(name: str) -> Any:
    # Only Python callers pay for the facade: the command line imports none of it.
    if name in ("open", "Session"):
        from kshell import api

        return getattr(api, name)
    if name == "Result":
        from kshell.result import Result

        return Result
    raise AttributeError(f"module 'kshell' has no attribute {name!r}")
