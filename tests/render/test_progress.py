"""The line that shows how far loading is."""

from __future__ import annotations

import io
import sys

import pytest

from kshell.render import progress
from kshell.render.cells import cells


class Screen(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [1, 2, 20, 41, 200])
def test_the_line_stays_in_one_row(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setenv("COLUMNS", str(width))
    line = progress.Progress()
    line(5_000_000, 10_000_000, "/data/__cluster_metadata-0/00000000000000000000\x1b漢.log")
    drawn = screen.getvalue().removeprefix("\r").removesuffix("\x1b[K")
    assert 0 < cells(drawn) <= max(width - 1, 1)
    if width == 200:
        assert drawn.endswith("50% of 10.0 MB  00000000000000000000\\x1b漢.log")
    line.clear()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_nothing_is_drawn_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    line = progress.Progress()
    line(1, 2, "x")
    line.clear()
    assert screen.getvalue() == ""
