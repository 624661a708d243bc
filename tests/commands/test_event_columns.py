"""The table ``events`` made by columns is what it is made record by record."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.history.events import EVENTS_TABLE
from kshell.metadata.image import EMPTY
from kshell.protocol.batches import pack
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables.arrow import batches, schema
from kshell.tables.declaration import ColumnarRows, Field
from tests.builders import (
    batch,
    control_batch,
    leader_change,
    node_name,
    recorded,
    snapshot,
    timed_batch,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.shell import opened
from tests.metadata.test_every_offset import nonsense

arrow = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

FIELDS = EVENTS_TABLE.fields
NAMES = frozenset(field.name for field in FIELDS)
LOGS = 24


@pytest.fixture(params=[1, 24], ids=["every shape by columns", "common shapes by columns"])
def least(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("walk", "values"):
        monkeypatch.setattr(f"kshell.columnar.{module}.LEAST", request.param)


@pytest.fixture(params=[(1, 7), (24, 1 << 16)], ids=["few rows, all by columns", "all rows, common shapes by columns"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    least, rows = request.param
    for module in ("walk", "values"):
        monkeypatch.setattr(f"kshell.columnar.{module}.LEAST", least)
    monkeypatch.setattr("kshell.columnar.records.ROWS", rows)


class Answer:
    """A table of Arrow, and what the session has to say of it; or the error instead."""

    def __init__(self, session: Session, rows: Iterable[Mapping[str, Any]], fields: Sequence[Field]) -> None:
        self.error: str | None = None
        try:
            self.table = arrow.Table.from_batches(list(batches(arrow, fields, rows)), schema(arrow, fields))
        except KshellError as error:
            self.table, self.error = schema(arrow, fields).empty_table(), f"{error.message}\n{error.hint}"
        self.said = (session.problems(), session.notes(), [error.message for error in session.found_damage])


def same(directory: Path, until: int | None = None, names: Collection[str] = NAMES) -> Any:
    """The rows of a directory's log, made in both ways."""
    made = []
    fields = [field for field in FIELDS if field.name in names]
    for is_by_column in (True, False):
        session = opened(directory)
        if until is not None:
            session = session.reshape(point=str(until))
        rows = EVENTS_TABLE.rows(session, EMPTY, frozenset(names))
        assert isinstance(rows, ColumnarRows)
        made.append(Answer(session, rows if is_by_column else list(rows), fields))
    together, alone = made
    assert together.table.to_pylist() == alone.table.to_pylist()
    assert together.error == alone.error
    assert together.said == alone.said
    return together.table


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_recorded_logs(node: Path) -> None:
    assert same(node / METADATA_DIRECTORY).num_rows > 0


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(LOGS))
def test_nonsensical_logs(tmp_path: Path, seed: int) -> None:
    write_log(tmp_path, nonsense(seed))
    every = same(tmp_path)["offset"].to_pylist()
    assert len(every) > 250
    for few in ({"offset"}, {"type", "path"}, {"time", "epoch"}):
        same(tmp_path, names=few)
    until = 12 * seed + 1
    assert same(tmp_path, until)["offset"].to_pylist() == [offset for offset in every if offset <= until]


def test_damage_is_told_in_the_same_words(tmp_path: Path) -> None:
    odd = batch([value("NO_OP"), b"\x01\x05\x00", value("NO_OP")[:2], *[value("NO_OP")] * 30], 20)
    broken = bytearray(batch([value("NO_OP")] * 5, 60))
    broken[-1] ^= 1
    write_log(tmp_path, batch([value("NO_OP"), b"\x01"] * 10), odd, bytes(broken), batch([value("NO_OP")], 65)[:-3])
    assert same(tmp_path).num_rows == 20 + 33
    assert same(tmp_path, names={"type"}).num_rows == 20 + 33


def test_times_that_are_none(tmp_path: Path) -> None:
    times = [-1, 0, 1, 253_402_300_799_999, 253_402_300_800_000, 1 << 60]
    write_log(tmp_path, timed_batch([value("NO_OP")] * len(times), times))
    assert same(tmp_path)["time"].to_pylist() == [
        None, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z", None, None,
    ]  # fmt: skip


def gzipped(values: Iterable[bytes]) -> dict[str, Any]:
    return {"codec": 1, "compressed": gzip.compress(pack([(None, one) for one in values]))}


def _partition(number: int, *replicas: int, elr: tuple[int, ...] = ()) -> bytes:
    return value(
        "PARTITION", 2, topicId=uuid(1), partitionId=number, replicas=list(replicas), isr=[1], removingReplicas=[],
        addingReplicas=[], leader=1, leaderEpoch=0, partitionEpoch=0, directories=[uuid(7)] * len(replicas),
        eligibleLeaderReplicas=list(elr),
    )  # fmt: skip


def _change(number: int, **fields: Any) -> bytes:
    return value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=number, **fields)


_TOPIC, _REMOVE = value("TOPIC", name="t", topicId=uuid(1)), value("REMOVE_TOPIC", topicId=uuid(1))
_CLEAR = value("CLEAR_ELR", topicName="t")
_BEGIN, _END, _ABORT = (value(f"{verb}_TRANSACTION") for verb in ("BEGIN", "END", "ABORT"))
_MOVE = {"replicas": [1, 2, 3], "directories": [uuid(9)] * 3}
_LED, _ASSIGNED = {"leader": 2}, {"directories": [uuid(9)] * 3}


@pytest.mark.usefixtures("least")
@pytest.mark.parametrize(
    ("values", "touched"),
    [
        pytest.param(
            [_partition(0, 1), _partition(1, 1), _change(0, **_LED), _change(1, **_LED), _change(2, **_LED)], "0101-",
            id="exists",
        ),
        pytest.param(
            [_partition(0, 1, 2, 3), _partition(1, 1, 2, 3), _partition(1, 1), _change(1, **_ASSIGNED)], "011-",
            id="written again with fewer replicas",
        ),
        pytest.param(
            [_partition(0, 1), _partition(1, 1), _change(0, **_MOVE), _change(1, **_MOVE), _change(1, **_ASSIGNED)],
            "01011",
            id="moved",
        ),
        pytest.param(
            [_partition(0, 1), _partition(1, 1), _change(0, **_MOVE), _partition(1, 1), _change(1, **_ASSIGNED)],
            "0101-",
            id="moved is another",
        ),
        pytest.param([_partition(0, 1, elr=(1,)), _partition(1, 1, elr=(1,)), _CLEAR, _CLEAR], "010-", id="elr"),
        pytest.param(
            [
                _partition(0, 1), _partition(1, 1), _change(0, eligibleLeaderReplicas=[1]), _CLEAR,
                _change(1, eligibleLeaderReplicas=[1]), _CLEAR, _CLEAR,
            ],
            "010011-",
            id="elr changes",
        ),
        pytest.param(
            [_partition(0, 1), _BEGIN, _partition(1, 1), _change(0, **_LED), _change(1, **_LED), _ABORT,
             _change(1, **_LED), _change(0, **_LED)],
            "0-101--0",
            id="aborted",
        ),
        pytest.param(
            [_partition(0, 1), _partition(1, 1), _BEGIN, _REMOVE, _change(0, **_LED), _ABORT, _change(1, **_LED)],
            "01-t--1",
            id="a removal is aborted",
        ),
        pytest.param(
            [_partition(0, 1), _BEGIN, _partition(1, 1), _END, _change(1, **_LED)], "0-1-1", id="committed",
        ),
        pytest.param(
            [_partition(0, 1), _REMOVE, _change(0, **_LED), _TOPIC, _change(0, **_LED), _partition(0, 1)], "0t-t-0",
            id="removed",
        ),
        pytest.param([_partition(0, 1), _TOPIC, _change(0, **_LED)], "0t-", id="created again"),
    ],
)  # fmt: skip
def test_what_decides_about_later_records(tmp_path: Path, values: list[bytes], touched: str) -> None:
    """``touched`` names, for each record after the topic's creation, the partition, the topic (t), or nothing (-)."""
    learning = [_partition(7, 1), _change(7, **_LED)]
    write_log(tmp_path, control_batch([leader_change()]), batch([_TOPIC, *learning, *values], 1))
    topic = "/image/topics/byName/t"
    expected = [None if one == "-" else topic if one == "t" else f"{topic}/{one}" for one in touched]
    assert same(tmp_path)["path"].to_pylist()[4:] == expected


_KNOWN = [_TOPIC, _partition(0, 1), _partition(1, 1), _change(0, **_LED), _change(1, **_LED)]
_LED_0, _LED_1 = _change(0, **_LED), _change(1, **_LED)


@pytest.mark.usefixtures("least")
@pytest.mark.parametrize(
    ("values", "touched"),
    [
        ([_change(number, **_LED) for number in (1, 0, 2, -1, 1 << 20, 3)], "10---3"),
        ([_LED_0, _REMOVE, _LED_0, _LED_1], "0t--"),
        ([_LED_0, _REMOVE, _TOPIC, _LED_0, _partition(0, 1), _LED_0, _LED_1], "0tt-00-"),
        ([_LED_1, _TOPIC, _LED_1], "1t-"),
        ([_LED_0, _BEGIN, _REMOVE, _LED_0, _ABORT, _LED_0], "0-t--0"),
        ([_LED_0, _BEGIN, _partition(2, 1), _change(2, **_LED), _ABORT, _change(2, **_LED), _LED_1], "0-22--1"),
        ([_change(0, **_MOVE), _LED_0, _change(0, **_ASSIGNED), _LED_1, _change(1, **_ASSIGNED), _LED_1], "0001-1"),
        ([_partition(4, 1), _change(4, **_LED), _LED_0, _change(2, **_LED)], "440-"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True], ids=["as Kafka writes them", "every second one compressed"])
def test_partitions_that_were_known_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[bytes], touched: str, *, is_packed: bool
) -> None:
    """What is found out about partitions is used for the records that come later; ``touched`` as above."""
    monkeypatch.setattr("kshell.columnar.records.ROWS", 2 * len(_KNOWN))  # the values come after that, all at once
    packed = {number: gzipped([one]) for number, one in enumerate(values) if is_packed and number % 2}
    parts = [batch([one], 10 + number, **packed.get(number, {})) for number, one in enumerate(values)]
    write_log(tmp_path, batch(_KNOWN), batch([_partition(3, 1), *_KNOWN[1:]], 5), *parts)
    topic = "/image/topics/byName/t"
    expected = [None if one == "-" else topic if one == "t" else f"{topic}/{one}" for one in touched]
    assert same(tmp_path)["path"].to_pylist()[10:] == expected


def test_partitions_whose_creation_is_aborted_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.columnar.walk.LEAST", 1)
    monkeypatch.setattr("kshell.columnar.values.LEAST", 1)
    led_2 = _change(2, **_LED)
    created = [*_KNOWN, _BEGIN, _LED_0, _LED_1, _partition(2, 1), led_2]
    monkeypatch.setattr("kshell.columnar.records.ROWS", len(created))
    write_log(tmp_path, batch(created), batch([led_2, _ABORT, led_2, _LED_1], 10))
    path = "/image/topics/byName/t"
    assert same(tmp_path)["path"].to_pylist()[10:] == [f"{path}/2", None, None, f"{path}/1"]


def test_partitions_that_were_known_before_a_snapshot_inside_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot, of which the log has no beginning, does not have them."""
    monkeypatch.setattr("kshell.columnar.walk.LEAST", 1)
    monkeypatch.setattr("kshell.columnar.values.LEAST", 1)
    monkeypatch.setattr("kshell.columnar.records.ROWS", len(_KNOWN))
    write_log(tmp_path, batch(_KNOWN, 100), batch([_LED_0, _LED_1, _LED_0], 105), base_offset=100)
    write_snapshot(tmp_path, snapshot([_TOPIC, _partition(0, 1)]), 106)
    path = "/image/topics/byName/t"
    assert same(tmp_path)["path"].to_pylist()[-3:] == [f"{path}/0", None, f"{path}/0"]


@pytest.mark.usefixtures("least")
def test_a_snapshot_inside_a_log_without_a_beginning(tmp_path: Path) -> None:
    """It names what comes before it, too; what the records before it do to it is not what it says."""
    before = [_change(0, **_LED), _REMOVE, _change(0, **_LED)]
    write_log(tmp_path, batch(before, 100), batch([_change(0, **_LED)] * 2, 103), base_offset=100)
    write_snapshot(tmp_path, snapshot([_TOPIC, _partition(0, 1)]), 103)
    partition = "/image/topics/byName/t/0"
    assert same(tmp_path)["path"].to_pylist() == [partition, "/image/topics/byName/t", None, partition, partition]
