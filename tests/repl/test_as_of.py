"""The shell at another point in time: the prompt shows it, and every later line."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from kshell.engine.session import Session
from kshell.repl import run
from kshell.repl.prompt import prompt_text


def shown(session: Session) -> str:
    return "".join(fragment[1] for fragment in prompt_text(session, 0, 80))


@pytest.mark.parametrize("travels", [False, True])
def test_the_prompt_shows_the_point(
    home: Path, session: Session, capsys: pytest.CaptureFixture[str], travels: bool
) -> None:
    if travels:
        session.travels()
    with create_pipe_input() as keys:
        keys.send_text("as-of 160\ncat /image/provenance -o jsonl\nexit\n")
        assert run(session, input=keys, output=DummyOutput()) == 0
    assert '"offset":160' in capsys.readouterr().out.replace(" ", "")
    assert shown(session) == "kshell@160:/> "
    with create_pipe_input() as keys:
        keys.send_text("as-of now\ncat /image/provenance -o jsonl\nexit\n")
        assert run(session, input=keys, output=DummyOutput()) == 0
    assert '"offset":206' in capsys.readouterr().out.replace(" ", "")
    assert shown(session) == "kshell:/> "
