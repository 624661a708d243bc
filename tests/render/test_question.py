"""A question to the person at the terminal."""

from __future__ import annotations

import io
import os
import pty
import select

import pytest

from kshell.render.question import asker, confirmed


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("y\n", True), ("Yes\n", True), (" y \n", True), ("n\n", False), ("\n", False), ("yep\n", False), ("", False)],
)
def test_only_yes_is_yes(
    typed: str, expected: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert confirmed("Go\x1b[2J on?") is expected
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "Go\\x1b[2J on? [y/N] " + ("" if typed else "\n")


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert asker(lambda: None) is None


def test_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    events: list[str] = []
    with open(name, encoding="utf-8") as keys, open(name, "w", encoding="utf-8") as screen:
        monkeypatch.setattr("sys.stdin", keys)
        monkeypatch.setattr("sys.stderr", screen)
        ask = asker(lambda: events.append("cleared"))
        assert ask is not None
        os.write(ours, b"y\n")
        assert ask("Go on?")
        # The echo of what was typed comes first, and what was written may follow it late.
        shown = b""
        while b"[y/N] " not in shown:
            assert select.select([ours], [], [], 30)[0], f"nothing follows {shown!r}"
            shown += os.read(ours, 100)
    os.close(ours)
    os.close(theirs)
    assert events == ["cleared"]
    assert b"Go on? [y/N] " in shown
