"""``watch`` in a real terminal: in the shell and as a one-shot command."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.repl.tmux import NEEDS_TMUX, Terminal

pytestmark = [
    pytest.mark.slow,
    NEEDS_TMUX,
]
LAST = "00000000000000000158.log"
Open = Callable[..., Terminal]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), tmp_path / METADATA_DIRECTORY))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*args: str, **options: Any) -> Terminal:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        opened.append(Terminal(home, *args, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_in_the_shell_a_change_is_drawn_in_place(terminal: Open, directory: Path) -> None:
    whole = (directory / LAST).read_bytes()
    (directory / LAST).write_bytes(b"")
    shell = terminal("-d", str(directory), columns=80, lines=14)
    shell.wait_for_prompt("/")
    shell.type("watch -n 60 ls -l /image/topics/byName")
    shell.press("Enter")
    shell.wait("payments.v1$")
    shell.wait(r"^… \d+ more lines$")
    (directory / LAST).write_bytes(whole)
    shell.wait("payments.v2$")
    screen = shell.screen()
    assert screen.startswith("every 60 s: ls -l /image/topics/byName")
    assert screen.count("every") == 1
    shell.press("C-c")
    shell.wait("^interrupted$")
    shell.wait_for_prompt("/")
    assert "payments.v2" in shell.screen()
    shell.type("pwd")
    shell.press("Enter")
    shell.wait("^/$")


def test_one_shot(terminal: Open, directory: Path) -> None:
    shell = terminal("-d", str(directory), "watch", "-n", "0.2", "cat", "/image/provenance", columns=60, lines=14)
    shell.wait("^timeMs")
    shell.press("C-c")
    shell.wait("^EXIT=130$")
    assert shell.screen().startswith("every 0.2 s: cat /im")
    assert "timeMs" in shell.screen()


def test_one_shot_that_ends_by_itself(terminal: Open, directory: Path) -> None:
    shell = terminal("-d", str(directory), "watch", "--until", "offset > 100", "cat", "/image/provenance")
    shell.wait("^EXIT=0$")
    assert "timeMs" in shell.screen()
