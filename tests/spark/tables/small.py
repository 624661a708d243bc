"""A catalog of four small tables, one of each kind, and warehouses of them that need no Spark."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kshell.spark.tables.catalog import TableSpec
from kshell.spark.tables.data_files import DataFile
from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse
from kshell.tables import arrow as arrow_tables
from kshell.tables.declaration import OTHER_FIELDS, Field

COLUMNS = (Field("clusterId", "string", "the cluster"), Field("n", "int64", "a number"))
NESTED = (
    *COLUMNS,
    Field("replicas", ["int32"], "a list"),
    Field("listeners", [{"name": "string", "port": "int32"}], "a list of structs"),
    Field("features", {OTHER_FIELDS: {"min": "int16", "max": "int16"}}, "a map of structs"),
    Field("data", "json", "a text"),
    Field("raw", "binary", "bytes"),
    Field("ratio", "float64", "a fraction"),
    Field("flag", "boolean", "yes or no"),
)
LOG = TableSpec("log", "bronze", "appended", NESTED)
NEW = TableSpec("new", "bronze", "replaced", COLUMNS)
OLD = TableSpec("old", "silver", "versions", (*COLUMNS, Field("isCurrent", "boolean", "lasts")), has_versions=True)
ALL = TableSpec("all", "gold", "of the fleet", COLUMNS, is_fleet=True)
TABLES = {spec.name: spec for spec in (LOG, NEW, OLD, ALL)}
A, B, ODD = "a", "b", "x: /=%?[1]{2}*'"
Content = dict[str, list[tuple[Any, ...]]]


def log_row(cluster: str, number: int) -> dict[str, Any]:
    """A row of ``log`` with something in every column."""
    return {
        "clusterId": cluster,
        "n": number,
        "replicas": [number, number + 1],
        "listeners": [{"name": "PLAINTEXT", "port": number}],
        "features": {"kraft.version": {"min": 0, "max": number}},
        "data": {"n": number, "text": "ü"},
        "raw": bytes([number % 256]),
        "ratio": number / 4,
        "flag": number % 2 == 0,
    }


def write(warehouse: Warehouse, name: str, rows: Iterable[Mapping[str, Any]]) -> list[DataFile]:
    """The rows as files of a table, which do not count yet."""
    arrow = importlib.import_module("pyarrow")
    return warehouse.writer(name).write(arrow_tables.batches(arrow, TABLES[name].fields, [dict(row) for row in rows]))


def rows_of(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    """All rows of a table, read without Spark, sorted."""
    table = warehouse.table(name)
    found = [row for part in table.writer.read(table.files.values()) for row in part.to_pylist()]
    return sorted(found, key=repr)


def pairs(warehouse: Warehouse, name: str = "log") -> list[tuple[str, int]]:
    """(cluster, number) of all rows of a table, sorted."""
    return sorted((row["clusterId"], row["n"]) for row in rows_of(warehouse, name))


def step(warehouse: Warehouse, rows: Iterable[tuple[str, int]]) -> int:
    """A step that appends rows to ``log``; gives its number."""
    made = list(rows)
    clusters = {cluster for cluster, _ in made}
    number = warehouse.begin(clusters)
    warehouse.append_files("log", write(warehouse, "log", (log_row(*row) for row in made)))
    warehouse.commit({cluster: ClusterState({"offset": number}) for cluster in clusters})
    return number


def data_files(place: Path) -> list[str]:
    """The Parquet files below a place, those that no version has included."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.parquet") if "_delta_log" not in path.parts)
