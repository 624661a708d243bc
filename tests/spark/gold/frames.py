"""DataFrames of bronze and silver tables out of plain rows, and rows that can be compared."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kshell.protocol.control import CONTROL_TYPES
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark import gold, silver
from kshell.spark.schemas import CLUSTER_FIELDS, RECORD_FIELDS, spark_schema
from kshell.tables.declaration import Field
from tests.spark.gold.expected.spans import Cluster
from tests.spark.gold.replay import lines, replay
from tests.spark.reading import dumped

Row = dict[str, Any]


def cluster(name: str, directory: Path) -> Cluster:
    """A cluster by the log of one of its nodes."""
    records = lines(dumped(directory / METADATA_DIRECTORY)[0])
    return Cluster(name, replay(name, records), records, records[-1].ms)


def fields_of(name: str) -> tuple[Field, ...]:
    """The columns of a table that gold is made of."""
    bronze = {"records": RECORD_FIELDS, "control_records": RECORD_FIELDS, "clusters": CLUSTER_FIELDS}
    of_gold = gold.tables().get(name)
    return bronze.get(name) or (of_gold.fields if of_gold else silver.tables()[name].fields)


def frame(spark: Any, name: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """The table with those rows; columns that they do not have are null."""
    fields = fields_of(name)
    return spark.createDataFrame([tuple(row.get(field.name) for field in fields) for row in rows], spark_schema(fields))


def tables(spark: Any, *clusters: Cluster) -> dict[str, Any]:
    """All tables of some clusters."""
    made = {
        name: frame(spark, name, [row for one in clusters for row in one.versions.get(name, [])])
        for name in silver.tables()
    }
    records = [
        {
            "clusterId": one.name, "isSnapshot": False, "file": "x.log", "offset": record.offset,
            "timestampMs": record.ms, "type": record.type, "data": json.dumps(record.data),
        }
        for one in clusters
        for record in one.records
    ]  # fmt: skip
    kinds = {kind.name for kind in CONTROL_TYPES.values()}
    made["records"] = frame(spark, "records", records)
    made["control_records"] = frame(spark, "control_records", [row for row in records if row["type"] in kinds])
    last = [{"clusterId": one.name, "lastTimestampMs": one.last_ms} for one in clusters]
    return made | {"clusters": frame(spark, "clusters", last)}


def comparable(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as text in an order of their own; numbers with a fraction to nine digits."""
    return sorted(json.dumps({name: _rounded(value) for name, value in sorted(row.items())}) for row in rows)


def _rounded(value: Any) -> Any:
    # Adding up in another order moves the last digits, and 0.1 + 0.2 is no defect.
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value


def versions(*rows: Row, ends: tuple[int, int] | None = None, **common: Any) -> list[Row]:
    """Versions of one key, each until the next; ``ends`` (offset, time): of the last. ``at``: (offset, time)."""
    made = []
    ends_of = [row["at"] for row in rows[1:]] + [ends]
    for row, end in zip(rows, ends_of, strict=True):
        begun = {"validFromOffset": row["at"][0], "validFromMs": row["at"][1], "isCurrent": end is None}
        closed = {"validToOffset": end[0], "validToMs": end[1]} if end else {}
        made.append({"clusterId": "c", **common, **row, **begun, **closed})
    return made


def made(spark: Any, name: str, last_ms: int, **rows: list[Row]) -> Any:
    """The gold table of a cluster with those rows, whose last record is of that time."""
    table = gold.tables()[name]
    clusters = [{"clusterId": "c", "lastTimestampMs": last_ms}]

    def given(need: str) -> Any:
        if need in gold.tables() and need != name:
            return made(spark, need, last_ms, **rows)
        return frame(spark, need, rows.get(need, clusters * (need == "clusters")))

    return table.made_of({need: given(need) for need in table.needs})


def check(found: Any, name: str, *rows: Row) -> None:
    """The rows, of the columns that the first one names."""
    testing: Any = importlib.import_module("pyspark.testing")
    fields = [field for field in gold.tables()[name].fields if field.name in rows[0]]
    wanted = [tuple(row.get(field.name) for field in fields) for row in rows]
    session = found.sparkSession
    frame_wanted = session.createDataFrame(wanted, spark_schema(fields))
    testing.assertDataFrameEqual(found.select(*(field.name for field in fields)), frame_wanted)
