"""Rows that come when something happens: each arrives at once, in every format, and whatever ends them ends cleanly."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kshell.engine import formats
from kshell.engine.execution import deadline
from kshell.engine.result import Column, Row, Rows
from kshell.errors import DeadlineError, SourceError
from kshell.render import render
from kshell.render.output import OutputClosed, emit

FORMATS = tuple(formats.FORMATS)
BREAK = 60.0
"""Seconds that no test waits: after the rows that are there, no more come."""


def live(count: int = 2, *, then: Callable[[], None] = lambda: time.sleep(BREAK), **options: Any) -> Rows:
    def rows() -> Iterator[Row]:
        for number in range(count):
            yield {"n": number, "line": f"row {number}"}
        then()

    return Rows((Column("n"), Column("line")), rows(), live=True, **options)


def interrupt() -> None:
    raise KeyboardInterrupt


def python(code: str, **options: Any) -> subprocess.Popen[bytes]:
    prelude = "from tests.render.test_live import *\n"
    return subprocess.Popen([sys.executable, "-c", prelude + code], stdout=subprocess.PIPE, **options)


def read(stream: Any, words: bytes) -> bytes:
    """What comes through a pipe until the words are there."""
    found = b""
    end = time.monotonic() + BREAK / 2
    while words not in found:
        assert time.monotonic() < end, found
        got = os.read(stream.fileno(), 65536)
        assert got, found
        found += got
    return found


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("style", ["table", "lines"])
def test_every_row_is_made_before_the_next_is_asked_for(fmt: str, style: str) -> None:
    asked: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(5):
            asked.append(number)
            yield {"n": f"row {number}"}

    result = Rows((Column("n"),), rows(), style=style, line_column="n", live=True)
    printed = ""
    for chunk in render(result, fmt):
        printed += chunk
        assert chunk.endswith("\n")
        assert all(f"row {number}" in printed for number in asked[:-1])
        if f"row {asked[-1] if asked else 0}" in chunk:
            assert len(asked) == printed.count("row ")
    assert len(asked) == 5


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("where", ["pipe", "file", "program"])
def test_rows_arrive_while_more_are_waited_for(fmt: str, where: str, tmp_path: Path) -> None:
    options = {"pipe": "", "file": f", target={str(tmp_path / 'out')!r}", "program": ", program='exec cat -u'"}[where]
    process = python(f"emit(live(style='lines', line_column='line'), {fmt!r}{options})")
    last = b"row 1"
    try:
        if where == "file":
            end = time.monotonic() + BREAK / 2
            while not (tmp_path / "out").exists() or last not in (tmp_path / "out").read_bytes():
                assert time.monotonic() < end
                time.sleep(0.02)
        else:
            assert b"row 0" in read(process.stdout, last)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


@pytest.mark.parametrize("ended", [interrupt, lambda: (_ for _ in ()).throw(SourceError("away"))])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_is_an_array_however_it_ends(ended: Callable[[], None], count: int) -> None:
    out = io.StringIO()
    with pytest.raises((KeyboardInterrupt, SourceError)):
        emit(live(count, then=ended), "json", stdout=out)
    assert [row["n"] for row in json.loads(out.getvalue())] == list(range(count))
    out = io.StringIO()
    emit(live(count, then=lambda: None), "json", stdout=out)
    assert [row["n"] for row in json.loads(out.getvalue())] == list(range(count))


def test_json_is_an_array_when_writing_is_interrupted() -> None:
    class Interrupted(io.StringIO):
        def flush(self) -> None:
            if self.getvalue().count("row") == 2 and not self.getvalue().endswith("]\n"):
                raise KeyboardInterrupt

    out = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        emit(live(9), "json", stdout=out)
    assert len(json.loads(out.getvalue())) == 2


def test_json_after_ctrl_c_and_after_a_deadline(tmp_path: Path) -> None:
    process = python("emit(live(), 'json')", stderr=subprocess.DEVNULL)
    begin = read(process.stdout, b"row 1")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert len(json.loads(begin + rest)) == 2
    with pytest.raises(DeadlineError), deadline(0.3):
        emit(live(), "json", target=str(tmp_path / "out"))
    assert len(json.loads((tmp_path / "out").read_text())) == 2


def test_a_program_says_its_last_words_after_a_deadline(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DeadlineError), deadline(0.3):
        emit(live(), "jsonl", program="wc -l")
    assert capfd.readouterr().out.strip() == "2"


def test_yaml_and_csv_are_whole() -> None:
    rows = live(3, then=lambda: None)
    assert [row["n"] for row in yaml.safe_load("".join(render(rows, "yaml")))] == [0, 1, 2]
    assert "".join(render(live(2, then=lambda: None), "csv")) == "n,line\n0,row 0\n1,row 1\n"


def test_a_reader_that_leaves_ends_it_though_no_row_comes() -> None:
    process = python("try: emit(live(), 'jsonl')\nexcept OutputClosed: sys.exit(7)")
    read(process.stdout, b"row 1")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(BREAK / 2) == 7


def test_a_program_that_has_enough_ends_it_though_no_row_comes() -> None:
    begun = time.monotonic()
    out = io.StringIO()
    assert emit(live(), "jsonl", program="head -1", stdout=out) == 0
    assert json.loads(out.getvalue())["n"] == 0
    assert time.monotonic() - begun < BREAK / 2


def test_nothing_is_left_behind() -> None:
    before = (signal.getsignal(signal.SIGPIPE), threading.active_count(), len(os.listdir("/dev/fd")))
    for _ in range(5):
        emit(live(), "jsonl", program="head -1", stdout=io.StringIO())
        with pytest.raises(DeadlineError), deadline(0.05):
            emit(live(), "jsonl", program="cat", stdout=io.StringIO())
    assert (signal.getsignal(signal.SIGPIPE), threading.active_count(), len(os.listdir("/dev/fd"))) == before


def test_outside_the_main_thread_nothing_is_watched() -> None:
    out = io.StringIO()
    thread = threading.Thread(target=lambda: emit(live(2, then=lambda: None), "jsonl", program="cat", stdout=out))
    thread.start()
    thread.join()
    assert out.getvalue().count("row") == 2


def test_output_closed_is_no_operating_system_error() -> None:
    """What makes the rows may take any OSError for one of its own connections."""
    assert not issubclass(OutputClosed, OSError)
