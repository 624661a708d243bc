"""One-shot runs in a row: every one must be right. (Kafka's own shell races with its loading and is not.)"""

from __future__ import annotations

import os

import pytest

from tests.test_cli import FIXTURE, run

RUNS = int(os.environ.get("KSHELL_SOAK_COUNT", "200"))


@pytest.mark.soak
def test_every_one_shot_run_is_right() -> None:
    words = ["-d", str(FIXTURE), "cat", "/image/topics/byName/orders-s10/0", "-o", "jsonl"]
    first = run(*words)
    assert first.returncode == 0 and '"leader":' in first.stdout
    right = sum((done.returncode, done.stdout) == (0, first.stdout) for done in (run(*words) for _ in range(RUNS)))
    print(f"{right} right answers of {RUNS}")
    assert right == RUNS
