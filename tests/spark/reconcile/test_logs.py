"""Batches inside runs: what a run says of its last batch makes it quicker to find, and never another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.protocol.batches import read_header
from kshell.spark.files.scan import find
from kshell.spark.reconcile.inventory import plan_segments
from kshell.spark.reconcile.logs import BatchHeader, LogPart, parts_of
from tests.builders import FIXTURES

NODE = FIXTURES / "4.2.1-rolled/controller-3002"


def planned() -> LogPart:
    """The longest run of a recorded log."""
    [copy] = find([str(NODE)])
    parts = [part for file in plan_segments(copy, None, None, 1 << 20) for part in parts_of(file)]
    return max(parts, key=lambda part: part.run.end - part.run.start)


def test_a_plan_says_where_the_last_batch_begins() -> None:
    part = planned()
    raw, run = Path(part.path).read_bytes(), part.run
    assert run.last > run.start
    assert run.last + read_header(raw, run.last).size == run.end


def test_that_is_all_that_is_read_to_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    part = planned()
    run = part.run
    expected = part._replace(run=run._replace(last=-1)).last_batch()
    monkeypatch.delattr(LogPart, "batches")
    assert part.last_batch() == part.batch_at_byte(run.last) == part.batch_at_byte(run.end - 1) == expected


def test_a_hint_that_is_wrong_is_none() -> None:
    part = planned()
    run, every = part.run, [*part.batches()]
    assert len(every) > 20
    hints = [-1, run.start, run.end, run.end - 1, every[-1].position - 1, every[-1].position + 1, every[-2].position]
    for shorter in every[:: len(every) // 8]:
        for hint in [*hints, shorter.position, shorter.end]:
            for cut in (run, run._replace(end=shorter.end, after=shorter.after), run._replace(start=shorter.position)):
                check(part._replace(run=cut._replace(last=hint)))


def check(part: LogPart) -> None:
    """Its batches are found as if nobody had given a hint."""
    every, run = [*part.batches()], part.run
    assert part.last_batch() == every[-1]
    for at in (run.start, every[-1].position - 1, every[-1].position, run.end - 1):
        if at >= run.start:
            assert part.batch_at_byte(at) == holder(every, at)


def holder(every: list[BatchHeader], position: int) -> BatchHeader:
    """The batch that holds a byte."""
    return next(one for one in every if one.position <= position < one.end)
