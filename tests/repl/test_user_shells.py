"""Around kshell in a real terminal: Tab in bash, zsh and fish, pipes that close early, and ``watch``."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kshell.commands.completion import COMMAND
from kshell.engine.arguments import parse
from kshell.engine.result import Text
from kshell.engine.session import Session
from kshell.sources.choose import NoSource, demo_directory
from tests.needed import missing
from tests.repl.tmux import NEEDS_TMUX, Terminal

pytestmark = [pytest.mark.slow, NEEDS_TMUX]

SHELLS = ("bash", "zsh", "fish")
Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program in a terminal; ``kshell`` is on its PATH, and knows the sample."""
    program = tmp_path / "bin" / "kshell"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m kshell "$@"\n')
    program.chmod(0o700)
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}", "KSHELL_DIRECTORY": demo_directory(), "PS1": "$ "}
    opened: list[Terminal] = []

    def begin(*words: str, **options: int) -> Terminal:
        if shutil.which(words[0]) is None:
            missing(f"there is no {words[0]} on this machine")
        opened.append(Terminal(tmp_path, program=words, environ=environ, **options))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def set_up(shell: str, home: Path) -> list[str]:
    """Write the script where `help completion` says that it belongs; give the words that start the shell."""
    answer = COMMAND.run(Session(NoSource()), parse(COMMAND, [shell]))
    assert isinstance(answer, Text)
    places = {"bash": ".bashrc", "zsh": ".zfunc/_kshell", "fish": ".config/fish/completions/kshell.fish"}
    place = home / places[shell]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(("PS1='$ '\n" if shell == "bash" else "") + answer.text)
    if shell == "zsh":
        (home / ".zshrc").write_text("PROMPT='$ '\nfpath=(~/.zfunc $fpath)\nautoload -Uz compinit && compinit -u\n")
    if shell == "fish":
        (home / ".config/fish/config.fish").write_text(
            "function fish_prompt; echo -n '$ '; end\nset -g fish_greeting\n"
        )
    return ["bash", "--rcfile", str(place), "-i"] if shell == "bash" else [shell, "-i"]


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_commands_options_paths_and_conditions(shell: str, start: Start, tmp_path: Path) -> None:
    terminal = start(*set_up(shell, tmp_path))
    terminal.wait(r"^\$$")
    for typed, completed in (
        ("kshell registr", "kshell registrations"),
        ("kshell topics --whe", "kshell topics --where"),
        ("kshell cat /image/topics/byName/ord", "kshell cat /image/topics/byName/orders/"),
        # Bash would end a word at the colon, and a bracket is not for the shell.
        ("kshell ls /image/configs/TOPIC:ord", "kshell ls /image/configs/TOPIC:orders/"),
        ("kshell ls '/image/scram/SCRAM-SHA-256/al", "kshell ls '/image/scram/SCRAM-SHA-256/alice"),
        ("kshell topics --where 'name ~ x and part", "kshell topics --where 'name ~ x and partitions'"),
        ("kshell ls /image/clientQuotas/user\\(int", "kshell ls /image/clientQuotas/user\\(intern\\)/"),
    ):
        terminal.type(typed)
        terminal.wait(rf"^\$ {re.escape(typed)}\Z")
        terminal.press("Tab")
        terminal.wait(rf"^\$ {re.escape(completed)}'?\Z")
        terminal.press("C-u")
        terminal.wait(r"^\$\Z")


def test_a_pipe_that_is_closed_early_is_no_failure(start: Start) -> None:
    terminal = start("bash", "--norc", "-i", columns=100)
    terminal.wait(r"^\$$")
    for line in ("log", "find /image", "partitions", "dump -o jsonl"):
        terminal.type(f'clear; kshell {line} | head -1 >/dev/null; echo "ends: ${{PIPESTATUS[*]}}"')
        terminal.press("Enter")
        terminal.wait(r"^ends: 0 0$")
        # No trace of the pipe on standard error; how old the data is, is told at a terminal.
        assert [text for text in terminal.screen().split("\n")[:-2] if not text.startswith("kshell: note:")] == []


def test_watch_shows_a_table_that_fits(start: Start, tmp_path: Path) -> None:
    terminal = start("watch", "-n1", "kshell", "partitions", "--at-min-isr", "--limit", "5")
    terminal.wait(r"^5 rows, \d+ of \d+ columns: -o wide shows all$")
    shown = terminal.screen().split("\n")[2:]
    assert shown[0].split()[:3] == ["topic", "partition", "leader"]
    assert all(len(line) <= 80 for line in shown)
    assert [len(line.split()) for line in shown[1:6]] == [len(shown[0].split())] * 5
