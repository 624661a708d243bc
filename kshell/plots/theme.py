"""The common style of all pictures: colours, sizes, titles, legends, and texts cut to their room.

Pictures are readable on white and on dark pages, and by colour-blind users: whatever has a colour also has a word, a
number or a hatch. Sizes are CSS pixels, measured from the top left of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.escape import terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ft2font import FT2Font

# Okabe and Ito, "Color Universal Design": https://jfly.uni-koeln.de/color/. Vermillion is reserved for trouble. Their
# black is not used, because it is invisible on a dark page.
BLUE, ORANGE, GREEN, SKY, PURPLE, YELLOW = SERIES = "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#F0E442"
TROUBLE = "#D55E00"
INK = "#797979"
"""The colour of text, lines and outlines: contrast 4.35:1 on white and 4.34:1 on #111111, the most possible on both."""
HATCHES = "", "////", "....", "\\\\\\\\", "xxxx"
TROUBLE_HATCH = "////"
FAINT = 0.16
"""The opacity of shapes that are only there for comparison."""

WIDTH, DPI = 880, 100
MARGIN = 12
TITLE, SMALL, TINY = 12.0, 9.5, 8.0
"""Sizes of letters, in points."""
TAIL = 0.34
"""The share of a cut name that is taken from its end, because partitions of a topic differ there."""
_FONT = "DejaVu Sans"  # comes with matplotlib: the same letters everywhere
_OWN: dict[Any, Any] = {
    "font.family": [_FONT],
    "font.size": SMALL,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": TINY,
    "hatch.linewidth": 0.7,
    "savefig.facecolor": "none",
    "savefig.edgecolor": "none",
    "svg.hashsalt": "kshell",
}


@contextmanager
def own_settings() -> Iterator[None]:
    """Give matplotlib the settings of these pictures in the block, and restore the user's settings after it."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_OWN)
        yield


def page(title: str, facts: Sequence[str], height: int, note: str = "") -> tuple[Figure, int]:
    """Make an empty figure with a title, facts and a note at its top; return it, and the height of these in pixels.

    Facts are joined to as few lines as possible. ``height`` is that of the rest of the page, in pixels.
    """
    from matplotlib.figure import Figure

    lines = [*_lines(facts), *([note] if note else [])]
    top = MARGIN + 22 + 17 * len(lines) + 8
    # A little more than whole pixels, because some versions of matplotlib cut off the fraction that rounding leaves.
    figure = Figure(figsize=(WIDTH / DPI, (top + height + 0.01) / DPI), dpi=DPI, facecolor="none")
    write(figure, MARGIN, MARGIN + 8, title, size=TITLE, weight="bold")
    for place, line in enumerate(lines):
        write(figure, MARGIN, MARGIN + 31 + 17 * place, fitting(drawable_name(line, 500), WIDTH - 2 * MARGIN))
    return figure, top


def _lines(facts: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]} · {fact}" if lines else fact
        if lines and width_of(drawable_name(longer, 500)) <= WIDTH - 2 * MARGIN:
            lines[-1] = longer
        else:
            lines.append(fact)
    return lines


def write(figure: Figure, x: float, middle: float, text: str, *, size: float = SMALL, **more: Any) -> None:
    """Write a text; ``x`` and its vertical ``middle`` are pixels from the top left."""
    _, height = figure.get_size_inches() * figure.dpi
    style = {"va": "center", "parse_math": False, **more}
    figure.text(x / WIDTH, 1 - middle / height, text, size=size, **style)


def axes_at(figure: Figure, x: float, top: float, width: float, height: float) -> Axes:
    """Add axes at a position in pixels from the top left, with a line only at the bottom."""
    page_height = figure.get_size_inches()[1] * figure.dpi
    axes = figure.add_axes((x / WIDTH, 1 - (top + height) / page_height, width / WIDTH, height / page_height))
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=3, labelsize=TINY, colors=INK)
    return axes


def on(color: str) -> str:
    """Return black or white, whichever has more contrast on a colour."""
    from matplotlib.colors import to_rgb

    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    light = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def hatched(color: str, hatch: str) -> dict[str, Any]:
    """Return the style of a second shape with only the hatch: matplotlib before 3.11 cannot give it its own colour."""
    return {"facecolor": "none", "edgecolor": on(color), "linewidth": 0, "hatch": hatch}


class LegendKey(NamedTuple):
    """An entry of a legend: the meaning of a colour and hatch."""

    label: str
    color: str
    hatch: str = ""


def legend(figure: Figure, x: float, middle: float, title: str, keys: Sequence[LegendKey], more: str) -> None:
    """Draw a legend in one line: a title, boxes with their labels, and the text ``more`` after them."""
    from matplotlib.patches import Rectangle

    page_height = figure.get_size_inches()[1] * figure.dpi
    write(figure, x, middle, title, size=TINY)
    at = x + width_of(title, TINY) + 8
    for key in keys:
        place, size = (at / WIDTH, 1 - (middle + 6) / page_height), (18 / WIDTH, 12 / page_height)
        boxes: list[dict[str, Any]] = [{"facecolor": key.color, "edgecolor": INK, "linewidth": 0.6}]
        boxes += [hatched(key.color, key.hatch)] if key.hatch else []
        for box in boxes:
            figure.add_artist(Rectangle(place, *size, transform=figure.transFigure, **box))
        write(figure, at + 22, middle, key.label, size=TINY)
        at += 22 + width_of(key.label, TINY) + 12
    write(figure, at, middle, more, size=TINY)


# --- text ------------------------------------------------------------------------------------------------------------


def short_name(name: object, most: int = 64) -> str:
    """Return a name for a sentence: escaped, and cut in its middle where it is long."""
    text = terminal(str(name))
    if len(text) <= most:
        return text
    return _cut(text, most - 1, TAIL)


def drawable_name(name: object, most: int = 34) -> str:
    """Return a name as it can be drawn: a character that the font lacks is written as an escape."""
    signs = _signs()
    text = terminal(str(name))
    return short_name("".join(char if ord(char) in signs else _spelled(char) for char in text), most)


def _spelled(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


@cache
def _signs() -> frozenset[int]:
    return frozenset(_font("normal").get_charmap())


def _font(weight: str) -> FT2Font:
    """Return the font; matplotlib caches one per thread, because threads must not share it."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties(family=[_FONT], weight=weight)))


@lru_cache(maxsize=4096)
def width_of(text: str, size: float = SMALL, weight: str = "normal") -> float:
    """Return the width of a text, in pixels."""
    font = _font(weight)
    font.set_size(size, DPI)
    font.set_text(text, 0.0)
    return float(font.get_width_height()[0]) / 64 * 1.04  # 4 % more: hinting differs from scale to scale


def fitting(text: str, width: float, size: float = SMALL, weight: str = "normal", tail: float = 0) -> str:
    """Cut a text to ``width`` pixels; ``tail`` is the share of what remains that is taken from its end."""
    if width_of(text, size, weight) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(_cut(text, middle, tail), size, weight) <= width:
            low = middle
        else:
            high = middle - 1
    return _cut(text, low, tail)


def _cut(text: str, most: int, tail: float = 0) -> str:
    tail_length = int(most * tail)
    return f"{text[: most - tail_length].rstrip()}…{text[len(text) - tail_length :]}"


def counted(count: int, singular: str, many: str = "") -> str:
    """``1 partition``, ``2,000 partitions``."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def compact(value: float) -> str:
    """Format a number for an axis or a bar: with one decimal place below 100."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}".removesuffix(".0")
