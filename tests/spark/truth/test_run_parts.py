"""Batches inside runs: what a run says of its last batch makes it quicker to find, and never another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.protocol.batches import read_header
from kshell.spark.files.plan import Run
from kshell.spark.files.scan import find
from kshell.spark.truth import run_parts
from kshell.spark.truth.copy_log import plan
from kshell.spark.truth.run_parts import At, at_byte, batches, last_of
from tests.builders import FIXTURES

NODE = FIXTURES / "4.2.1-rolled/controller-3002"


def planned() -> tuple[str, Run]:
    """The longest run of a recorded log."""
    [found] = find([str(NODE)])
    runs = [(file.path, run) for file in plan(found, None, None, 1 << 20) for run in file.runs]
    return max(runs, key=lambda one: one[1].end - one[1].start)


def test_a_plan_says_where_the_last_batch_begins() -> None:
    path, run = planned()
    raw = Path(path).read_bytes()
    assert run.last > run.start
    assert run.last + read_header(raw, run.last).size == run.end


def test_that_is_all_that_is_read_to_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = planned()
    expected = last_of(path, run._replace(last=-1))
    monkeypatch.delattr(run_parts, "_first")
    assert last_of(path, run) == at_byte(path, run, run.last) == at_byte(path, run, run.end - 1) == expected


def test_a_hint_that_is_wrong_is_none() -> None:
    path, run = planned()
    every = [*batches(path, run)]
    assert len(every) > 20
    hints = [-1, run.start, run.end, run.end - 1, every[-1].position - 1, every[-1].position + 1, every[-2].position]
    for shorter in every[:: len(every) // 8]:
        for hint in [*hints, shorter.position, shorter.end]:
            for cut in (run, run._replace(end=shorter.end, after=shorter.after), run._replace(start=shorter.position)):
                check(path, cut._replace(last=hint))


def check(path: str, run: Run) -> None:
    """Its batches are found as if nobody had given a hint."""
    every = [*batches(path, run)]
    assert last_of(path, run) == every[-1]
    for at in (run.start, every[-1].position - 1, every[-1].position, run.end - 1):
        if at >= run.start:
            assert at_byte(path, run, at) == holder(every, at)


def holder(every: list[At], position: int) -> At:
    """The batch that holds a byte."""
    return next(one for one in every if one.position <= position < one.end)
