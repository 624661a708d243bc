"""Tables without Spark: a warehouse of one step that is only states, and a reader that is not kshell's."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kshell.spark.tables.steps import ClusterState
from kshell.spark.tables.warehouse import Warehouse


def committed(place: Path, states: Mapping[str, ClusterState]) -> Warehouse:
    """A warehouse with one step more, whose clusters have those states; tables that it makes are empty."""
    warehouse = Warehouse(None, str(place))
    with warehouse.writing():
        warehouse.begin(states)
        warehouse.commit(states)
    return warehouse


def delta_tables(out: Path) -> list[Path]:
    """The directories of the tables, without those of the log of steps."""
    found = (log.parent for log in out.glob("*/*/_delta_log"))
    return sorted(place for place in found if place.parent.name != "_kshell")


def delta_rows(place: Path) -> list[dict[str, Any]]:
    """The rows of a table, read by ``deltalake`` alone; none where there is no table."""
    if not (place / "_delta_log").is_dir():
        return []
    rows: list[dict[str, Any]] = importlib.import_module("deltalake").DeltaTable(place).to_pyarrow_table().to_pylist()
    return rows


def delta_columns(place: Path) -> dict[str, Any]:
    """The columns of a table as its log has them: name -> (type, comment)."""
    schema = json.loads(importlib.import_module("deltalake").DeltaTable(place).schema().to_json())
    return {column["name"]: (column["type"], column["metadata"].get("comment")) for column in schema["fields"]}
