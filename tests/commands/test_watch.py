"""``watch``: when it runs again, when it ends, and what it gives."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.completion import complete
from kshell.engine.execution import prepare, prepare_words
from kshell.engine.result import Frames, Rows
from kshell.engine.session import Session
from kshell.errors import CommandError, DeadlineError, KshellError, NoSuchPathError, SourceError, UsageError
from kshell.render.answer import answer
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.commands.shell import opened, run

LAST = "00000000000000000158.log"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sample's directory, to be changed."""
    return Path(shutil.copytree(Path(demo_directory(), METADATA_DIRECTORY), tmp_path / METADATA_DIRECTORY))


def frames(session: Session, line: str) -> Frames:
    result = run(session, line)
    assert isinstance(result, Frames)
    return result


def printed(session: Session, line: str) -> tuple[int, str, list[KshellError]]:
    """(exit code, what is printed at a pipe, the errors told) of a line."""
    told: list[KshellError] = []
    out = io.StringIO()
    call = prepare(session, line)
    assert call is not None
    return answer(call, told.append, stdout=out), out.getvalue(), told


def test_runs_so_many_times(sample: Session) -> None:
    begun = time.monotonic()
    parts = list(frames(sample, "watch -n 0.1 --times 3 pwd").parts)
    assert len(parts) == 3
    assert 0.2 <= time.monotonic() - begun < 2


def test_the_line_keeps_its_options_and_patterns(sample: Session) -> None:
    part = next(iter(frames(sample, "watch --times 1 ls -1 '/image/topics/byName/o*' -o json").parts))
    assert isinstance(part.error, NoSuchPathError)  # quoted, it is a name
    part = next(iter(frames(sample, "watch --times 1 ls -l /image/topics/byName/or* -o json").parts))
    assert part.call is not None
    assert part.call.shape.output == "json"
    assert isinstance(part.result, Rows)
    assert [row["name"] for row in part.result][:2] == ["0", "1"]
    assert prepare_words(sample, ["watch", "--times", "1", "ls", "-l"]).arguments.times == 1


def test_only_answers_that_differ_are_printed(sample: Session) -> None:
    assert printed(sample, "watch -n 0.1 --times 3 ls /image -o jsonl")[1].count('"topics"') == 1


def test_a_directory_that_changes_is_read_again(copy: Path) -> None:
    whole = (copy / LAST).read_bytes()
    (copy / LAST).write_bytes(b"")
    session = opened(copy)
    parts = iter(frames(session, "watch -n 30 --times 3 cat /image/provenance").parts)

    def offset() -> Any:
        result: Any = next(parts).result
        return result.value["offset"]

    before = offset()
    (copy / LAST).write_bytes(whole)
    begun = time.monotonic()
    assert offset() > before
    assert time.monotonic() - begun < 5


def test_a_session_that_refreshes_itself_is_asked(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(Session, "refresh", lambda self: next(answers), raising=False)
    begun = time.monotonic()
    assert len(list(frames(sample, "watch -n 30 --times 2 pwd").parts)) == 2
    assert time.monotonic() - begun < 5
    assert next(answers, None) is None


def test_a_source_that_is_away_is_told_and_asked_again(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: Session) -> bool:
        raise SourceError("nobody answers")

    monkeypatch.setattr(Session, "refresh", away, raising=False)
    code, text, told = printed(sample, "watch -n 0.1 --times 3 pwd")
    assert (code, text) == (0, "/\n")
    assert [error.message for error in told] == ["nobody answers"] * 2


def test_header_only_once_in_csv(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "refresh", move, raising=False)
    assert printed(sample, "watch --times 2 ls -o csv")[1].splitlines()[:2] == ["name,type", "image,directory"]
    assert printed(sample, "watch --times 3 ls -o csv")[1].count("name,type") == 1


def move(session: Session) -> bool:
    """Another working directory is another answer."""
    session.cwd = ("image",) if session.cwd == () else ()
    return True


def test_answers_in_a_stream(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "refresh", move, raising=False)
    assert printed(sample, "watch --times 3 pwd") == (0, "/\n\n/image\n\n/\n", [])
    assert printed(sample, "watch --times 2 pwd -o jsonl")[1] == '"/"\n"/image"\n'
    assert printed(sample, "watch -o yaml --times 2 pwd")[1] == "/image\n---\n/\n"


def test_to_a_file(sample: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Session, "refresh", move, raising=False)
    assert printed(sample, f"watch --times 2 pwd -o jsonl > {tmp_path}/out") == (0, "", [])
    assert (tmp_path / "out").read_text() == '"/"\n"/image"\n'
    assert printed(sample, "watch --times 2 pwd | tr -d /")[1] == "image\n\n\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--until 'leader == 1' cat /image/topics/byName/orders/0", 0),
        ("--until 'leader == 7' cat /image/topics/byName/orders/0", 1),
        ("--until \"value == '4.3-IV0' or value ~ IV0\" cat /image/features/metadataVersion", 0),
        ("--until 'name == orders' ls /image/topics/byName", 0),
        ("--until 'name == nothing' ls /image/topics/byName", 1),
        ("--until 'any(voters, true)' info", None),
        ("--until 'byName.orders.0.leader == 1' cat /image/topics", 0),
        ("--until 'text ~ /' pwd", 0),
        ("grep RECOVERING /image/topics", 1),
        ("grep -l User:alice /image/acls", 0),
        ("ls /image/nothing", 2),
    ],
)
def test_exit_codes(sample: Session, line: str, code: int | None) -> None:
    if code is None:
        with pytest.raises(UsageError):
            printed(sample, f"watch --times 1 {line}")
    else:
        assert printed(sample, f"watch --times 1 {line}")[0] == code


def test_until_ends_it(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "refresh", move, raising=False)
    assert printed(sample, "watch -n 30 --until 'name == topics' ls -1")[0] == 0
    assert sample.cwd == ("image",)


def test_a_path_that_comes_later_can_be_waited_for(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "refresh", move, raising=False)
    code, text, told = printed(sample, "watch --until 'any(it.byName.orders.0.isr, it == 1)' cat topics -o jsonl")
    assert code == 0
    assert text.startswith("{")
    assert [type(error) for error in told] == [NoSuchPathError]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("watch", "COMMAND is missing"),
        ("watch nonsense", "no such command"),
        ("watch ls --nonsense", "there is no option"),
        ("watch cd /", "no answer"),
        ("watch watch ls", "no answer"),
        ("watch --times 0 ls", "not a number of 1"),
        ("watch -n x ls", "positive number"),
        ("watch --until 'a ==' ls", "value is missing"),
        ("watch --until 'nam == x' ls", "no field nam"),
        ("watch --until 'name > 3' ls", "cannot be compared"),
    ],
)
def test_refused(sample: Session, line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        printed(sample, line)


def test_a_source_that_cannot_be_read_at_all_ends_it() -> None:
    class Away(Session):
        @property
        def image(self) -> Any:
            raise SourceError("nobody answers")

    with pytest.raises(SourceError):
        printed(Away(opened(demo_directory()).source), "watch cat /image")


def test_timeout_of_the_watched_line(sample: Session) -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineError) as raised:
        list(frames(sample, "watch -n 0.1 pwd --timeout 0.3").parts)
    assert isinstance(raised.value, CommandError)
    assert raised.value.exit_code == 3
    assert time.monotonic() - begun < 3


def test_completion(sample: Session) -> None:
    def offered(line: str) -> set[str]:
        return {one.text.strip() for one in complete(sample, line).candidates}

    assert sample.image
    assert {"ls", "cat"} <= offered("watch ")
    assert "--until" in offered("watch --u")
    assert "--values" in offered("watch find --v")
    assert "--until" not in offered("watch find --")
    assert offered("watch -n 1 cat /image/topics/byName/ord") == {"orders/"}
    assert offered("watch ls -o js") == {"json", "jsonl"}


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """A watch without an end must not hang the tests."""
    from kshell.engine.execution import deadline

    with deadline(30):
        yield
