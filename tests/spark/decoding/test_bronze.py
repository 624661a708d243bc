"""Record batches of the view ``records``: how many rows they have, what rows share, what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import partitions
from kshell.spark.options import parse
from kshell.spark.schemas import RECORD_FIELDS
from tests.builders import batch, control_batch, leader_change, node_name, recorded, value, write_log
from tests.spark.reading import rows

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")


def test_batches_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.columnar.records.ROWS", 3)
    write_log(tmp_path, *(batch([value("NO_OP")] * 2, 2 * at, epoch=1) for at in range(5)))
    asked = parse({"path": str(tmp_path)})
    (slices,) = partitions(asked)
    assert [one.num_rows for one in View("records", RECORD_FIELDS, asked.narrowing).batches(slices)] == [4, 4, 2]
    made = rows(tmp_path)
    assert [row["offset"] for row in made] == list(range(10))
    assert len({row["position"] for row in made}) == 5


def test_some_columns_in_another_order(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        control_batch([leader_change()]),
        batch([value("NO_OP"), value("TOPIC")[:9], b"\x01\x02", b"\x01"] * 30, 1),
    )
    every = rows(tmp_path)
    assert len(every) == 121
    for columns in (("type", "offset"), ("raw", "version"), ("data",), ("epoch", "position", "file"), ("reason",)):
        made = rows(tmp_path, columns=",".join(columns))
        assert made == [{name: row[name] for name in columns} for row in every]
        assert [tuple(row) for row in made] == [columns] * 121


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_dictionaries_hold_the_same_texts(node: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    asked = parse({"path": str(node), "snapshots": "auto"})
    slices = [piece for one in partitions(asked) for piece in one]
    plain, compact = (
        arrow.Table.from_batches(View("records", RECORD_FIELDS, asked.narrowing, dictionaries=is_).batches(slices))
        for is_ in (False, True)
    )
    kinds = {one.name for one in compact.schema if arrow.types.is_dictionary(one.type)}
    assert kinds == {"clusterId", "file", "type"}
    assert compact.cast(plain.schema) == plain
    for name in kinds:
        values = [value for chunk in compact.column(name).chunks for value in chunk.dictionary.to_pylist()]
        assert len(values) == sum(len(set(chunk.dictionary.to_pylist())) for chunk in compact.column(name).chunks)
    assert plain.num_rows > 0


def test_dictionaries_of_what_is_missing(tmp_path: Path) -> None:
    """Of a directory that does not say whose it is, the cluster is null."""
    arrow = pytest.importorskip("pyarrow")
    write_log(tmp_path, batch([value("NO_OP")] * 3))
    asked = parse({"path": str(tmp_path)})
    (slices,) = partitions(asked)
    (made,) = View("records", RECORD_FIELDS, asked.narrowing, dictionaries=True).batches(slices)
    assert made.column("clusterId").null_count == 3
    assert made.column("clusterId").cast(arrow.string()).to_pylist() == [None] * 3
    assert made.column("type").to_pylist() == ["NO_OP_RECORD"] * 3


def test_what_could_not_be_read_is_counted(tmp_path: Path) -> None:
    good, bad = batch([value("NO_OP")] * 3), bytearray(batch([value("NO_OP")] * 3, 3))
    wrong_codec = batch([value("NO_OP")], 6, codec=7, compressed=b"?")
    bad[-1] ^= 1
    write_log(tmp_path, good, bytes(bad), wrong_codec, batch([value("NO_OP")], 7))
    asked = parse({"path": str(tmp_path)})
    (slices,) = partitions(asked)
    view = View("records", RECORD_FIELDS, asked.narrowing)
    assert sum(one.num_rows for one in view.batches(slices)) == 4
    assert view.finding_count == 2
    assert [row["kind"] for row in rows(tmp_path, view="quarantine")] == ["batch", "batch"]


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
