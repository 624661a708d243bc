"""Conditions that Spark pushes into the format ``kraft``: what is planned and decoded less, and that no row is lost.

Needs pyspark's classes, and no JVM.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kshell.protocol.batches import write_batch
from kshell.spark.options import parse
from tests.builders import FIXTURES, value, write_log
from tests.spark.reading import needs_arrow

pytest.importorskip("pyspark")
pytestmark = needs_arrow
NODE = FIXTURES / "4.2.1-rolled/controller-3002"
MIDDLE = 300
"""An offset in the middle of that log."""
Row = dict[str, Any]


class Got(NamedTuple):
    """``size``: bytes that are to be read."""

    partitions: int
    size: int
    rows: list[Row]


def got(path: Path, *conditions: Any, **options: str) -> Got:
    """What a reader plans and decodes to which Spark has pushed conditions."""
    from kshell.spark.source import PushingReader

    reader = PushingReader(parse({"path": str(path), **options}))
    assert list(reader.pushFilters(list(conditions))) == list(conditions), "Spark applies all of them again"
    planned = reader.partitions()
    size = sum(run.end - run.start for part in planned for piece in part.value for run in piece.file.runs)
    return Got(len(planned), size, [row for part in planned for made in reader.read(part) for row in made.to_pylist()])


def condition(name: str, column: str, wanted: Any) -> Any:
    """One of Spark's."""
    return getattr(importlib.import_module("pyspark.sql.datasource"), name)((column,), wanted)


_KEPT: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": lambda has, wanted: has == wanted,
    "In": lambda has, wanted: has in wanted,
    "GreaterThan": lambda has, wanted: has > wanted,
    "GreaterThanOrEqual": lambda has, wanted: has >= wanted,
    "LessThan": lambda has, wanted: has < wanted,
    "LessThanOrEqual": lambda has, wanted: has <= wanted,
}


@pytest.fixture(scope="module")
def whole() -> Got:
    """Everything, in many small slices."""
    return got(NODE, sliceBytes="3000")


@pytest.mark.parametrize("name", ["EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"])
@pytest.mark.parametrize("column", ["offset", "timestampMs"])
def test_ends_of_offsets_and_times(whole: Got, name: str, column: str) -> None:
    wanted = whole.rows[MIDDLE][column]
    made = got(NODE, condition(name, column, wanted), sliceBytes="3000")
    _check(whole, made, name, column, wanted)
    if column == "offset" or not name.startswith("Less"):  # headers do not say how early records are
        assert made.size < 0.8 * whole.size
        assert made.partitions < whole.partitions
    # One off is allowed: Spark compares again.
    assert all(_KEPT[name](row[column], wanted) or row[column] == wanted for row in made.rows)


@pytest.mark.parametrize(
    ("name", "column", "wanted"),
    [
        ("EqualTo", "type", "TOPIC_RECORD"),
        ("In", "type", ("TOPIC_RECORD", "PARTITION_RECORD", None)),
        ("EqualTo", "clusterId", "another"),
        ("In", "clusterId", ("another", None)),
    ],
)
def test_types_and_clusters(whole: Got, name: str, column: str, wanted: Any) -> None:
    made = got(NODE, condition(name, column, wanted), sliceBytes="3000")
    _check(whole, made, name, column, wanted)
    assert all(_KEPT[name](row[column], wanted) for row in made.rows)
    assert made.size == (whole.size if column == "type" else 0)


def _check(whole: Got, made: Got, name: str, column: str, wanted: Any) -> None:
    """Fewer records were decoded than there are, and all that fit."""
    fitting = [row for row in whole.rows if _KEPT[name](row[column], wanted)]
    assert [row for row in made.rows if _KEPT[name](row[column], wanted)] == fitting
    assert len(made.rows) < 0.8 * len(whole.rows)


def test_several_conditions_narrow_together(whole: Got) -> None:
    offset, time_ms = whole.rows[MIDDLE]["offset"], whole.rows[MIDDLE // 2]["timestampMs"]
    asked = [
        condition("GreaterThan", "offset", 5),
        condition("LessThanOrEqual", "offset", offset),
        condition("GreaterThanOrEqual", "timestampMs", time_ms),
        condition("In", "type", ("TOPIC_RECORD", "CONFIG_RECORD")),
        condition("EqualTo", "type", "TOPIC_RECORD"),
    ]
    made = got(NODE, *asked, since="7", sliceBytes="3000")
    expected = [row for row in whole.rows if row["type"] == "TOPIC_RECORD" and row["timestampMs"] >= time_ms]
    assert made.rows == [row for row in expected if 7 <= row["offset"] <= offset]
    assert made.rows


@pytest.mark.parametrize(("name", "column"), [("EqualNullSafe", "type"), ("EqualTo", "epoch"), ("EqualTo", "file")])
def test_what_is_not_understood_narrows_nothing(whole: Got, name: str, column: str) -> None:
    assert got(NODE, condition(name, column, whole.rows[0][column]), sliceBytes="3000") == whole


def test_findings_are_not_narrowed_by_what_only_records_have() -> None:
    for view in ("files", "quarantine"):
        asked = condition("GreaterThan", "offset", MIDDLE), condition("EqualTo", "type", "TOPIC_RECORD")
        assert got(NODE, *asked, view=view) == got(NODE, view=view)


def test_clocks_that_step_back(tmp_path: Path) -> None:
    clock = [500, 1000, 900, 950, 400]
    made = [write_batch([(None, value("NO_OP"))], base_offset=n, epoch=1, timestamp=at) for n, at in enumerate(clock)]
    write_log(tmp_path, *made)
    later = got(tmp_path, condition("GreaterThanOrEqual", "timestampMs", 950), sliceBytes="1")
    assert ([row["offset"] for row in later.rows], later.size) == ([1, 3], 2 * len(made[0]))
    earlier = got(tmp_path, condition("LessThan", "timestampMs", 950), sliceBytes="1")
    assert [row["offset"] for row in earlier.rows if row["timestampMs"] < 950] == [0, 2, 4]
