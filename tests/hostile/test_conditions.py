"""Any command under bad conditions: no traceback, a right exit code, no hang; and two hundred at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.hostile.measured import ROOT

_ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def _run(first: int, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.conditions", str(first), str(count)],
        capture_output=True,
        cwd=ROOT,
        env=_ENVIRONMENT,
        text=True,
        timeout=1_500,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{count}\n"), done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.slow
def test_some_commands_under_some_conditions() -> None:
    _run(0, 40)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(2_000)
@pytest.mark.parametrize("first", range(0, 2_000, 200))
def test_commands_under_conditions(first: int) -> None:
    _run(first, 200)


@pytest.mark.soak
@pytest.mark.long
def test_two_hundred_processes_at_once_give_one_answer() -> None:
    words = [sys.executable, "-P", "-m", "kshell", "--demo", "topics", "-o", "jsonl"]
    started = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_ENVIRONMENT) for _ in range(200)
    ]
    answers = [(*process.communicate(timeout=300), process.returncode) for process in started]
    assert len(set(answers)) == 1 and answers[0][2] == 0 and answers[0][0], set(answers)
