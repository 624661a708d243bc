"""The parts of the prompt one by one: colours, what Enter refuses, the toolbar, the pager, short paths."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TextIO, cast

import pytest
from prompt_toolkit.document import Document

from kshell.engine.session import Session
from kshell.errors import DataError
from kshell.render.cells import rows_of
from kshell.repl.completion import from_history
from kshell.repl.highlight import LineLexer
from kshell.repl.loading import Loader, Meter
from kshell.repl.pager import PagerQuit, Screen, pager_command
from kshell.repl.prompt import prompt_text, short_path
from kshell.repl.terminal import masked, shortened, width_of
from kshell.repl.toolbar import Toolbar
from kshell.sources.directory.source import DirectorySource
from tests.repl.conftest import DEMO

# --- colours ---------------------------------------------------------------------------------------------------------


def styles(session: Session, line: str) -> list[tuple[str, str]]:
    """(text, the last part of its style) of what has a style."""
    fragments = LineLexer(session).lex_document(Document(line))(0)
    assert "".join(fragment[1] for fragment in fragments) == masked(line)
    return [(fragment[1], fragment[0].removeprefix("class:")) for fragment in fragments if fragment[0]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("l", []),
        ("lss", [("lss", "command.unknown")]),
        ("ca /image", [("ca", "command.unknown"), ("/image", "argument")]),
        ("ls /image", [("ls", "command"), ("/image", "path")]),
        ("ls /imag /image", [("ls", "command"), ("/imag", "argument"), ("/image", "path")]),
        ("ls '/image'", [("ls", "command"), ("'/image'", "path")]),
        ("ls '/ima", [("ls", "command"), ("'/ima", "string.open")]),
        ("ls -l --rec", [("ls", "command"), ("-l", "flag"), ("--rec", "flag")]),
        ("ls --rec /", [("ls", "command"), ("--rec", "flag.unknown"), ("/", "path")]),
        ("ls -o json /image/*", [("ls", "command"), ("-o", "flag"), ("json", "argument"), ("/image/*", "argument")]),
        ("pwd | jq .x", [("pwd", "command"), ("|", "operator"), ("jq .x", "program")]),
        ("pwd > f x", [("pwd", "command"), (">", "operator"), ("f", "file"), ("x", "wrong")]),
        ("pwd # why", [("pwd", "command"), ("# why", "comment")]),
        ("pwd x y", [("pwd", "command"), ("x", "wrong"), ("y", "argument")]),
        ("cd /image && ls", [("cd", "command"), ("/image", "path"), ("ls", "command")]),
        ("pwd; lss; ls", [("pwd", "command"), ("lss", "command.unknown"), ("ls", "command")]),
        ("SELECT 1 > 0", []),
        ("/image", []),
        ("", []),
    ],
)
def test_colors(session: Session, line: str, expected: list[tuple[str, str]]) -> None:
    assert styles(session, line) == expected


def test_colors_follow_aliases_and_loading() -> None:
    session = Session(DirectorySource(DEMO))
    session.aliases["ll"] = "ls -l"
    lexer = LineLexer(session)
    before = lexer.invalidation_hash()
    assert styles(session, "ll /image") == [("ll", "command"), ("/image", "argument")]
    assert not session.is_loaded
    _ = session.loaded
    assert styles(session, "ll /image") == [("ll", "command"), ("/image", "path")]
    assert lexer.invalidation_hash() != before


def test_colors_go_on_where_a_quote_does(session: Session) -> None:
    lines = ['sql "SELECT 1', "ls\x1b", '" -o json', "ls '/ima"]
    line = LineLexer(session).lex_document(Document("\n".join(lines)))
    assert [line(number) for number in range(4)] == [
        [("class:command", "sql"), ("", " "), ("class:string", '"SELECT 1')],
        [("class:string", "ls\ufffd")],
        [("class:string", '"'), ("", " "), ("class:flag", "-o"), ("", " "), ("class:argument", "json")],
        [("class:command", "ls"), ("", " "), ("class:string.open", "'/ima")],
    ]
    assert line(4) == []


def test_what_a_terminal_would_obey_is_masked(session: Session) -> None:
    shown = LineLexer(session).colored("cat 'a\u202eb\x1b'")
    assert "".join(fragment[1] for fragment in shown) == "cat 'a\ufffdb\ufffd'"


# --- ghost text, prompt ----------------------------------------------------------------------------------------------


def test_the_newest_line_of_the_history_counts() -> None:
    lines = ["ls /image", "ls /log", "ls /l"]
    assert from_history(lines, "ls /l") == "og"
    assert from_history(lines, "ls /im") == "age"
    assert from_history(lines, "cat") == ""
    assert from_history([*lines, "ls /l 'a\nb'"], "ls /l") == "og"


def test_paths_are_shortened_in_the_middle() -> None:
    path = "/image/topics/byName/orders/0"
    assert short_path(path, 40) == path
    assert short_path(path, 25) == "/image/…/byName/orders/0"
    assert short_path(path, 20) == "/image/…/orders/0"
    assert short_path("/image/topics/byName/" + "x" * 50, 20) == "…" + "x" * 19
    assert shortened("\u65e5\u672c\u8a9e", 5) == "…\u672c\u8a9e"
    assert shortened("abc", 0) == "…"


def test_the_prompt_says_where_and_when(session: Session) -> None:
    assert "".join(f[1] for f in prompt_text(session, 0, 80)) == "kshell:/> "
    session.change_directory(("image", "topics"))
    at = session.reshape(point="158")
    assert "".join(f[1] for f in prompt_text(at, 0, 80)) == "kshell@158:/image/topics> "
    assert prompt_text(at, 1, 80)[-1] == ("class:prompt.failed", "> ")


# --- toolbar ---------------------------------------------------------------------------------------------------------


def toolbar_of(session: Session, columns: int = 80) -> tuple[list[str], list[str]]:
    """The toolbar's lines and styles."""
    meter = Meter()
    loader = Loader(session, meter)
    loader.start()
    loader.wait()
    fragments = Toolbar(session, loader).render(columns)
    lines = "".join(fragment[1] for fragment in fragments).split("\n")
    assert all(width_of(line) == columns for line in lines)
    return [line.strip() for line in lines], [fragment[0] for fragment in fragments]


def test_the_toolbar_tells_the_source_and_its_point(session: Session) -> None:
    last = session.image.provenance
    (line,), _ = toolbar_of(session, 120)
    assert line.startswith(f"demo · as of offset {last.offset} · 20")
    assert line.endswith(f"· metadata.version 4.3-IV0 · epoch {last.epoch}")
    assert toolbar_of(session, 40)[0] == [f"demo · as of offset {last.offset}"]
    assert toolbar_of(session, 8)[0] == ["demo"]


def test_the_toolbars_time_is_of_the_users_zone(session: Session) -> None:
    session.settings = {**session.settings, "timezone": "Asia/Kolkata"}
    (line,), _ = toolbar_of(session, 120)
    assert line.split(" · ")[2] == "2026-11-21 20:41:24.494+05:30"


def test_the_toolbar_tells_what_is_wrong(tmp_path: Path) -> None:
    directory = tmp_path / "a\u202eb" / "__cluster_metadata-0"
    shutil.copytree(Path(DEMO) / "__cluster_metadata-0", directory)
    newest = max(directory.glob("*.log"))
    damaged = bytearray(newest.read_bytes())
    damaged[70] ^= 1
    newest.write_bytes(damaged)
    lines, looks = toolbar_of(Session(DirectorySource(str(directory))))
    assert lines[1].startswith(f"{newest.name}: byte 0: ")
    assert looks[-1] == "class:bar.wrong"
    assert "\u202e" not in "".join(lines)


def test_the_toolbar_tells_that_a_copy_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(DirectorySource(DEMO))
    monkeypatch.setattr(time, "time", lambda: session.loaded.last_timestamp / 1000 + 7200)
    lines, looks = toolbar_of(session)
    assert lines[1] == "last record 2 h ago"
    assert looks[-1] == "class:bar.note"


def test_the_toolbar_while_loading_and_after_a_failure() -> None:
    class Gone(DirectorySource):
        def load(self, **_: object) -> None:  # type: ignore[override]
            raise DataError("the data is gone")

    session = Session(Gone(DEMO, name="gone"))
    lines, looks = toolbar_of(session)
    assert lines == ["gone · not loaded", "the data is gone"]
    assert looks[-1] == "class:bar.wrong"
    meter = Meter()
    meter(54, 120, "x.checkpoint")
    assert meter.percent() == 45


# --- pager -----------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, home: Path) -> TextIO:
    """A terminal of 20 columns and 6 lines."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 6)))
    return Terminal()


def test_short_answers_are_printed(small: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGER", f"cat > {tmp_path}/paged")
    screen = Screen(small, paging=True)
    screen.write("1\n2\n")
    assert cast(Terminal, small).getvalue() == ""
    screen.write("3\n4\n")
    screen.finish()
    assert cast(Terminal, small).getvalue() == "1\n2\n3\n4\n"
    assert not (tmp_path / "paged").exists()


def test_long_answers_go_through_the_pager(small: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KSHELL_PAGER", f"cat > {tmp_path}/paged")
    monkeypatch.setenv("PAGER", "false")
    screen = Screen(small, paging=True)
    for number in range(9):
        screen.write(f"{number}\n")
    screen.finish()
    assert (tmp_path / "paged").read_text() == "".join(f"{number}\n" for number in range(9))
    assert cast(Terminal, small).getvalue() == ""


def test_a_pager_that_is_left_early_ends_the_answer(small: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "true")
    screen = Screen(small, paging=True)
    with pytest.raises(PagerQuit):
        for number in range(1_000_000):
            screen.write(f"{number}\n")
    screen.finish()


@pytest.mark.parametrize(("secure", "ignored"), [(None, True), ("1", True), ("", False)])
def test_ctrl_z_does_not_stop_kshell_alone_where_less_ignores_it(
    small: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secure: str | None, ignored: bool
) -> None:
    """less and the user's shell would both read the keyboard."""
    less = tmp_path / "less"
    less.write_text('#!/bin/sh\ncat > /dev/null\n[ -z "$LESSSECURE" ] || kill -TSTP $$\necho "went on" > "$0.done"\n')
    less.chmod(0o755)
    monkeypatch.setenv("PAGER", str(less))
    monkeypatch.delenv("LESSSECURE", raising=False)
    if secure is not None:
        monkeypatch.setenv("LESSSECURE", secure)
    before = signal.getsignal(signal.SIGTSTP)
    screen = Screen(small, paging=True)
    screen.write("x\n" * 99)
    assert (signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN) is ignored
    screen.finish()
    assert (tmp_path / "less.done").read_text() == "went on\n"
    assert signal.getsignal(signal.SIGTSTP) is before


def test_ctrl_z_stops_kshell_again_after_a_pager_that_did_not_start(
    small: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setenv("PAGER", "less")
    monkeypatch.delenv("LESSSECURE", raising=False)
    monkeypatch.setattr("kshell.repl.pager.subprocess.Popen", refuse)
    before = signal.getsignal(signal.SIGTSTP)
    screen = Screen(small, paging=True)
    with pytest.raises(OSError, match="Too many"):
        screen.write("x\n" * 99)
    screen.finish()
    assert signal.getsignal(signal.SIGTSTP) is before


def test_slow_answers_are_shown_as_they_come(small: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGER", f"cat > {tmp_path}/paged")
    screen = Screen(small, paging=True)
    screen.write("first\n")
    until = time.monotonic() + 10
    while cast(Terminal, small).getvalue() != "first\n":
        assert time.monotonic() < until
        time.sleep(0.01)
    for number in range(9):
        screen.write(f"{number}\n")
    screen.finish()
    shown = cast(Terminal, small).getvalue() + (tmp_path / "paged").read_text()
    assert shown == "first\n" + "".join(f"{number}\n" for number in range(9))


def test_without_a_program_there_is_a_question(
    small: TextIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", "/no/such/pager")
    answers = iter(["", "q"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    screen = Screen(small, paging=True)
    with pytest.raises(PagerQuit):
        screen.write("".join(f"{number}\n" for number in range(30)))
    screen.finish()
    assert cast(Terminal, small).getvalue() == "".join(f"{number}\n" for number in range(10))


@pytest.mark.parametrize("paging", [True, False])
def test_no_paging_when_not_wanted(small: TextIO, monkeypatch: pytest.MonkeyPatch, paging: bool) -> None:
    monkeypatch.setenv("PAGER", "" if paging else "false")
    screen = Screen(small, paging=paging)
    screen.write("x\n" * 99)
    screen.finish()
    assert cast(Terminal, small).getvalue() == "x\n" * 99


def test_which_pager(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nosuch" else f"/bin/{name}")
    assert pager_command() == "less"
    monkeypatch.setenv("PAGER", "more -d")
    assert pager_command() == "more -d"
    monkeypatch.setenv("KSHELL_PAGER", "LESS=R less")
    assert pager_command() == "LESS=R less"
    for wanted, found in (("nosuch", None), (" ", ""), ("'", None)):
        monkeypatch.setenv("KSHELL_PAGER", wanted)
        assert pager_command() == found


def test_rows_count_wrapped_lines_and_no_colors() -> None:
    assert rows_of("a\nb\n", 10) == 2
    assert rows_of("x" * 20 + "\n", 10) == 2
    assert rows_of("\x1b[1;31m" + "x" * 10 + "\x1b[0m\n", 10) == 1
    assert rows_of("no newline", 80) == 1
    assert rows_of("\u65e5\u672c\u8a9e" * 4, 12) == 2  # twelve characters of two columns each
