"""One-shot answers: what is longer than the terminal ends with what matters, because its end is what is seen."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kshell.engine.execution import prepare
from kshell.engine.session import Session
from kshell.render.answer import answer
from kshell.sources.choose import demo_directory
from tests.commands.shell import opened


@pytest.fixture(scope="module")
def sample() -> Session:
    return opened(Path(demo_directory()))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(session: Session, line: str, out: io.StringIO) -> list[str]:
    call = prepare(session, f"{line} --color never")
    assert call is not None
    answer(call, lambda error: None, stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("line", ["why legacy-import-0", "health", "what-if --kill 2"])
def test_what_matters_stands_above_the_prompt_of_a_low_terminal(
    monkeypatch: pytest.MonkeyPatch, sample: Session, line: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "200")
    whole = shown(sample, line, Terminal())
    monkeypatch.setenv("LINES", "24")
    reversed_lines = shown(sample, line, Terminal())
    assert sorted(whole) == sorted(reversed_lines) and len(whole) > 24
    first_section = whole[: whole.index("")]
    assert reversed_lines[-len(first_section) :] == first_section


def test_files_pipes_and_tables_begin_as_they_are(monkeypatch: pytest.MonkeyPatch, sample: Session) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "10")
    assert shown(sample, "why legacy-import-0", io.StringIO())[0] == "legacy-import-0"
    assert shown(sample, "partitions", Terminal())[0].startswith("topic")
    assert shown(sample, "why legacy-import-0 -o json", Terminal())[0] == "{"
