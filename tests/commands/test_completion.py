"""``completion``: the scripts are correct for their shells, and offer what kshell's own prompt offers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kshell.engine.execution import prepare_words
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.sources.choose import NoSource, demo_directory
from tests.commands.shell import rows, words

ROOT = Path(__file__).parents[2]
SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    return words(Session(NoSource()), f"completion {shell}")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_finds_no_fault_in_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    (tmp_path / "script").write_text(script(shell))
    ended = subprocess.run([shell, "-n", tmp_path / "script"], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def offered(*typed: str) -> list[str]:
    line = "completion --words -- " + " ".join(f"'{word}'" for word in typed)
    return [row["word"] for row in rows(Session(NoSource()), line)]


def test_commands_options_and_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("stat") == ["stat", "status"]
    assert offered("topics", "--whe") == ["--where"]
    assert offered("--boot") == [
        "--bootstrap-controller", "--bootstrap-controllers", "--bootstrap-server", "--bootstrap-servers",
    ]  # fmt: skip
    assert offered("--demo", "cat", "/image/topics/byName/ord") == ["/image/topics/byName/orders/"]
    assert offered("-d", demo_directory(), "ls", "/image/acl") == ["/image/acls/"]
    assert offered("cat", "/image/acl") == []
    monkeypatch.setenv("KSHELL_DIRECTORY", demo_directory())
    assert offered("cat", "/image/acl") == ["/image/acls/"]


def test_values_of_kshells_own_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "stats").write_text("")
    monkeypatch.chdir(tmp_path)
    for option in ("-d", "--directory", "-s", "--config", "-f"):
        assert offered(option, "") == ["logs/", "stats"], option
        assert offered("--no-header", option, "lo") == ["logs/"], option
    assert offered("-o", "js") == ["json", "jsonl"]
    assert offered("-q", "lo") == []
    assert offered("-c", "pwd", "-f", "lo") == ["logs/"]
    assert offered("--keep") == ["--keep-going"]
    assert offered("-d", "logs", "stat") == ["stat", "status"]


def test_words_come_as_they_were_typed_and_go_plain() -> None:
    assert offered("--demo", "cat", "/image/clientQuotas/user(<") == ["/image/clientQuotas/user(<default>)/"]
    for typed in ("'name ~ x and part", '"name ~ x and part', "name\\ ~\\ x\\ and\\ part"):
        asked = prepare_words(
            Session(NoSource()), ["completion", "--words", "--", "--demo", "topics", "--where", typed]
        )
        found = asked.run()
        assert isinstance(found, Rows)
        assert [row["word"] for row in found] == ["name ~ x and partitions"]


def test_a_source_that_cannot_be_read_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    assert offered("-d", str(tmp_path / "none"), "cat", "/image/acl") == []
    assert "status" in offered("-d", str(tmp_path / "none"), "sta")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["kshell", "stat"], ["stat", "status"]),
        (["kshell", "--demo", "topics", "--wh"], ["--where"]),
        (["kshell", "--demo", "cat", "/image/topics/byName/ord"], ["/image/topics/byName/orders/"]),
    ],
)
def test_bash_completes(typed: list[str], expected: list[str], tmp_path: Path) -> None:
    """The function that bash calls, with the variables that bash sets."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash on this machine")
    program = tmp_path / "kshell"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kshell "$@"\n')
    program.chmod(0o700)
    (tmp_path / "script").write_text(script("bash"))
    asked, line = " ".join(f"'{word}'" for word in typed), " ".join(typed)
    call = f"COMP_WORDS=({asked}); COMP_CWORD={len(typed) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}; _kshell"
    lines = f'. {tmp_path}/script; {call}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "--norc", "-c", lines], env=env, check=True, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.split() == expected, ended.stderr
