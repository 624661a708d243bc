"""How an answer should look: what every format's functions get beside the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kshell.engine.result import Result


class Look(NamedTuple):
    """``width``: a terminal's columns, ``None`` where there is no terminal and nothing may be cut off for space.

    ``header``: whether tables and CSV have a header line. ``color``: ANSI colours. ``wide``: every column, never cut.
    ``limit``: rows of a table and nodes of a tree that a page shows; ``None`` for all.
    """

    header: bool = True
    width: int | None = 80
    color: bool = False
    wide: bool = False
    limit: int | None = None


Renderer = Callable[[Any, Look], Iterator[str]]
"""(result of one kind, look) -> chunks of text, each ending in a newline."""

Renderers = Mapping[type[Result], Renderer]
"""One format: a function for every kind of result."""


def nothing(result: Result, look: Look) -> Iterator[str]:
    """A command that only does something prints nothing, in every format."""
    return iter(())
