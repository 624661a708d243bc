"""Where answers go: standard output, files, programs; and how errors are told."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.engine.result import Column, Row, Rows, Text
from kshell.errors import CommandError, CorruptDataError, DataError, DeadlineError, UsageError
from kshell.render.output import describe_error, emit

SAMPLE = Text("é\nb")


def many(count: int = 100_000, *, fails_at: int | None = None) -> Rows:
    def rows() -> Iterator[Row]:
        for number in range(count):
            if number == fails_at:
                raise DataError("damaged")
            yield {"n": number}

    return Rows((Column("n"),), rows())


def python(code: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    prelude = "from tests.render.test_output import *\nfrom kshell.render.output import *\n"
    run = [sys.executable, "-c", prelude + code]
    return subprocess.run(run, capture_output=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


# --- standard output -------------------------------------------------------------------------------------------------


def test_stdout() -> None:
    out = io.StringIO()
    assert emit(SAMPLE, "text", stdout=out) == 0
    assert out.getvalue() == "é\nb\n"


def test_stdout_is_utf_8_whatever_the_locale() -> None:
    done = python("emit(SAMPLE, 'text')", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stdout) == (0, "é\nb\n".encode())


def test_a_closed_pipe_is_quiet() -> None:
    code = "try: emit(many(), 'csv')\nexcept OutputClosed: sys.exit(7)"
    command = f'{{ {sys.executable} -c "$0"; echo $? >&2; }} | head -1'
    prelude = "from tests.render.test_output import *\nfrom kshell.render.output import *\n"
    done = subprocess.run(["sh", "-c", command, prelude + code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("n\n", "7\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_error() -> None:
    with open("/dev/full", "w") as full, pytest.raises(CommandError, match="standard output: No space left on device"):
        try:
            emit(SAMPLE, "text", stdout=full)
        finally:
            os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


def test_errors_of_the_rows_come_through_after_what_was_made() -> None:
    out = io.StringIO()
    with pytest.raises(DataError, match="damaged"):
        emit(many(fails_at=2), "csv", stdout=out)
    assert out.getvalue() == "n\n0\n1\n"


class Counted(io.StringIO):
    """A stream that remembers what each write gave it."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        self.pieces += [text] * bool(text)
        return super().write(text)


def test_many_lines_are_written_together() -> None:
    """Without Python's buffer (PYTHONUNBUFFERED, usual in containers) each write is a system call."""
    out = Counted()
    emit(many(20_000), "csv", stdout=out)
    assert out.getvalue().split() == ["n", *map(str, range(20_000))]
    assert len(out.pieces) < 20
    assert max(map(len, out.pieces)) < 40_000


def test_a_terminal_gets_each_line_at_once() -> None:
    out = Counted(terminal=True)
    emit(many(3), "csv", stdout=out)
    assert out.pieces == ["n\n", "0\n", "1\n", "2\n"]


def test_a_line_that_comes_late_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("kshell.render.output.time.monotonic", lambda: clock[0])
    out = Counted()

    def rows() -> Iterator[Row]:
        for number in range(6):
            clock[0] += 1.0 if number in (2, 4) else 0.01
            yield {"n": number}

    emit(Rows((Column("n"),), rows()), "csv", stdout=out)
    assert out.pieces == ["n\n", "0\n1\n2\n", "3\n4\n", "5\n"]


@pytest.mark.parametrize("error", [DataError("damaged"), KeyboardInterrupt(), DeadlineError("over")])
def test_what_was_made_before_an_error_is_written(error: BaseException) -> None:
    out = Counted()

    def rows() -> Iterator[Row]:
        yield from ({"n": number} for number in range(3))
        raise error

    with pytest.raises(type(error)):
        emit(Rows((Column("n"),), rows()), "csv", stdout=out)
    assert out.getvalue() == "n\n0\n1\n2\n"


# --- files -----------------------------------------------------------------------------------------------------------


def test_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    old = os.umask(0o027)
    try:
        emit(SAMPLE, "text", target=str(target), color=True, width=10)
    finally:
        os.umask(old)
    assert target.read_bytes() == "é\nb\n".encode()
    assert target.stat().st_mode & 0o777 == 0o640
    emit(Text("c"), "text", target=str(target), append=True)
    assert target.read_bytes() == "é\nb\nc\n".encode()
    emit(Text("d"), "text", target=str(target))
    assert target.read_text() == "d\n"


def test_file_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    emit(Text("a"), "text", target="~/out")
    assert (tmp_path / "out").read_text() == "a\n"


@pytest.mark.parametrize(
    ("target", "reason"),
    [("absent/out", "No such file or directory"), (".", "Is a directory"), ("a\0b", "no file can have that name")],
)
def test_file_that_cannot_be_written(tmp_path: Path, target: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        emit(SAMPLE, "text", target=f"{tmp_path}/{target}")


def test_a_command_that_fails_at_once_leaves_the_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("kept")
    with pytest.raises(DataError):
        emit(many(fails_at=0), "jsonl", target=str(target))
    assert target.read_text() == "kept"


@pytest.mark.parametrize(
    "target", ["data/out", "data/below/out", "data/../data/out", "link/out", "file-link", "new-link"]
)
def test_nothing_is_written_beside_the_data(tmp_path: Path, target: str) -> None:
    data = tmp_path / "data"
    (data / "below").mkdir(parents=True)
    (data / "there").touch()
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "file-link").symlink_to(data / "there")
    (tmp_path / "new-link").symlink_to(data / "absent")
    with pytest.raises(CommandError, match="the source's own directory"):
        emit(SAMPLE, "text", target=f"{tmp_path}/{target}", forbidden=[str(tmp_path / "link")])
    assert sorted(path.name for path in data.rglob("*")) == ["below", "there"]
    emit(SAMPLE, "text", target=f"{tmp_path}/data-too", forbidden=[str(data)])


@pytest.mark.parametrize("target", ["__cluster_metadata-0/x.log", "meta.properties", "out", "link/out", "orders-0/out"])
def test_nothing_is_written_into_a_directory_of_kafkas_whoever_reads_it(tmp_path: Path, target: str) -> None:
    data = tmp_path / "data"
    for name in ("__cluster_metadata-0", "orders-0"):
        (data / name).mkdir(parents=True)
    (data / "meta.properties").write_text("node.id=1\n")
    (data / "link").symlink_to(data / "__cluster_metadata-0")
    with pytest.raises(CommandError, match="in a directory of Kafka's"):
        emit(SAMPLE, "text", target=str(data / target))
    assert [path.name for path in data.rglob("*") if path.is_file()] == ["meta.properties"]
    assert (data / "meta.properties").read_text() == "node.id=1\n"


# --- programs --------------------------------------------------------------------------------------------------------


def test_program(capfd: pytest.CaptureFixture[str]) -> None:
    assert emit(SAMPLE, "text", program="tr b c", stdout=sys.stdout) == 0
    assert capfd.readouterr().out == "é\nc\n"


def test_program_without_a_real_standard_output() -> None:
    out = io.StringIO()
    assert emit(many(), "csv", program="tail -1 | sed s/9/x/g", stdout=out) == 0
    assert out.getvalue() == "xxxxx\n"


def test_program_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert emit(SAMPLE, "text", program="exit 3") == 2
    assert emit(SAMPLE, "text", program="no-such-program") == 2
    assert "not found" in capfd.readouterr().err


def test_program_that_ends_early() -> None:
    out = io.StringIO()
    assert emit(many(), "csv", program="head -2", stdout=out) == 0
    assert out.getvalue() == "n\n0\n"


def test_program_gets_what_was_made_before_an_error() -> None:
    out = io.StringIO()
    with pytest.raises(DataError):
        emit(many(fails_at=1), "csv", program="cat", stdout=out)
    assert out.getvalue() == "n\n0\n"


# --- errors ----------------------------------------------------------------------------------------------------------


def test_describe_error() -> None:
    error = UsageError("the quote ' is not closed", column=5, hint="close it")
    assert describe_error(error, line="cat\x1b 'x") == (
        "the quote ' is not closed\n  cat\\x1b 'x\n          ^\nclose it"
    )
    assert describe_error(error) == "the quote ' is not closed\nclose it"
    assert describe_error(error, line=" ") == describe_error(error), "no caret below nothing"
    assert describe_error(CorruptDataError("a\nb", 7, "bad CRC"), line="x") == "a\\nb: byte 7: bad CRC"
    assert describe_error(CommandError("a"), color=True) == "\x1b[1;31ma\x1b[0m"
