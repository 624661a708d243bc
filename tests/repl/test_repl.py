"""The shell without a terminal: keys come from a pipe, and what is drawn goes nowhere."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from kshell.engine import registry
from kshell.engine.declaration import Command
from kshell.engine.result import Nothing
from kshell.engine.session import Session
from kshell.errors import DataError, DeadlineError
from kshell.repl import run
from kshell.repl.app import Repl, kshellrc
from kshell.repl.history import ShellHistory
from kshell.repl.prompt import RichPrompt
from kshell.sources.directory.source import DirectorySource
from tests.repl.conftest import DEMO

CTRL_C, CTRL_D, CTRL_R, TAB, UP, RIGHT = "\x03", "\x04", "\x12", "\t", "\x1b[A", "\x1b[C"

Type = Callable[..., int]


@pytest.fixture
def type_keys(home: Path, session: Session) -> Iterator[Type]:
    """Types and returns the exit code."""
    with create_pipe_input() as keys:

        def typed(*texts: str, on: Session | None = None) -> int:
            for text in texts:
                keys.send_text(text)
            return run(on or session, input=keys, output=DummyOutput())

        yield typed


def test_a_line_is_run_and_ctrl_d_leaves(type_keys: Type, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys("cd /image/topics\n", "pwd\n", CTRL_D) == 0
    assert capsys.readouterr().out == "/image/topics\n"
    assert session.cwd == ("image", "topics")


def test_exit_has_its_code(type_keys: Type) -> None:
    assert type_keys("exit 7\n", "pwd\n") == 7


def test_the_last_status_is_the_exit_code(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys("cat /image/nosuch\n", CTRL_D) == 2
    assert "no such path" in capsys.readouterr().err
    assert type_keys("cat /image/nosuch\n", "pwd\n", CTRL_D) == 0


def test_ctrl_c_clears_the_line(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys("exit 9", CTRL_C, "pwd\n", CTRL_D) == 0
    assert capsys.readouterr().out == "/\n"
    assert type_keys("exit 9", CTRL_C, CTRL_D) == 130


def test_an_error_proposes_what_is_there(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    type_keys("cat /image/topcis\n", CTRL_D)
    assert "did you mean topics?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("helth", "helth: no such command\ndid you mean health"),
        ("cat '/image", "the quote ' is not closed\n  cat '/image\n      ^"),
        ("| jq", "no command before the pipe"),
        ("ls >", "no file after"),
        ("pwd |", "no program after the pipe"),
        ("ls a\\", "nothing follows the backslash"),
        ("\u202els", "no such command"),
    ],
)
def test_a_line_that_cannot_be_understood_prints_its_error_and_the_next_prompt_is_empty(
    type_keys: Type, capsys: pytest.CaptureFixture[str], line: str, error: str
) -> None:
    assert type_keys(f"{line}\n", "pwd\n", CTRL_D) == 0
    printed = capsys.readouterr()
    assert printed.out == "/\n"
    assert error in printed.err
    assert "\u202e" not in printed.err
    assert type_keys(f"{line}\n", CTRL_D) == 2


def test_the_line_that_failed_is_in_the_history(home: Path, session: Session) -> None:
    steps: list[Step] = [
        ("helth\n", lambda line: not line.text and session.history[-1:] == ["helth"]),
        (UP, lambda line: line.text == "helth"),
        (CTRL_C, lambda line: not line.text),
    ]
    assert drive(session, steps) == 130


Step = tuple[str, Callable[[Buffer], bool]]


def drive(session: Session, steps: list[Step]) -> int:
    """Types each text and waits until the line is as it says; then Enter and Ctrl-D. What helps comes from threads."""
    with create_pipe_input() as keys:
        repl = Repl(session, input=keys, output=DummyOutput())
        assert isinstance(repl._prompt, RichPrompt)
        buffer = repl._prompt._prompt.default_buffer
        late: list[str] = []

        def send() -> None:
            for text, done in steps:
                keys.send_text(text)
                until = time.monotonic() + 10
                while not done(buffer):
                    if time.monotonic() > until:
                        late.append(text)
                        keys.send_text(CTRL_C + CTRL_D)
                        return
                    time.sleep(0.01)
            keys.send_text(CTRL_D)

        sender = threading.Thread(target=send)
        sender.start()
        code = repl.run()
        sender.join()
        assert not late, f"nothing came of {late}"
        return code


def test_tab_completes(home: Path, session: Session) -> None:
    run_it: Step = ("\n", lambda line: session.cwd == ("image",) and not line.text)
    assert drive(session, [("cd /ima" + TAB, lambda line: line.text == "cd /image/"), run_it]) == 0


def test_typing_on_after_tab_means_the_completed_word(
    home: Path, session: Session, type_keys: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    """All in one burst of keys, as a fast typist or a paste has it."""
    session.image  # noqa: B018
    type_keys(f"cd /image/topics/byN{TAB}ord{TAB}\n", "pwd\n", CTRL_D)
    assert capsys.readouterr().out == "/image/topics/byName/orders\n"


def test_right_takes_the_ghost_text(home: Path, session: Session) -> None:
    steps: list[Step] = [
        ("cd /image/topi", lambda line: line.suggestion is not None and line.suggestion.text == "cs/"),
        (RIGHT, lambda line: line.text == "cd /image/topics/"),
        ("\n", lambda line: session.cwd == ("image", "topics") and not line.text),
    ]
    assert drive(session, steps) == 0


def test_ghost_text_comes_from_the_history_first(home: Path, session: Session) -> None:
    (home / ".local/state/kshell").mkdir(parents=True)
    (home / ".local/state/kshell/history").write_text("cat /image/old\ncat /image/new\n")
    steps: list[Step] = [
        ("cat /im", lambda line: line.suggestion is not None and line.suggestion.text == "age/new"),
        (CTRL_C, lambda line: not line.text),
    ]
    assert drive(session, steps) == 130


def test_up_searches_by_prefix_and_ctrl_r_anywhere(
    home: Path, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".local/state/kshell").mkdir(parents=True)
    (home / ".local/state/kshell/history").write_text("cd /image\npwd\ncd /\n")
    steps: list[Step] = [
        # The history comes in from a thread.
        ("pw", lambda line: len(line._working_lines) == 4),
        (UP, lambda line: line.text == "pwd"),
        ("\n", lambda line: not line.text and session.history[-1] == "pwd"),
        (CTRL_R + "imag", lambda line: len(line._working_lines) == 5),
        ("\n", lambda line: not line.text and session.cwd == ("image",)),
    ]
    assert drive(session, steps) == 0
    assert capsys.readouterr().out == "/\n"


def test_several_pasted_lines_run_one_after_another(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys("\x1b[200~cd /image\npwd\n\n# nothing\npwd\x1b[201~", "\n", CTRL_D) == 0
    assert capsys.readouterr().out == "/image\n/image\n"


def test_a_pasted_line_goes_on_where_a_quote_is_open(
    type_keys: Type, home: Path, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "topics --columns name -o csv --where 'partitions > 1\n  and name == orders'"
    assert type_keys(f"\x1b[200~{line}\npwd\x1b[201~", "\n", CTRL_D) == 0
    printed = capsys.readouterr()
    assert printed.out == "name\norders\n/\n"
    assert f"kshell:/> {line}\n" in printed.err
    assert (home / ".local/state/kshell/history").read_text() == line.replace("\n", "\n ") + "\npwd\n"
    assert ShellHistory().lines() == session.history == [line, "pwd"]


def test_a_quote_that_is_never_closed_runs_none_of_the_pasted_lines(
    type_keys: Type, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_keys("\x1b[200~pwd\npwd; cat 'open\nls\npwd\x1b[201~", "\n", CTRL_D) == 2
    printed = capsys.readouterr()
    assert printed.out == "/\n"
    assert printed.err.count("is not closed") == 1
    assert "  pwd; cat 'open\n           ^\nthe quoted text goes on to the end" in printed.err
    assert session.history == ["pwd", "pwd; cat 'open\nls\npwd"]


def test_a_pasted_block_runs_line_by_line_with_each_error_at_its_line(
    type_keys: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_keys("\x1b[200~cd /image\nhelth\ncat nosuch\npwd\x1b[201~", "\n", CTRL_D) == 0
    printed = capsys.readouterr()
    assert printed.out == "/image\n"
    order = ["kshell:/> cd /image", "kshell:/image> helth", "helth: no such command", "did you mean health?",
             "kshell:/image> cat nosuch", "nosuch: no such path", "kshell:/image> pwd"]  # fmt: skip
    places = [printed.err.index(part) for part in order]
    assert places == sorted(places)


def test_a_single_line_is_not_shown_again(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    type_keys("pwd\n", CTRL_D)
    assert "kshell:/>" not in capsys.readouterr().err


# --- history ---------------------------------------------------------------------------------------------------------


def test_the_history_is_private_and_kept(type_keys: Type, home: Path, session: Session) -> None:
    assert type_keys("pwd\n", " ls /\n", "pwd\n", "ls /local\n", CTRL_D) == 0
    path = home / ".local" / "state" / "kshell" / "history"
    assert path.read_text() == "pwd\nls /local\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again = Session(DirectorySource(DEMO))
    assert type_keys(CTRL_D, on=again) == 0
    assert again.history == ["pwd", "ls /local"]


def test_a_history_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("pwd\n")
    (tmp_path / "history").chmod(0o644)
    assert ShellHistory(str(tmp_path)).lines() == ["pwd"]
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o600


QUERY = 'sql -o csv "SELECT count(*) AS n FROM partitions -- all\n\n  WHERE leader = 1"'


def test_a_recalled_query_of_several_lines_is_the_same_query(
    home: Path, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    ShellHistory().append_string(QUERY)
    steps: list[Step] = [
        ("sql", lambda line: len(line._working_lines) == 2),
        (UP, lambda line: line.text == QUERY),
        ("\n", lambda line: not line.text and session.history[-1] == QUERY),
        (CTRL_R + "leader", lambda line: True),
        ("\n", lambda line: not line.text and len(session.history) == 3),
    ]
    assert drive(session, steps) == 0
    assert capsys.readouterr().out == "n\n22\nn\n22\n"
    assert ShellHistory().lines() == [QUERY]


def test_up_leaves_a_query_of_several_lines(home: Path, session: Session) -> None:
    for entry in ("pwd", QUERY):
        ShellHistory().append_string(entry)
    steps: list[Step] = [
        ("", lambda line: len(line._working_lines) == 3),
        (UP, lambda line: line.text == QUERY),
        (UP + UP + UP, lambda line: line.text == "pwd"),
        (CTRL_C, lambda line: not line.text),
    ]
    assert drive(session, steps) == 130


def test_the_history_shows_queries_as_they_can_be_pasted(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys(f"\x1b[200~{QUERY}\x1b[201~", "\n", "history\n", "history -o json\n", CTRL_D) == 0
    out = capsys.readouterr().out
    assert f"    1  {QUERY}\n    2  history\n" in out
    assert json.dumps(QUERY) in out


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("pwd\nls /\n", ["pwd", "ls /"]),  # the file of an older version
        ("sql 'a\n b\n \n  c'\npwd\n", ["sql 'a\nb\n\n c'", "pwd"]),
        (" WHERE cut = 'off'\n'\npwd\n", ["'", "pwd"]),
        ("\npwd\n\n", ["pwd"]),
        ("", []),
    ],
)
def test_files_of_the_history(tmp_path: Path, text: str, entries: list[str]) -> None:
    (tmp_path / "history").write_text(text)
    assert ShellHistory(str(tmp_path)).lines() == entries


def test_lines_behind_a_quote_that_is_never_closed_are_not_stored(tmp_path: Path) -> None:
    ShellHistory(str(tmp_path)).append_string("pwd\nls 'oops\n  a private line\nmore")
    assert ShellHistory(str(tmp_path)).lines() == ["pwd", "ls 'oops"]


def test_the_oldest_entries_are_left_out_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.repl.history._MOST_ENTRIES", 2)
    for entry in ("cat 'a\nb'", "cat 'c\nd'", "pwd"):
        ShellHistory(str(tmp_path)).append_string(entry)
    assert ShellHistory(str(tmp_path)).lines() == ["cat 'c\nd'", "pwd"]


def test_history_elsewhere_and_nowhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert ShellHistory().path == str(tmp_path / "state" / "kshell" / "history")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    history = ShellHistory()
    assert history.path is None
    history.append_string("pwd")
    assert history.get_strings() == ["pwd"]
    with create_pipe_input() as keys:
        keys.send_text("pwd\n" + CTRL_D)
        assert run(session, input=keys, output=DummyOutput()) == 0
    assert "the history is not kept" in capsys.readouterr().err
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert ShellHistory().note == "the history is not kept: there is no home directory"
    assert kshellrc() is None


def test_odd_bytes_survive_in_the_history(tmp_path: Path) -> None:
    line = "cat '\udcff\u2028\x85'"
    ShellHistory(str(tmp_path)).append_string(line)
    assert ShellHistory(str(tmp_path)).lines() == [line]


# --- start -----------------------------------------------------------------------------------------------------------


def test_kshellrc_is_sourced(type_keys: Type, home: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".config" / "kshell").mkdir(parents=True)
    (home / ".config" / "kshell" / "kshellrc").write_text("alias top 'cd /image/topics'\nset output json\n")
    assert type_keys("top\n", "pwd\n", CTRL_D) == 0
    assert capsys.readouterr().out == '"/image/topics"\n'


def test_a_broken_kshellrc_does_not_keep_anybody_out(
    type_keys: Type, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config" / "kshell").mkdir(parents=True)
    (home / ".config" / "kshell" / "kshellrc").write_text("nosuch\n")
    assert type_keys("pwd\n", CTRL_D) == 0
    said = capsys.readouterr()
    assert "kshellrc: line 1: nosuch: no such command" in said.err
    assert said.out == "/\n"


class Broken(DirectorySource):
    """A source that cannot be loaded."""

    def load(self, **_: Any) -> Any:
        raise DataError("the data is gone", hint="find it")


class Slow(DirectorySource):
    """A source that takes a while."""

    def load(self, **options: Any) -> Any:
        time.sleep(1)
        return super().load(**options)


def test_a_source_that_cannot_be_loaded_is_told(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert type_keys("pwd\n", "ls /image\n", CTRL_D, on=Session(Broken(DEMO))) == 4
    said = capsys.readouterr()
    assert said.err.count("the data is gone") == 2
    assert said.out == "/\n"


def test_the_first_command_waits_for_loading(type_keys: Type, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    assert type_keys("ls /image/features -o json\n", CTRL_D, on=Session(Slow(DEMO))) == 0
    assert "metadataVersion" in capsys.readouterr().out
    assert 0.9 < time.monotonic() - begin < 5


def test_ctrl_c_while_waiting_leaves_loading_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun: list[threading.Thread] = []

    class Counting(Slow):
        def load(self, **options: Any) -> Any:
            begun.append(threading.current_thread())
            threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)).start()
            return super().load(**options)

    session = Session(Counting(DEMO))
    with create_pipe_input() as keys:
        keys.send_text("ls /image\n" + "ls /local\n" + CTRL_D)
        assert run(session, input=keys, output=DummyOutput()) == 0
    said = capsys.readouterr()
    assert "interrupted" in said.err
    assert said.out.split() == ["commitId", "version"]
    assert len(begun) == 1


# --- commands that misbehave -----------------------------------------------------------------------------------------


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Makes a command ``probe`` of a function."""
    known, get = registry.names(), registry.get

    def install(action: Callable[[], None]) -> None:
        def run(session: Session, args: Any) -> Nothing:
            action()
            return Nothing()

        command = Command(name="probe", summary="for tests", run=run, needs_source=False)
        monkeypatch.setattr(registry, "names", lambda: (*known, "probe"))
        monkeypatch.setattr(registry, "get", lambda name: command if name == "probe" else get(name))

    return install


def test_ctrl_c_during_a_command(
    type_keys: Type, probe: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    probe(interrupted)
    assert type_keys("probe\n", CTRL_D) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_fault_of_ours_does_not_end_the_shell(
    type_keys: Type, probe: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("hidden-text")

    probe(broken)
    assert type_keys("probe\n", "pwd\n", CTRL_D) == 0
    said = capsys.readouterr()
    assert "ZeroDivisionError at test_repl.py:" in said.err
    assert "please report" in said.err
    assert "hidden-text" not in said.err, "the text of an exception may quote a value"
    assert said.out == "/\n"


def test_a_timeout_ends_a_command(
    type_keys: Type, probe: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    probe(lambda: time.sleep(10))
    begin = time.monotonic()
    assert type_keys("probe --timeout 0.2\n", CTRL_D) == DeadlineError.exit_code
    assert time.monotonic() - begin < 5
    assert "gave up after 0.2 s" in capsys.readouterr().err


# --- plain terminals -------------------------------------------------------------------------------------------------


@contextmanager
def standard_input(text: str) -> Iterator[None]:
    kept, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = kept


def test_a_dumb_terminal_gets_plain_text(
    home: Path, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with standard_input("cd /image\npwd\nnosuch\n"):
        assert run(session) == 2
    said = capsys.readouterr()
    assert said.out == "kshell:/> kshell:/image> /image\nkshell:/image> kshell:/image> \n"
    assert "\x1b" not in said.out + said.err
    assert ShellHistory().lines() == ["cd /image", "pwd", "nosuch"]


def test_a_dumb_terminal_asks_on_while_a_quote_is_open(
    home: Path, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with standard_input(f"{QUERY}\npwd\ncat 'open\npwd\n"):
        assert run(session) == 2
    said = capsys.readouterr()
    assert said.out == "kshell:/> > > n\n22\nkshell:/> /\nkshell:/> > > \nkshell:/> \n"
    assert said.err.count("is not closed") == 1
    assert ShellHistory().lines() == [QUERY, "pwd", "cat 'open"]


def test_ctrl_c_leaves_an_open_quote(
    home: Path, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Iterator[str | BaseException] = iter(["cat 'open", KeyboardInterrupt(), "pwd", EOFError()])

    def read(prompt: str) -> str:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("builtins.input", read)
    assert run(session) == 0
    said = capsys.readouterr()
    assert said.out == "\n/\n\n" and "is not closed" not in said.err
    assert ShellHistory().lines() == ["pwd"]
