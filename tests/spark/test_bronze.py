"""Columns of records: what is shared, what is odd, what no column can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.spark.bronze import RecordColumns
from kshell.spark.schemas import RECORD_FIELDS
from tests.builders import batch, value, write_log
from tests.spark.reading import rows

arrow = pytest.importorskip("pyarrow")


def test_numbers_that_no_column_holds_are_null() -> None:
    columns = RecordColumns(arrow, RECORD_FIELDS)
    for offset, timestamp, version in ((1 << 63, 1, 0), (5, -(1 << 63) - 1, 1 << 31), (6, 7, 8)):
        columns.offset.append(offset)
        columns.timestamp.append(timestamp)
        columns.type.append("X")
        columns.version.append(version)
        columns.data.append("{}")
    columns.undecoded[1] = ("why", b"\xff")
    columns.end_batch(("c", 1, "f", False, 0, 2))
    made = columns.take()
    assert made.schema.names == [field.name for field in RECORD_FIELDS]
    got = [(row["offset"], row["timestampMs"], row["version"], row["raw"]) for row in made.to_pylist()]
    assert got == [(None, 1, 0, None), (5, None, None, b"\xff"), (6, 7, 8, None)]
    assert len(columns) == 0


def test_batches_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.commands.base.arrow_tables.BATCH", 3)
    write_log(tmp_path, *(batch([value("NO_OP")] * 2, 2 * at, epoch=1) for at in range(5)))
    made = rows(tmp_path)
    assert [row["offset"] for row in made] == list(range(10))
    assert len({row["position"] for row in made}) == 5


def test_text_that_is_no_utf_8(tmp_path: Path) -> None:
    odd = value("TOPIC", name="abc", topicId=bytes(16)).replace(b"abc", b"a\xffc")
    folder = tmp_path / "caf\udce9"
    try:
        write_log(folder, batch([odd]))
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system takes no such name")
    for view in ("records", "TOPIC", "files"):
        (row,) = rows(folder, view=view)
        assert "caf?" in row["file"]
    assert rows(folder)[0]["data"].isascii()
