"""``top`` in a real terminal: as a one-shot command and in the shell."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.needed import is_required
from tests.repl.tmux import NEEDS_TMUX, Terminal

pytestmark = [
    pytest.mark.slow,
    NEEDS_TMUX,
    pytest.mark.skipif(
        importlib.util.find_spec("textual") is None and not is_required(),
        reason="textual is not installed (extra tui)",
    ),
]
Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*args: str, **environ: str) -> Terminal:
        opened.append(Terminal(tmp_path, *args, environ=environ))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_ctrl_c_ends_it_and_the_terminal_is_as_it_was(terminal: Open) -> None:
    shell = terminal("--demo", "top")
    shell.wait(r"^critical +offlinePartition")
    shell.press("Left")
    shell.wait(r"┤ +offset 205 ")
    shell.resize(50, 12)
    shell.wait(r"^critical +offlineP")
    shell.resize(80, 24)
    shell.press("C-c")
    shell.wait("^EXIT=130$")
    screen = shell.settled()
    assert "offlinePartition" not in screen
    assert "kshell: interrupted" in screen
    # What is typed is echoed again, and a mouse sends nothing.
    shell.type("echoed?")
    shell.wait(r"echoed\?")


def test_keys_that_come_in_one_piece_filter_and_open(terminal: Open) -> None:
    shell = terminal("--demo", "top")
    shell.wait(r"^critical +offlinePartition")
    shell.press("2", "/", "l", "e", "g", "Enter", "Enter")
    shell.wait(r"^Topics > legacy-import$")
    shell.press("3", "/", "x", "q", "BSpace")
    shell.wait(r"^/x$")
    shell.press("Enter", "q")
    shell.wait("^EXIT=0$")


def test_without_colours_there_are_none(terminal: Open) -> None:
    shell = terminal("--demo", "top", NO_COLOR="1")
    shell.wait(r"^critical +offlinePartition")
    assert "\x1b[3" not in shell.screen(colors=True).replace("\x1b[39m", "")
    shell.press("q")
    shell.wait("^EXIT=0$")


def test_time_that_is_over_ends_it_as_it_ends_every_command(terminal: Open) -> None:
    shell = terminal("--demo", "--timeout", "2", "top")
    shell.wait(r"^critical +offlinePartition")
    shell.wait(r"gave up after 2 s")
    shell.wait("^EXIT=3$")


def test_in_the_shell_the_prompt_comes_back(terminal: Open) -> None:
    shell = terminal("--demo")
    shell.wait_for_prompt("/")
    shell.enter("top --as-of 160")
    shell.wait(r"┤ +offset 160 ")
    shell.press("2")
    shell.wait(r"^topic +partitions")
    shell.press("q")
    shell.wait_for_prompt("/")
    shell.enter("top /nowhere")
    shell.wait("no such file or directory")
    shell.wait_for_prompt("/")
