"""When there are colours."""

from __future__ import annotations

import io

import pytest

from kshell.render.color import paint, use_color


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
