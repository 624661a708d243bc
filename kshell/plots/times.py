"""Axes of time and texts of times: positions are epoch milliseconds, labels are in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.plots import theme
from kshell.tree.image import iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
STEPS = (
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 28, 91, 182, 364, 1820, 3640)),
)
"""Round lengths of time for ticks and intervals, in milliseconds."""


def step_of(length: float, most: int) -> int:
    """Return the shortest of :data:`STEPS` that divides ``length`` milliseconds into at most ``most`` intervals."""
    fitting = next((step for step in STEPS if length / step <= most), None)
    if fitting is not None:
        return fitting
    step = STEPS[-1]
    while length / step > most:
        step *= 10
    return step


def moment(milliseconds: float) -> str:
    """Format a time in UTC as ``2026-11-21 15:11:05.421``; one outside the calendar stays a number of milliseconds."""
    text = iso(int(milliseconds))
    return f"{milliseconds:.0f} ms" if text is None else text.rstrip("Z").replace("T", " ")


def between(start: float, end: float) -> str:
    """Format a range of time in UTC; if both ends have the same date, it is printed once."""
    first, last = moment(start), moment(end)
    if first == last:
        return f"{first} UTC"
    day, _, clock = last.partition(" ")
    return f"{first} to {clock if clock and first.startswith(f'{day} ') else last} UTC"


def time_axis(axes: Axes, start: float, end: float, width: float) -> None:
    """Put ticks at round times, with the date below the axis if the ticks do not show it."""
    axes.set_xlim(start, end)
    step = step_of(end - start, max(2, int(width // 90)))
    first, last = moment(start), moment(end)
    one_day = " " in first and " " in last and first.split(" ")[0] == last.split(" ")[0]
    axes_left = axes.get_position().x0 * theme.WIDTH
    ticks = []
    for tick in _ticks(start, end, step):
        label = _tick(tick, step, one_day)
        at, half = axes_left + (tick - start) / (end - start) * width, theme.width_of(label, theme.TINY) / 2
        if half < at < theme.WIDTH - half:
            ticks.append((tick, label))
    axes.set_xticks([tick for tick, _ in ticks], [label for _, label in ticks], parse_math=False)
    axes.set_xlabel(
        f"time in UTC, {first.split(' ')[0]}" if one_day else "time in UTC", parse_math=False, size=theme.TINY
    )


def _ticks(start: float, end: float, step: int) -> Iterator[int]:
    at = -(-int(start) // step) * step
    while at <= end:
        yield at
        at += step


def _tick(tick: int, step: int, one_day: bool) -> str:
    day, _, clock = moment(tick).partition(" ")
    if not clock or step >= _DAY:
        return day
    short = clock if step < _SECOND else clock[:8] if step < _MINUTE else clock[:5]
    return short if one_day else f"{day[5:]} {short}"
