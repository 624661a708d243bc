"""The tables as Spark 4.2 with Delta Lake reads them by ``USING delta``, equal row by row; and what its own upkeep of a
table (OPTIMIZE, VACUUM, checkpoints) leaves, as kshell goes on from there.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CommandError
from kshell.spark.schemas import schema_json
from kshell.spark.tables import catalog
from kshell.spark.tables.data_files import DataFile
from kshell.spark.tables.delta import DeltaTable
from kshell.spark.tables.steps import FOLDER, ClusterState
from kshell.spark.tables.warehouse import Warehouse
from kshell.tables.arrow import batches
from kshell.tables.declaration import OTHER_FIELDS, Field, Type
from tests.kafka.jars import Unavailable
from tests.needed import missing
from tests.spark.tables.other_spark import SPARK, Answer, OtherSpark, Refused, running

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.live]

CLUSTERS = ("a/b=c", "ünï-漢字-🦊", "%41", "123", "")
REMOVED, KEPT = CLUSTERS[:2], CLUSTERS[2:]
MANY_COLUMNS = ("records", "partitions", "brokers")
"""Tables that have, between them, nearly every type of column: numbers, texts, bytes, lists, structs and maps."""
_TABLE_NUMBERS = itertools.count()
_VALUES: dict[str, list[Any]] = {
    "string": ["text", "", "ünï 漢字 🦊", "\"'\\ \t\r\n\0", "￿" * 3, "x" * 100, None],
    "binary": [b"\x00\xff", b"", None],
    "json": [{"of": "🦊"}, [], "text", 1.5, None],
    "boolean": [True, False, None],
    "int16": [-(2**15), 2**15 - 1, 0, None],
    "int32": [-(2**31), 2**31 - 1, 0, None],
    "int64": [-(2**63), 2**63 - 1, 2**53 + 1, 0, None],
    "float64": [0.1, -0.0, 5e-324, float("inf"), float("-inf"), float("nan"), None],
}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherSpark]:
    """A session of the other Spark."""
    for name in ("pyarrow", "deltalake"):
        if importlib.util.find_spec(name) is None:
            missing(f"{name} is not installed")
    try:
        with running(tmp_path_factory.mktemp("spark-delta")) as session:
            assert session.sql("SELECT version() AS version").rows[0].startswith(f'{{"version": "{SPARK} ')
            yield session
    except Unavailable as reason:
        missing(str(reason))


def value(declared: Type, number: int) -> Any:
    """One of some values of a type, odd ones among them; null, too."""
    if isinstance(declared, str):
        values = _VALUES[declared]
        return values[number % len(values)]
    kind = number % 4
    if kind == 3:
        return None
    if not isinstance(declared, Mapping):
        return [value(declared[0], number + more) for more in range(kind)]
    if OTHER_FIELDS in declared:
        return {key: value(declared[OTHER_FIELDS], number + more) for more, key in enumerate(["", "ключ"][:kind])}
    return {name: value(below, number + more) for more, (name, below) in enumerate(declared.items())}


def rows_of(fields: Iterable[Field], clusters: Iterable[str], closes: str | None = None) -> Iterator[dict[str, Any]]:
    """Some rows for each cluster; ``closes`` is the table's column without nulls."""
    for number, (cluster, _) in enumerate(itertools.product(clusters, range(7))):
        row = {field.name: value(field.type, number + more) for more, field in enumerate(fields)}
        yield {**row, "clusterId": cluster, **({closes: number % 2 == 0} if closes else {})}


def write(table: DeltaTable, rows: Iterable[dict[str, Any]]) -> list[DataFile]:
    """The rows as files of a table, which do not count yet."""
    return table.writer.write(batches(importlib.import_module("pyarrow"), table.fields, rows))


def step(path: Path, names: Iterable[str], clusters: Iterable[str], removed: Sequence[str] = ()) -> dict[str, int]:
    """A step with rows of some clusters in some tables; gives the tables' versions."""
    warehouse = Warehouse(None, str(path))
    with warehouse.writing():
        warehouse.begin([*clusters, *removed])
        if removed:
            warehouse.remove(removed)
        for name in names:
            spec = catalog.table(name)
            rows = rows_of(spec.fields, clusters, spec.partition_column)
            warehouse.append_files(name, write(warehouse.table(name), rows))
        warehouse.commit({cluster: ClusterState({}) for cluster in clusters})
    return dict(warehouse.state.versions)


def rows_in(table: DeltaTable, files: Iterable[DataFile] | None = None) -> list[str]:
    """A table's rows as kshell reads them, as :class:`Answer` has them."""
    parts = table.writer.read(table.files.values() if files is None else files)
    rows = [row for part in parts for row in part.to_pylist(maps_as_pydicts="strict")]
    return sorted(json.dumps(row, sort_keys=True, default=bytes.hex) for row in rows)


def opened(path: Path, name: str) -> DeltaTable:
    """A table at the version that the last step names."""
    return Warehouse(None, str(path)).table(name)


def create(other: OtherSpark, place: str) -> str:
    """Makes a table known to the other Spark; gives its name there."""
    name = f"t{next(_TABLE_NUMBERS)}"
    other.sql(f"CREATE TABLE {name} USING delta LOCATION '{place}'")
    return name


def columns(fields: Iterable[Field]) -> Any:
    """The declared columns as :class:`Answer` has them."""
    return json.loads(schema_json(fields))["fields"]


def literal(wanted: Any) -> str:
    """A value in SQL."""
    if isinstance(wanted, str):
        return f"CAST(X'{wanted.encode().hex()}' AS STRING)"
    return "NULL" if wanted is None else str(wanted) if isinstance(wanted, bool) else f"CAST('{wanted}' AS LONG)"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every table of the catalog: a step with rows of all clusters, one in which some went, and OPTIMIZE."""
    path = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        for (
            name,
            spec,
        ) in catalog.tables().items():  # odd values would be rows of `breaches`, too
            patch.setitem(catalog.tables(), name, spec._replace(expect=()))
        step(path, catalog.tables(), CLUSTERS)
        step(path, MANY_COLUMNS, KEPT, REMOVED)
        warehouse = Warehouse(None, str(path))
        with warehouse.writing():
            assert {*warehouse.optimize(1 << 20)} == {*MANY_COLUMNS}
    return path


def test_every_table_has_the_same_columns_and_rows(other: OtherSpark, fleet: Path) -> None:
    different = []
    warehouse = Warehouse(None, str(fleet))
    for name, spec in catalog.tables().items():
        table = warehouse.table(name)
        answer = other.sql(f"SELECT * FROM {create(other, table.place)}")
        if answer != Answer(columns(spec.fields), rows_in(table)):
            different.append(name)
        assert len(answer.rows) == 7 * len(KEPT) * (2 if name in MANY_COLUMNS else 1), name
    assert different == []


def test_the_log_of_steps_has_the_same_rows(other: OtherSpark, fleet: Path) -> None:
    for table in (Warehouse(None, str(fleet)).log._steps, Warehouse(None, str(fleet)).log._progress):
        assert f"/{FOLDER}/" in table.place
        table.open()  # `progress` is read only by who needs checkpoints
        answer = other.sql(f"SELECT * FROM {create(other, table.place)}")
        assert answer == Answer(columns(table.fields), rows_in(table))
        assert answer.rows


@pytest.mark.parametrize(
    ("name", "searched"),
    [
        ("records", ["clusterId", "file", "isSnapshot", "nodeId", "position", "version"]),
        ("partitions", ["clusterId", "isCurrent"]),
    ],
)
def test_statistics_leave_out_no_file_that_has_a_value(
    other: OtherSpark, tmp_path: Path, name: str, searched: list[str]
) -> None:
    spec = catalog.table(name)
    table = DeltaTable(f"{tmp_path}/{name}", name, spec.summary, spec.fields, spec.partition_column)
    rows = list(rows_of(spec.fields, CLUSTERS[:2], spec.partition_column))
    table.open()
    for row in rows:  # a file each, so that its statistics are the row's values
        table.add(write(table, [row]))
    table.commit(1)
    source = create(other, table.place)
    for column in searched:
        counts = Counter(row[column] for row in rows)
        answer = other.sql(
            " UNION ALL ".join(
                f"SELECT {number} AS number, count(*) AS rows FROM {source} WHERE `{column}` <=> {literal(wanted)}"
                for number, wanted in enumerate(counts)
            )
        )
        found = [json.loads(row) for row in answer.rows]
        assert {row["number"]: row["rows"] for row in found} == dict(enumerate(counts.values())), column


@pytest.mark.soak
@pytest.mark.long
def test_every_step_can_be_read_until_vacuum_removes_it(other: OtherSpark, tmp_path: Path) -> None:
    versions = [step(tmp_path, MANY_COLUMNS, CLUSTERS), step(tmp_path, MANY_COLUMNS, KEPT, REMOVED)]
    warehouse = Warehouse(None, str(tmp_path))
    with warehouse.writing():
        warehouse.optimize(1 << 20)
        versions.append(dict(warehouse.state.versions))
    known = {name: create(other, opened(tmp_path, name).place) for name in MANY_COLUMNS}
    for name in MANY_COLUMNS:
        table, counts = opened(tmp_path, name), []
        for version in (of_step[name] for of_step in versions):
            answer = other.sql(f"SELECT * FROM {known[name]} VERSION AS OF {version}")
            assert answer.rows == rows_in(table, table.files_at(version).values()), (name, version)
            counts.append(len(answer.rows))
        assert counts == [7 * len(CLUSTERS), 2 * 7 * len(KEPT), 2 * 7 * len(KEPT)]
    with warehouse.writing():
        assert all(warehouse.vacuum(0)[name][0] for name in MANY_COLUMNS)
    for name in MANY_COLUMNS:
        assert other.sql(f"SELECT * FROM {known[name]}").rows == rows_in(opened(tmp_path, name))
        with pytest.raises(Refused):
            other.sql(f"SELECT * FROM {known[name]} VERSION AS OF {versions[0][name]}")


@pytest.mark.soak
@pytest.mark.long
def test_steps_go_on_from_the_upkeep_of_spark(other: OtherSpark, tmp_path: Path) -> None:
    names = ("records", "partitions")  # without partitions, and with
    step(tmp_path, names, CLUSTERS)
    step(tmp_path, names, KEPT)
    for name in names:
        before = opened(tmp_path, name)
        known = create(other, before.place)
        other.sql(f"ALTER TABLE {known} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
        other.sql(f"OPTIMIZE {known}")
        other.sql(f"VACUUM {known}")
        assert list(Path(before.place, "_delta_log").glob("*.checkpoint*.parquet")), "of Spark"
        now = DeltaTable(before.place, name, "", before.fields, before.partition_by)
        now.open()
        assert now.version > before.version
        assert len(now.files) < len(before.files)
        # Readers keep to the version of the last step, and the next step begins with the newest one.
        assert rows_in(now) == rows_in(before) == rows_in(opened(tmp_path, name))
    step(tmp_path, names, KEPT[:1], REMOVED)
    for name in names:
        table = opened(tmp_path, name)
        rows = rows_in(table)
        assert other.sql(f"SELECT * FROM {create(other, table.place)}").rows == rows
        assert len(rows) == 7 * (2 * len(KEPT) + 1)
        assert {json.loads(row)["clusterId"] for row in rows} == {*KEPT}


def test_rows_of_spark_are_not_taken_for_a_step(other: OtherSpark, tmp_path: Path) -> None:
    step(tmp_path, ["records"], CLUSTERS)
    before = rows_in(opened(tmp_path, "records"))
    known = create(other, opened(tmp_path, "records").place)
    other.sql(f"INSERT INTO {known} SELECT * FROM {known} LIMIT 1")
    assert rows_in(opened(tmp_path, "records")) == before
    with pytest.raises(CommandError, match=r"version 1 was written by another program \(WRITE\)"):
        step(tmp_path, ["records"], KEPT)


def test_a_column_that_came_later_and_a_checkpoint(other: OtherSpark, tmp_path: Path) -> None:
    spec = catalog.table("partitions")
    rows = list(rows_of(spec.fields, KEPT[:1], spec.partition_column))
    # All but the last column that is not the partitions' one, as an older release may have had them.
    later = [field.name for field in spec.fields if field.name != spec.partition_column][-1]
    older = DeltaTable(
        f"{tmp_path}/t", spec.name, "", [f for f in spec.fields if f.name != later], spec.partition_column
    )
    older.open()
    older.add(write(older, rows))
    older.commit(1)
    table = DeltaTable(older.place, spec.name, spec.summary, spec.fields, spec.partition_column)
    table.open()
    for number in range(2, 24):
        table.add(write(table, rows), appended=True)
        table.commit(number)
    assert list(Path(table.place, "_delta_log").glob("*.checkpoint.parquet")), "of deltalake, which commits"
    answer = other.sql(f"SELECT * FROM {create(other, table.place)}")
    assert {column["name"]: column for column in answer.columns} == {c["name"]: c for c in columns(spec.fields)}
    assert answer.rows == rows_in(table)
    assert len(answer.rows) == 7 * 23
