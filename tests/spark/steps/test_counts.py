"""What a task counts of the records that it writes is what its rows say."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kshell.spark.files.pack import Slice, partitions
from kshell.spark.files.scan import CopyOrigin
from kshell.spark.options import parse
from kshell.spark.schemas import RECORD_FIELDS
from kshell.spark.steps.cluster_changes import RecordCounts, TimeRange
from kshell.spark.steps.ingest import write
from kshell.spark.tables.data_files import DataFileWriter
from tests.builders import control_batch, leader_change, node_name, recorded, timed_batch, value, write_log
from tests.spark.reading import rows

pytest.importorskip("pyarrow")


def slices(path: Path) -> list[Slice]:
    return [piece for one in partitions(parse({"path": str(path), "snapshots": "none"})) for piece in one]


def counted(some: list[Slice], out: Path) -> dict[str, RecordCounts]:
    """What one task counts of the records that it writes."""
    return write(DataFileWriter(str(out), RECORD_FIELDS), pickle.dumps(tuple(some))).counts


def expected(some: list[dict[str, Any]]) -> RecordCounts:
    times = [row["timestampMs"] for row in some]
    return RecordCounts(
        Counter(row["type"] for row in some),
        sum(row["reason"] is not None for row in some),
        TimeRange(min(times), max(times)),
    )


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_recorded_logs(node: Path, tmp_path: Path) -> None:
    made = rows(node, snapshots="none")
    (found,) = counted(slices(node), tmp_path / "out").values()
    assert found == expected(made)
    assert sum(found.types.values()) == len(made) > 0


def test_clusters_of_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.columnar.records.ROWS", 3)
    beyond = 1 << 60  # milliseconds: later than any date
    logs = {
        "a": [
            control_batch([leader_change()]),
            timed_batch([value("NO_OP"), value("TOPIC")[:9], b"\x01"], [7_000] * 3, 1),
        ],
        "b": [timed_batch([value("NO_OP")] * 2, [9_000 - at] * 2, 2 * at) for at in range(5)],
        "c": [timed_batch([value("NO_OP")], [beyond], 0), timed_batch([value("NO_OP")], [5_000], 1)],
    }
    some: list[Slice] = []
    for name, written in logs.items():
        write_log(tmp_path / name, *written)
        some += [piece._replace(origin=CopyOrigin(name, 1)) for piece in slices(tmp_path / name)]
    found = counted(some, tmp_path / "out")
    assert found == {name: expected(rows(tmp_path / name)) for name in logs}
    assert (found["a"].undecoded, found["a"].times.earliest) == (2, 7_000)
    assert found["b"].times == TimeRange(8_996, 9_000)
    assert found["c"].times == TimeRange(5_000, beyond)
