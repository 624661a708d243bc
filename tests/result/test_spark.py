"""Rows as a DataFrame of Spark: the same rows, of the documented types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kshell
from kshell.engine.result import Column, Rows
from kshell.result import Result
from kshell.sources.choose import demo_directory
from tests.notebooks import sparks
from tests.result.test_frames import BIG, plain

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_TYPES = {
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "double": "double",
    "string": "string",
    "bool": "boolean",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.mark.parametrize(
    "line",
    [
        "topics",
        "partitions",
        "brokers",
        "acls",
        "quotas",
        "users",
        "configs",
        "dump --type TOPIC_RECORD",
        "diff 100 200",
        "timeline --all",
        "find /image/features --values",
        "partitions --limit 0",
    ],
)
def test_equal_rows(spark: Any, line: str) -> None:
    result = kshell.open(demo_directory()).run(line)
    table, frame = result.to_arrow(), result.to_spark(spark)
    assert frame.columns == table.column_names
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert [_pairs(plain(row)) for row in rows] == [_pairs(plain(row)) for row in table.to_pylist()]
    for field, kind in frame.dtypes:
        declared = str(table.schema.field(field).type)
        assert kind == _TYPES.get(declared, kind)


def test_integers_stay_exact_beside_null(spark: Any) -> None:
    rows: list[dict[str, Any]] = [{"n": BIG}, {"n": None}, {"n": -BIG - 1}]
    frame = Result(Rows((Column("n", type="int64"),), rows)).to_spark(spark)
    assert [row.n for row in frame.collect()] == [BIG, None, -BIG - 1]


def _pairs(row: Any) -> Any:
    """A map is an object in Spark's rows, and a list of pairs in Arrow's."""
    if row == {}:
        return []
    if isinstance(row, dict):
        return {name: _pairs(value) for name, value in row.items()}
    if isinstance(row, list):
        if row and all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) for one in row):
            return {name: _pairs(value) for name, value in row}
        return [_pairs(one) for one in row]
    return row
