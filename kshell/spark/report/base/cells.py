"""How values read in a report: with their unit, times in UTC. Plain words: whoever writes them down escapes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kshell.plots.pictures.availability import percent
from kshell.plots.times import lasting, moment
from kshell.render.cells import cell

NUMBERS = frozenset(("count", "ratio", "share", "lasting"))
"""Kinds that stand at the right."""


def said(kind: str, value: Any) -> str:
    """A value of a column of that kind; ``-`` for what is not known or does not apply."""
    return "-" if value is None else _KINDS[kind](value)


def _text(value: Any) -> str:
    return "none" if value == [] else cell(value, ", ")


def _time(value: Any) -> str:
    """To the second."""
    return moment(value).partition(".")[0]


def _broker(value: Any) -> str:
    return "none" if value == -1 else str(value)


_KINDS: Mapping[str, Callable[[Any], str]] = {
    "text": _text,
    "count": lambda value: f"{value:,.0f}",
    "ratio": lambda value: f"{value:.2f}",
    "share": percent,
    "lasting": lasting,
    "time": _time,
    "broker": _broker,
}
