"""``top`` where there is no full screen, or nothing to draw one with."""

from __future__ import annotations

import sys

import pytest

import kshell
from kshell.engine.session import Session
from kshell.errors import UsageError
from tests.commands.shell import run


def test_without_a_terminal_other_commands_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    from kshell.cli import main

    assert main(["--demo", "top"]) == 2
    assert "`status` prints one screen, `watch status`" in capsys.readouterr().err


def test_python_and_notebooks_are_refused_even_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with kshell.open(demo=True) as session, pytest.raises(UsageError, match="needs a terminal"):
        session.run("top")


def test_a_dumb_terminal_shows_no_full_screen(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("kshell.commands.top.require", lambda *names: pytest.fail("goes on to the screen"))
    monkeypatch.setenv("TERM", "dumb")
    sample.ask = lambda question: False
    with pytest.raises(UsageError, match="needs a terminal") as raised:
        run(sample, "top")
    assert "`status` prints one screen" in str(raised.value.hint)


def test_without_the_extra_its_name_is_said(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "textual", None)
    sample.ask = lambda question: False
    with pytest.raises(UsageError, match="needs the package textual") as raised:
        run(sample, "top")
    assert "[tui]" in str(raised.value.hint)
