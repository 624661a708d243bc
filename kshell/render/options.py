"""How an answer is rendered: what the functions of every format get beside the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kshell.engine.result import Result


class RenderOptions(NamedTuple):
    """What the caller asks of a rendering.

    Attributes:
        header: whether tables and CSV have a header line.
        width: a terminal's columns; ``None`` where there is no terminal, so that nothing may be cut.
        color: ANSI colours.
        wide: every column, never cut.
        limit: rows of a table and nodes of a tree that a page shows; ``None`` for all.
    """

    header: bool = True
    width: int | None = 80
    color: bool = False
    wide: bool = False
    limit: int | None = None


Renderer = Callable[[Any, RenderOptions], Iterator[str]]
"""(result of one kind, options) -> chunks of text, each ending in a newline."""

Renderers = Mapping[type[Result], Renderer]
"""One format: a function for every kind of result."""


def nothing(result: Result, options: RenderOptions) -> Iterator[str]:
    """A command that only does something prints nothing, in every format."""
    return iter(())
