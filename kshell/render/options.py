"""The options of rendering, and the types of the functions that render a kind of result in a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kshell.engine.result import Result


class RenderOptions(NamedTuple):
    """The options with which a result is rendered.

    Attributes:
        header: whether tables and CSV have a header line.
        width: columns of the terminal; ``None`` without a terminal: nothing may be cut.
        color: whether to use ANSI colours.
        wide: whether to show every column, and cut none.
        limit: the most rows of a table and nodes of a tree that a page shows; ``None`` for all.
    """

    header: bool = True
    width: int | None = 80
    color: bool = False
    wide: bool = False
    limit: int | None = None


Renderer = Callable[[Any, RenderOptions], Iterator[str]]
"""(result of one kind, options) -> chunks of text, each ending in a newline."""

Renderers = Mapping[type[Result], Renderer]
"""The functions of one format, by kind of result."""


def nothing(result: Result, options: RenderOptions) -> Iterator[str]:
    """Render nothing, in every format: for a command that has no answer."""
    return iter(())
