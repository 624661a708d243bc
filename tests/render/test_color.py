"""When there are colours."""

from __future__ import annotations

import io
import re

import pytest

from kshell.render.color import CODES, paint, use_color


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("setting", "terminal", "environ", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_use_color(setting: str, terminal: bool, environ: dict[str, str], expected: bool) -> None:
    assert use_color(setting, Terminal() if terminal else io.StringIO(), environ) is expected


def test_paint() -> None:
    assert paint("a", "bold", True) == "\x1b[1ma\x1b[0m"
    assert paint("a", "bold", False) == paint("a", "", True) == "a"
    assert paint("", "bold", True) == ""


THEMES = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5",
    "VGA": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa",
    "Tango": "2e3436 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf",
}
"""Colours 0 to 7 of terminals that many have."""


def luminance(color: str) -> float:
    """The relative luminance of an RRGGBB colour (WCAG 2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """How well one colour is read on the other, from 1 to 21."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def foreground(codes: str, theme: str) -> str | None:
    """The colour of a text with those attributes, or none where it is the terminal's own."""
    if match := re.search(r"38;5;(\d+)", codes):
        red, green, blue = (int(match[1]) - 16) // 36, (int(match[1]) - 16) // 6 % 6, (int(match[1]) - 16) % 6
        return "".join(f"{(0, 95, 135, 175, 215, 255)[level]:02x}" for level in (red, green, blue))
    found = re.search(r"\b3([0-7])\b", codes)
    return THEMES[theme].split()[int(found[1])] if found else None


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("style", [name for name in CODES if not name.startswith("series")])
def test_what_has_a_colour_can_be_read_on_black_and_on_white(style: str, theme: str) -> None:
    color = foreground(CODES[style], theme)
    if color is None:
        return
    # Cyan and blue are as themes have them: beside their text nothing depends on the colour.
    least = 1.4 if style in ("number", "code", "directory", "info") else 2.6
    assert min(contrast(color, "000000"), contrast(color, "ffffff")) >= least
