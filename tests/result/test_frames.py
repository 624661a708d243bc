"""Rows as Arrow, pandas and polars: equal, of the documented types, exact."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kshell
from kshell.engine.result import Column, Rows
from kshell.errors import UsageError
from kshell.extras import install_command
from kshell.result import Result
from kshell.sources.choose import demo_directory

pyarrow = pytest.importorskip("pyarrow", reason="the extra notebook is not installed")
pandas = pytest.importorskip("pandas", reason="the extra notebook is not installed")
polars = pytest.importorskip("polars", reason="the extra notebook is not installed")

BIG = (1 << 63) - 1
LINES = (
    "topics", "partitions", "brokers", "acls", "quotas", "users", "tokens", "configs", "controllers", "registrations",
    "health", "skew", "features", "dump --type TOPIC_RECORD", "log /image/topics", "diff 100 200", "ls -l /image",
    "find /image/features --values", "blame /image/topics/byName/orders/0", "timeline --all", "mark",
    "cat /image/features", "cat /image/topics/byName/orders/0", "tree /image/topics/byName/orders",
    "topics --where 'name == nothing'",
    "partitions --columns topic,partition --limit 0",
)  # fmt: skip


def plain(value: Any) -> Any:
    """What a frame gives, as plain values: maps are lists of pairs in Arrow."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return None if value is pandas.NA else value


@pytest.fixture(scope="module")
def session() -> kshell.api.Session:
    return kshell.open(demo_directory())


@pytest.mark.parametrize("line", LINES)
def test_all_frames_have_the_same_rows(session: kshell.api.Session, line: str) -> None:
    result = session.run(line)
    table = result.to_arrow()
    assert table.num_rows == len(result)
    rows = [plain(row) for row in table.to_pylist()]
    frame = result.df
    assert list(frame.columns) == table.column_names
    assert [plain(row) for row in frame.to_dict("records")] == rows
    other = result.to_polars()
    assert other.columns == table.column_names
    for name in table.column_names:
        if not pyarrow.types.is_map(table.schema.field(name).type):
            assert [plain(value) for value in other[name].to_list()] == [row[name] for row in rows]
    for row, exact in zip(rows, result.rows, strict=True):
        for name, value in exact.items():
            if isinstance(value, int | float | str | bool | None):
                assert row[name] == value or json.loads(row[name]) == value


def test_integers_stay_exact_beside_null() -> None:
    rows: list[dict[str, Any]] = [{"n": BIG, "m": 1}, {"n": None, "m": -BIG - 1}]
    result = Result(Rows((Column("n"), Column("m")), rows))
    assert result.to_arrow().schema.field("n").type == pyarrow.int64()
    assert result.df["n"][0] == BIG and pandas.isna(result.df["n"][1])
    assert result.df["m"].sum() == -BIG
    assert result.to_polars()["n"].to_list() == [BIG, None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int64"),
        ([1.5, None], "double"),
        ([True, None], "bool"),
        (["a", None], "string"),
        ([[1], [2, 3], None, []], "list<item: int64>"),
        ([["a"], []], "list<item: string>"),
        ([1, "a"], "string"),
        ([1, 1.5], "string"),
        ([BIG + 1], "string"),
        ([{"a": 1}, {"b": 2}], "string"),
        ([None, None], "string"),
        ([[{"a": 1}]], "string"),
    ],
)
def test_a_column_that_nobody_declares_has_a_type_for_all_its_values(values: list[Any], kind: str) -> None:
    table = Result(Rows((Column("x"),), [{"x": value} for value in values])).to_arrow()
    assert str(table.schema.field("x").type).replace("element", "item") == kind


def test_json_is_json() -> None:
    value = {"name": "größe\ud800", "n": [BIG + 1, None]}
    table = Result(Rows((Column("x", type="json"),), [{"x": value}])).to_arrow()
    assert json.loads(table["x"][0].as_py()) == value


@pytest.mark.parametrize("line", ["topics", "partitions", "brokers", "acls", "quotas", "users", "tokens", "configs"])
def test_empty_results_have_their_columns_and_types(session: kshell.api.Session, line: str) -> None:
    whole, none = session.run(line), session.run(f"{line} --limit 0")
    assert len(none) == 0
    assert none.to_arrow().schema.equals(whole.to_arrow().schema)
    assert list(none.df.columns) == list(whole.df.columns)
    assert none.to_polars().schema == whole.to_polars().schema


def test_columns_keep_their_types_when_they_are_chosen(session: kshell.api.Session) -> None:
    table = session.run("partitions --columns leader,topic").to_arrow()
    assert [(field.name, str(field.type)) for field in table.schema] == [("leader", "int32"), ("topic", "string")]


@pytest.mark.parametrize("line", LINES)
def test_columns_are_those_of_the_rows_and_have_the_types_of_the_frames(session: kshell.api.Session, line: str) -> None:
    result = session.run(line)
    schema = result.to_arrow().schema
    assert list(result.columns) == schema.names
    assert all(list(row) == schema.names for row in result)
    for name, kind in result.columns.items():
        if kind in ("int16", "int32", "int64", "string"):
            assert str(schema.field(name).type) == kind


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith(("cat", "diff", "tree", "blame"))])
def test_columns_are_the_same_whatever_the_rows_hold(session: kshell.api.Session, line: str) -> None:
    """At offset 7 there is a quorum, and neither a topic nor a broker."""
    early, late = session.at(7).run(line), session.run(line)
    assert early.columns == late.columns
    assert early.to_arrow().schema.equals(late.to_arrow().schema)


def test_times_are_timestamps(session: kshell.api.Session) -> None:
    result = session.run("timeline --all")
    assert result.columns["fromTime"] == result.columns["toTime"] == "timestamp"
    row = next(row for row in result if row["toTime"] is None)
    place = result.rows.index(row)
    moment = datetime.fromtimestamp(row["fromTimeMs"] / 1000, UTC)
    for frame in (result.df, result.to_polars().to_pandas()):
        assert frame["fromTime"][place] == moment and pandas.isna(frame["toTime"][place])
    polars_frame = result.to_polars()
    assert polars_frame.schema["toTime"] == polars.Datetime("ms", "UTC")
    assert polars_frame["fromTime"].max() - polars_frame["fromTime"].min() > timedelta(0)
    assert result.rows[0]["fromTime"].endswith("Z"), "rows and JSON have text"


def test_an_empty_list_of_names_has_its_column() -> None:
    result = kshell.open(demo_directory()).at(0).run("ls /image/topics/byName")
    assert result.rows == [] and result.columns == {"value": "string"}


def test_a_missing_package_is_named(session: kshell.api.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    result = session.run("topics")
    monkeypatch.setattr("importlib.import_module", absent)
    for take in (result.to_arrow, result.to_pandas, result.to_polars):
        with pytest.raises(UsageError, match="needs the package") as caught:
            take()
        assert caught.value.hint == install_command("notebook")
