"""What a picture declares. Nothing here needs the plotting library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import Row
from kshell.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawn(NamedTuple):
    """A figure, and what it shows in a few sentences for who does not see it (names in it escaped)."""

    figure: Figure
    alt: str


class Picture(NamedTuple):
    """``commands`` give answers that have it. ``needs`` are columns that it cannot do without; of ``any_of``, one.

    ``draw`` gets one row at least. It raises UsageError when the rows hold nothing that can be drawn.
    """

    name: str
    commands: tuple[str, ...]
    needs: tuple[str, ...]
    draw: Callable[[list[Row]], Drawn]
    any_of: tuple[str, ...] = ()


def nothing_to_draw(name: str, reason: str, hint: str | None = None) -> UsageError:
    """The error of a picture whose rows hold nothing for it."""
    return UsageError(f"nothing to draw for {name}: {reason}", hint=hint)


def number(value: Any) -> float | None:
    """A value of a row as a number; ``None`` for what is none."""
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < float("inf") else None  # NaN fails that, too
