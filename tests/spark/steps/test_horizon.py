"""Which rows of gold are final after a step, without Spark."""

from __future__ import annotations

import time

import pytest

from kshell.spark.reconcile import Checkpoint, ReconciledLog, ReplayRange
from kshell.spark.steps.cluster_changes import ClusterChange, TimeRange
from kshell.spark.steps.finalization import Horizon, begin_of, together, tomorrow_ms
from kshell.spark.steps.finalization import horizon as horizon_before
from kshell.spark.tables.gold_table import DAY as BY_DAY
from kshell.spark.tables.gold_table import MONTH
from kshell.spark.tables.steps import ClusterState
from tests.spark.gold.busy import DAY, HOUR

ON = ReplayRange(None, 10, 20)


def horizon(one: ClusterChange, new: TimeRange | None) -> Horizon:
    """As of now."""
    return horizon_before(one, new, tomorrow_ms())


def fresh(last: int | None, settled: int | None, *eras: ReplayRange) -> ClusterChange:
    """A cluster whose last record is of that time."""
    cluster = {"lastTimestampMs": last}
    truth = ReconciledLog("c", (), eras, Checkpoint(), False, (), (), (), 0, cluster)
    return ClusterChange(truth, ClusterState({}, settled_ms=settled))


def test_a_day_is_final_an_hour_after_it() -> None:
    assert horizon(fresh(5 * DAY + HOUR, None, ON), None) == Horizon(None, 5 * DAY)
    assert horizon(fresh(5 * DAY + HOUR - 1, None, ON), None) == Horizon(None, 4 * DAY)
    assert horizon(fresh(7, None, ON), None) == horizon(fresh(None, None, ON), None) == Horizon(None, 0)
    assert horizon(fresh(-7, None, ON), None) == Horizon(None, 0)


def test_no_day_is_final_that_is_to_come() -> None:
    today = time.time_ns() // 1_000_000 // DAY * DAY
    assert today <= horizon(fresh(1 << 42, None, ON), None).until <= today + 2 * DAY


@pytest.mark.parametrize(
    ("last", "new", "until"),
    [
        (5 * DAY + HOUR, TimeRange(3 * DAY, 5 * DAY + HOUR), 5 * DAY),
        (4 * DAY, TimeRange(3 * DAY, 9 * DAY), 3 * DAY),
        (3 * DAY, TimeRange(3 * DAY, 3 * DAY), 3 * DAY),  # by the hour it would be the day before
        (6 * DAY, None, 5 * DAY),
    ],
)
def test_it_goes_on_with_what_is_new(last: int, new: TimeRange | None, until: int) -> None:
    assert horizon(fresh(last, 3 * DAY, ON), new) == Horizon(3 * DAY, until)


@pytest.mark.parametrize(
    ("last", "new", "era"),
    [
        (6 * DAY, TimeRange(3 * DAY - 1, 6 * DAY), ON),  # a record is of a time that was held to be over
        (3 * DAY - 1, None, ON),
        (6 * DAY, TimeRange(6 * DAY, 1 << 60), ON),  # a time that is of no day
        (6 * DAY, TimeRange(6 * DAY, 6 * DAY), ReplayRange("a snapshot", 10, 20)),
    ],
)
def test_it_begins_anew(last: int, new: TimeRange | None, era: ReplayRange) -> None:
    assert horizon(fresh(last, 3 * DAY, era), new) == horizon(fresh(last, None, era), new)


def test_a_cluster_that_begins_anew() -> None:
    assert horizon(fresh(6 * DAY, 3 * DAY, ON)._replace(before=None), None) == Horizon(None, 5 * DAY)


@pytest.mark.parametrize(
    ("day", "month"),
    [(0, 0), (30 * DAY, 0), (31 * DAY, 31 * DAY), (1_767_225_600_000 + 40 * DAY, 1_767_225_600_000 + 31 * DAY)],
)
def test_begins(day: int, month: int) -> None:
    assert (begin_of(BY_DAY, day), begin_of(MONTH, day)) == (day, month)
    assert begin_of(MONTH, 253_402_300_799_999 // DAY * DAY) == 253_402_300_800_000 - 31 * DAY  # December 9999


def test_clusters_by_the_day_since_when_they_go_on() -> None:
    every = {"a": Horizon(None, 2 * DAY), "b": Horizon(DAY, 2 * DAY), "c": Horizon(DAY, DAY), "d": Horizon(2 * DAY, 0)}
    assert together(every, BY_DAY) == {DAY: ["b", "c"], 2 * DAY: ["d"]}
    assert together(every | {"e": Horizon(31 * DAY, 0)}, MONTH) == {0: ["b", "c", "d"], 31 * DAY: ["e"]}
