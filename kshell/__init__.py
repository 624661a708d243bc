"""kshell: a metadata shell for Apache Kafka's KRaft mode.

``kshell.open(directory=…)`` is the way in for Python callers; see :mod:`kshell.api`.
"""

from typing import TYPE_CHECKING, Any

from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.api import open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    # Only Python callers pay for the facade: the command line imports none of it.
    if name == "open":
        from kshell.api import open

        return open
    raise AttributeError(f"module 'kshell' has no attribute {name!r}")
