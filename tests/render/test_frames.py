"""``watch`` at a terminal: what is drawn, what is marked as changed, and how it ends."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

import pytest

from kshell.engine.execution import Call, prepare
from kshell.engine.result import Column, Frames, LineResult, Result, Rows, Text
from kshell.engine.session import Session
from kshell.errors import CommandError
from kshell.render.cells import cells
from kshell.render.frames import changed_words, fitted, show, uncolored
from tests.docs_reference import sample_session


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    session: Session = sample_session()
    made = prepare(session, "pwd")
    assert made is not None
    return made


def drawn(call: Call, *results: Result | BaseException) -> list[list[str]]:
    """The lines of every screen."""

    def parts() -> Iterator[LineResult]:
        for one in results:
            if isinstance(one, CommandError):
                yield LineResult(call, None, one)
            elif isinstance(one, Result):
                yield LineResult(call, one)
            else:
                raise one

    out = Terminal()
    frames = Frames(parts(), "a\x1b[2Jb", 2.0)
    with contextlib.suppress(KeyboardInterrupt):
        show(call, frames, lambda error: None, out)
    text = out.getvalue()
    assert text.endswith("\x1b[?25h")
    screens = text.removesuffix("\x1b[?25h").split("\x1b[H")[1:]
    return [
        [line.removesuffix("\x1b[K") for line in screen.replace("\x1b[?25l", "").removesuffix("\x1b[J").split("\r\n")]
        for screen in screens
    ]


def test_a_screen(call: Call) -> None:
    [screen] = drawn(call, Text("one\ntwo"))
    assert uncolored(screen[0]).startswith("every 2 s: a")
    assert "\x1b[2J" not in screen[0]
    assert cells(uncolored(screen[0])) == 40
    assert screen[1:] == ["", "one", "two", ""]


def test_the_heading_has_the_time_of_the_users_zone(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    in_zone = prepare(call.session, "pwd --tz Asia/Kolkata")
    assert in_zone is not None
    [[head, *_]], [[of_utc, *_]] = drawn(in_zone, Text("one")), drawn(call, Text("one"))
    assert re.search(r"T\d\d:\d\d:\d\d\+05:30$", uncolored(head))
    assert uncolored(of_utc).endswith("Z")


def test_what_does_not_fit_is_said(call: Call) -> None:
    [screen] = drawn(call, Text("\n".join(f"line {n}" for n in range(20))))
    assert screen[2:6] == ["line 0", "line 1", "line 2", "line 3"]
    assert uncolored(screen[6]) == "… 16 more lines"
    assert len(screen) == 8
    [screen] = drawn(call, Text("\n".join("12345")))
    assert screen[2:] == [*"12345", ""]
    [screen] = drawn(call, Rows((Column("n"),), [{"n": n} for n in range(20_000)], style="lines", line_column="n"))
    assert uncolored(screen[6]) == "… more than 10000 more lines"


def test_long_lines_are_cut(call: Call) -> None:
    [screen] = drawn(call, Text("日" * 30))
    assert uncolored(screen[2]) == "日" * 19 + "…"


def test_changes_are_marked(call: Call) -> None:
    screens = drawn(call, Text("a 1 x\nb 2 y"), Text("a 1 x\nnew\nb 3 y"), Text("a 1 x\nnew\nb 3 y"))
    assert screens[0][2:4] == ["a 1 x", "b 2 y"]
    assert screens[1][2] == "a 1 x"
    assert "\x1b[7mnew\x1b[27m" in screens[1]
    assert any("b \x1b[7m3\x1b[27m y" in line for line in screens[1])
    assert screens[2][2:5] == ["a 1 x", "new", "b 3 y"]


def test_an_error_takes_the_place_of_an_answer(call: Call) -> None:
    screens = drawn(call, Text("one"), CommandError("gone\x1b[2J", hint="look"))
    assert [uncolored(line) for line in screens[1][2:]] == ["gone\\x1b[2J", "look", ""]


def test_ctrl_c_leaves_the_last_screen(call: Call) -> None:
    assert drawn(call, Text("one"), KeyboardInterrupt())[-1][2] == "one"


def test_places_of_changes() -> None:
    assert changed_words(["a b c"], ["a x c"]) == [{2}]
    assert changed_words(["a", "b"], ["b"]) == [set()]
    assert changed_words([], ["a bc"]) == [{0, 2, 3}]
    assert changed_words(["9  x"], ["10 x"]) == [{0, 1}]


def test_colors_and_marks_together() -> None:
    assert fitted("\x1b[36m12\x1b[0m b", {1}, 10) == "\x1b[36m1\x1b[7m2\x1b[0m\x1b[7m\x1b[27m b"
    assert uncolored(fitted("\x1b[36m12345\x1b[0m", {0}, 3)) == "12…"
