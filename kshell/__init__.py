"""kshell: a metadata shell for Apache Kafka's KRaft mode.

``kshell.open(directory=…)`` is the way in for Python callers; see :mod:`kshell.api`.
"""

from typing import TYPE_CHECKING, Any

from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.api import open

__all__ = ["__version__", "open"]


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
    if name == "open":
        from kshell.api import open

        return open
    raise AttributeError(f"module 'kshell' has no attribute {name!r}")
