"""The shell as a person meets it: in a real terminal, with golden screens under ``screens/``."""

from __future__ import annotations

import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import builders
from tests.needed import is_required
from tests.repl.tmux import NEEDS_TMUX, Terminal

pytestmark = [
    pytest.mark.slow,
    NEEDS_TMUX,
]

Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Opens kshell on the sample, or on what the arguments say, and waits for the first prompt."""
    opened: list[Terminal] = []

    def open_one(*args: str, **options: Any) -> Terminal:
        for one in opened:
            one.close()
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        opened.append(Terminal(home, *(args or ("--demo",)), **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_options_of_the_start_reach_the_shell(terminal: Open) -> None:
    shell = terminal("--demo", "--timeout", "0.5")
    shell.wait_for_prompt("/")
    shell.type("pwd | exec sleep 20")
    shell.press("Enter")
    shell.wait(r"gave up after 0\.5 s")


def test_completion_of_paths(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.shows("start")
    shell.type("ls /image/to")
    shell.press("Tab")
    shell.wait(r"> ls /image/topics/$")
    shell.type("byName/c")
    shell.press("Tab")
    shell.wait(r"customer-profiles/ *$")
    shell.shows("menu-paths")
    shell.press("Tab")
    shell.wait(r"> ls /image/topics/byName/clicks/")
    shell.press("Enter")
    shell.wait_for_prompt("/")
    shell.shows("ls-topic")


def test_completion_of_commands_and_flags(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.type("ls --")
    shell.press("Tab")
    shell.wait("directories below, too")
    shell.shows("menu-flags")
    shell.press("C-c")
    shell.wait_for_prompt("/")
    shell.type("ls -o ")
    shell.press("Tab")
    shell.wait("markdown")
    shell.shows("menu-formats")


def test_ghost_text(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.type("cd /image/topi")
    shell.wait(r"> cd /image/topics/$")
    shell.shows("ghost")
    # The part that is not typed is in another colour.
    assert re.search(r"topi\x1b\[[0-9;]*mcs/", shell.screen(colors=True))
    shell.press("Right", "Enter")
    shell.wait_for_prompt("/image/topics")


def test_history_after_a_restart(terminal: Open, tmp_path: Path) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    for line in ("cd /image/features", "cat metadataVersion", " pwd"):
        shell.enter(line)
        shell.wait_for_prompt("/image/features")
    shell.press("C-d")
    shell.wait("^EXIT=0$")
    path = tmp_path / "home/.local/state/kshell/history"
    assert path.read_text() == "cd /image/features\ncat metadataVersion\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.type("cd")
    shell.wait(r"> cd /image/features$")
    shell.press("C-c")
    shell.wait_for_prompt("/")
    shell.press("Up")
    shell.wait(r"> cat metadataVersion$")
    shell.press("C-c")
    shell.wait_for_prompt("/")
    shell.press("C-r")
    shell.type("features")
    shell.wait(r"\(reverse-i-search\)`features': cd /image/features")
    shell.press("Enter")
    shell.wait_for_prompt("/image/features")


@pytest.mark.skipif(shutil.which("less") is None and not is_required(), reason="less is not installed")
def test_long_output_is_paged(terminal: Open) -> None:
    shell = terminal(lines=12)
    shell.wait_for_prompt("/")
    shell.type("find /image/topics/byName")
    shell.press("Enter")
    shell.wait("^:$")
    shell.shows("pager")
    # In the pager Ctrl-C is the pager's. less rings the bell for it; what is typed before that, it may throw away.
    shell.press("C-c")
    shell.wait_for_bell()
    shell.press("Space")
    shell.wait("customer-profiles")
    shell.press("q")
    shell.wait_for_prompt("/")
    shell.enter("set pager off")
    shell.wait_for_prompt("/")
    shell.type("find /image/features")
    shell.press("Enter")
    shell.wait("metadataVersion$")


def _page_the_log(shell: Terminal) -> None:
    shell.type("dump | less")
    shell.press("Enter")
    shell.wait("^:$")


def _has_the_keyboard(shell: Terminal) -> None:
    shell.wait_for_prompt("/")
    shell.enter("pwd")
    shell.wait("^/$")


@pytest.mark.skipif(shutil.which("less") is None and not is_required(), reason="less is not installed")
def test_a_program_behind_a_pipe_has_the_keyboard_until_it_ends(terminal: Open) -> None:
    shell = terminal(lines=12)
    shell.wait_for_prompt("/")
    _page_the_log(shell)
    shell.press("C-c")
    shell.wait_for_bell()
    shell.press("q")
    shell.wait("interrupted")
    _has_the_keyboard(shell)


@pytest.mark.skipif(shutil.which("less") is None and not is_required(), reason="less is not installed")
def test_nor_does_a_deadline_take_the_keyboard_away(terminal: Open) -> None:
    shell = terminal(lines=12)
    shell.wait_for_prompt("/")
    shell.enter("set timeout 2")
    shell.wait_for_prompt("/")
    _page_the_log(shell)
    time.sleep(3)
    shell.press("q")
    _has_the_keyboard(shell)


def test_a_line_that_lacks_a_command_does_not_end_the_shell(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.enter("pwd &&")
    shell.wait("a command is missing next to &&")
    shell.wait_for_prompt("/")
    shell.enter("pwd && pwd")
    shell.wait("^/\n/$")


def test_errors_come_with_a_hint(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.enter("cat /image/topcis/byName")
    shell.wait_for_prompt("/")
    shell.shows("error-path")
    # The message is red.
    assert re.search(r"\x1b\[[0-9;]*31m[^\n]*topcis", shell.screen(colors=True))
    shell.type("lss /image")
    shell.press("Enter")
    shell.wait("did you mean ls")
    shell.wait_for_prompt("/")
    shell.shows("error-command")
    shell.type("cat '/image")
    shell.press("Enter")
    shell.wait("is not closed")
    shell.wait_for_prompt("/")
    shell.shows("error-quote")


def test_after_a_mistyped_command_the_next_one_stands_alone(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.enter("helth")
    shell.wait("did you mean health")
    shell.wait_for_prompt("/")
    shell.enter("pwd")
    shell.wait("^/$")
    assert "helthpwd" not in shell.screen()


def test_a_pasted_block_with_typos_runs_up_to_a_quote_that_is_not_closed(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.paste("cd /image/features\nhelth\ncat 'open\ncat metadataVersion\n")
    shell.wait("> cd /image/features$")
    shell.press("Enter")
    shell.wait_for_prompt("/image/features")
    shell.shows("paste-typos")


def test_resizing(terminal: Open) -> None:
    shell = terminal()
    shell.wait_for_prompt("/")
    shell.enter("cd /image/configs/TOPIC:customer-profiles")
    shell.wait_for_prompt("/image/configs/TOPIC:customer-profiles")
    shell.resize(50, 12)
    shell.wait(r"^kshell:\S*…\S*> *$")
    shell.type("ls /")
    shell.press("Enter")
    shell.wait(r"^image/")
    shell.resize(100, 20)
    shell.wait(r"metadata\.version")
    shell.type("pwd")
    shell.press("Enter")
    shell.wait(r"^/image/configs/TOPIC:customer-profiles$")
    shell.wait_for_prompt("/image/configs/TOPIC:customer-profiles")


@pytest.fixture
def long_log(tmp_path: Path) -> str:
    """A log of 400,000 records, which takes a while to print."""
    values = [
        builders.value("CONFIG", resourceType=2, resourceName=f"topic-{number}", name="retention.ms", value="1")
        for number in range(500)
    ]
    directory = tmp_path / "data" / "__cluster_metadata-0"
    builders.write_log(directory, *(builders.batch(values, 500 * number) for number in range(800)))
    return str(directory)


def test_ctrl_c_ends_a_long_command(terminal: Open, long_log: str, tmp_path: Path) -> None:
    shell = terminal("-d", long_log)
    shell.wait_for_prompt("/")
    shell.type(f"dump -o jsonl > {tmp_path}/dumped")
    shell.press("Enter")
    deadline = time.monotonic() + 20
    while not (tmp_path / "dumped").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    begin = time.monotonic()
    shell.press("C-c")
    shell.wait_for_prompt("/", seconds=10)
    # A second is what a person waits for; the rest is for a machine that does other things as well.
    assert time.monotonic() - begin < 2
    shell.wait("interrupted")
    lines = (tmp_path / "dumped").read_bytes().count(b"\n")
    assert lines < 400_000
    shell.press("C-d")
    shell.wait("^EXIT=130$")


def test_typing_does_not_wait_for_loading(terminal: Open, long_log: str) -> None:
    shell = terminal("-d", long_log)
    shell.wait("^kshell:/>")
    shell.type("cat /image/provenance")
    shell.wait("> cat /image/provenance")
    shell.press("Enter")
    shell.wait("399999")
    shell.wait_for_prompt("/")


def test_a_dumb_terminal(terminal: Open) -> None:
    shell = terminal(environ={"TERM": "dumb"})
    shell.wait("^kshell:/> *$")
    shell.type("ls /")
    shell.press("Enter")
    shell.wait("^image/")
    shell.type("nosuch")
    shell.press("Enter")
    shell.wait("nosuch: no such command")
    shell.shows("dumb")
    shell.press("C-d")
    shell.wait("EXIT=2$")


def test_many_names_in_the_menu_do_not_hide_the_toolbar(terminal: Open) -> None:
    shell = terminal(columns=60, lines=14)
    shell.wait_for_prompt("/")
    shell.type("cat /image/clientQuotas/")
    shell.press("Tab")
    shell.wait("ip\\(10.20.0.7\\)/")
    shell.shows("menu-narrow")
