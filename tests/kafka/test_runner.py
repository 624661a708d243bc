"""Programs in one process, by a process of ours that says what it was asked to run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.kafka.runner import Ended, Gone, Runners

_SAYS = """
import base64, os, signal, sys
for line in sys.stdin:
    main = base64.b64decode(line.split(" ")[1]).decode()
    if main == "ends":
        sys.exit(0)
    if main == "interrupted":
        os.kill(os.getppid(), signal.SIGUSR1)
    said = base64.b64encode(f"{main} in {os.getpid()}".encode()).decode()
    print("0", said, "", flush=True)
"""


def command() -> list[str]:
    return [sys.executable, "-c", _SAYS]


def not_again() -> NoReturn:
    raise AssertionError("the process is there")


@pytest.fixture
def runners() -> Iterator[Runners]:
    made = Runners()
    yield made
    made.close()


@pytest.fixture
def stopped() -> Iterator[None]:
    """A signal ends what is under way, as a time limit does."""

    def stop(*_: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, stop)
    yield
    signal.signal(signal.SIGUSR1, before)


def said(ended: Ended) -> tuple[str, str]:
    main, _, process = ended.out.partition(" in ")
    assert (ended.code, ended.err) == (0, "") and process
    return main, process


def test_the_process_stays(runners: Runners) -> None:
    _, process = said(runners.run("a", command, "", "one"))
    assert said(runners.run("a", not_again, "", "two")) == ("two", process)


@pytest.mark.usefixtures("stopped")
def test_an_answer_is_that_to_the_question(runners: Runners) -> None:
    _, process = said(runners.run("a", command, "", "one"))
    with pytest.raises(TimeoutError):
        runners.run("a", not_again, "", "interrupted")
    main, other = said(runners.run("a", command, "", "two"))
    assert main == "two" and other != process


def test_a_process_that_ends_is_started_anew(runners: Runners) -> None:
    with pytest.raises(Gone, match="ends"):
        runners.run("a", command, "", "ends")
    assert said(runners.run("a", command, "", "two"))[0] == "two"


def test_few_wait(runners: Runners) -> None:
    processes = {name: said(runners.run(name, command, "", "one"))[1] for name in "abc"}
    with pytest.raises(ProcessLookupError):
        os.kill(int(processes["a"]), 0)
    assert said(runners.run("b", not_again, "", "two"))[1] == processes["b"]
    assert said(runners.run("a", command, "", "two"))[1] != processes["a"]
