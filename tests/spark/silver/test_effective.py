"""Which records take effect, when: transactions, bases, what did not decode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.spark.schemas import RECORD_FIELDS, spark_schema
from tests.notebooks import sparks

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_BEGIN, _END, _ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
_IN_BASE = 1 << 62


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


def record(offset: int, kind: str, cluster: str = "c", **more: Any) -> tuple[Any, ...]:
    """A row of the view ``records``, a millisecond an offset."""
    known = {
        "clusterId": cluster, "file": "log", "isSnapshot": False, "offset": offset, "epoch": 1,
        "timestampMs": 1000 + offset, "type": kind, "version": 0, "data": "{}",
    } | more  # fmt: skip
    return tuple(known.get(field.name) for field in RECORD_FIELDS)


def frames(spark: Any, records: list[Any], *eras: tuple[str, str | None, int, int]) -> tuple[Any, Any]:
    """Records and eras as Spark has them."""
    from kshell.spark.silver.events import RANGE_FIELDS

    return spark.createDataFrame(records, spark_schema(RECORD_FIELDS)), spark.createDataFrame(
        list(eras), spark_schema(RANGE_FIELDS)
    )


_LOG = [
    record(0, "A"), record(1, _END), record(2, _BEGIN), record(3, "B"), record(4, _BEGIN), record(5, "LEADER_CHANGE"),
    record(6, _END), record(7, _ABORT), record(8, "C"), record(9, _BEGIN), record(10, "D"), record(11, _ABORT),
    record(12, "E", reason="cut"), record(13, _BEGIN, reason="a newer version"), record(14, "F"),
    record(3000, _END), record(3001, "G"), record(3002, _BEGIN), record(3003, "H"), record(3004, "LEADER_CHANGE"),
]  # fmt: skip


def test_transactions_take_effect_at_their_end_or_not_at_all(spark: Any) -> None:
    from pyspark.testing import assertDataFrameEqual

    from kshell.spark.silver.events import effective, open_transactions_of

    other = [record(0, "A", "d"), record(1, "B", "d")]
    rows, eras = frames(spark, _LOG + other, ("c", None, 0, 3005), ("d", None, 0, 1))
    expected = [
        ("c", "A", 0, 1000), ("c", "B", 6, 1006), ("c", "LEADER_CHANGE", 5, 1005), ("c", "C", 8, 1008),
        ("c", "F", 3000, 4000), ("c", "G", 3001, 4001), ("c", "LEADER_CHANGE", 3004, 4004), ("d", "A", 0, 1000),
    ]  # fmt: skip
    found = effective(rows, eras, rows).select("clusterId", "type", "atOffset", "atMs")
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))
    assert [tuple(row) for row in open_transactions_of(rows, eras).collect()] == [("c", 3002)]


def test_what_is_given_again_takes_effect_once(spark: Any) -> None:
    from kshell.spark.silver.events import effective, open_transactions_of

    rows, eras = frames(spark, [row for row in _LOG if row[5] >= 13], ("c", None, 15, 3004))
    found = {(row.type, row.atOffset) for row in effective(rows, eras, rows).collect()}
    assert found == {("F", 3000), ("G", 3001)}
    rows, eras = frames(spark, [row for row in _LOG if 2 <= row[5] < 6], ("c", None, 5, 6))
    assert [(row.type, row.atOffset) for row in effective(rows, eras, rows).collect()] == [("LEADER_CHANGE", 5)]
    assert [row.offset for row in open_transactions_of(rows, eras).collect()] == [2]


def test_a_base_is_a_state_at_the_offset_before_its_end(spark: Any) -> None:
    from kshell.spark.silver.events import effective, open_transactions_of

    header = '{"version":0,"lastContainedLogTimestamp":77}'
    base = [
        record(0, "SNAPSHOT_HEADER", file="s", isSnapshot=True, data=header),
        record(1, "A", file="s", isSnapshot=True),
        record(1, "B", file="another", isSnapshot=True),
    ]
    log = [record(2, _BEGIN), record(3, "C"), record(9, "D"), record(10, "E"), record(12, _END)]
    rows, eras = frames(spark, base + log, ("c", None, 0, 4), ("c", "s", 10, 12))
    found = {
        (row.type, row.atOffset, row.atMs, row.sequence, row.isBase) for row in effective(rows, eras, rows).collect()
    }
    assert found == {
        ("SNAPSHOT_HEADER", 9, 77, _IN_BASE, True),
        ("A", 9, 77, _IN_BASE + 1, True),
        ("E", 10, 1010, 10, False),
    }
    assert open_transactions_of(rows, eras).count() == 0


def test_the_last_leader_change_before_the_end_of_a_base_is_in_it_if_it_is_of_its_epoch(spark: Any) -> None:
    from kshell.spark.silver.events import effective

    header = '{"version":0,"lastContainedLogTimestamp":77}'
    base = [record(0, "SNAPSHOT_HEADER", name, file="s", isSnapshot=True, epoch=2, data=header) for name in "cde"]
    changes = [
        record(3, "LEADER_CHANGE", epoch=1), record(6, "LEADER_CHANGE", epoch=2, data="{6}"),
        record(7, "LEADER_CHANGE", epoch=2, reason="cut"), record(10, "LEADER_CHANGE", epoch=3),
        record(6, "LEADER_CHANGE", "d", epoch=1),
    ]  # fmt: skip
    known = [row for row in changes if row[5] < 10]  # an earlier step has read them
    rows, eras = frames(spark, [*base, changes[3]], *((name, "s", 10, 12) for name in "cde"))
    earlier, _ = frames(spark, known)
    found = effective(rows, eras, earlier.unionByName(rows)).where("type = 'LEADER_CHANGE'").collect()
    assert sorted((row.clusterId, row.atOffset, row.atMs, row.sequence, row.isBase, row.data) for row in found) == [
        ("c", 9, 77, _IN_BASE, True, "{6}"),
        ("c", 10, 1010, 10, False, "{}"),
    ]
