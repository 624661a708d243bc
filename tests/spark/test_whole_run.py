"""``kshell-pipeline run`` with the settings that much data gets, its tables read as plain Parquet: gold and silver are
those of plain Python.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.files import METADATA_DIRECTORY
from kshell.spark import silver
from kshell.spark.files.scan import find
from kshell.spark.gold import tables
from tests.builders import FIXTURES
from tests.spark.gold import churn, expected
from tests.spark.gold.expected.drift import config_drift_episodes
from tests.spark.gold.frames import cluster, comparable
from tests.spark.here import need_spark, process

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long]
LARGE = {
    "codegen.wholeStage": "true",
    "codegen.factoryMode": "FALLBACK",
    "adaptive.enabled": "true",
    "shuffle.partitions": "3",
}
"""A run of little data has others, which start sooner."""
THEN = 110
"""An offset between that of topics that come later and that of others."""


def plain(place: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table, read without Spark and kshell; none where it is not there."""
    if not place.exists():
        return
    arrow, dataset = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.dataset")
    names = {"clusterId": arrow.string(), "isCurrent": arrow.string(), "batch": arrow.int64()}
    laid = [(name, kind) for name, kind in names.items() if any(place.glob(f"**/{name}=*"))]
    rows = dataset.dataset(place, partitioning=dataset.partitioning(arrow.schema(laid), flavor="hive")).to_table()
    for row in rows.to_pylist():
        # Of versions this is a directory's name; a gold table has a column of that name.
        yield row if ("isCurrent", names["isCurrent"]) not in laid else row | {"isCurrent": row["isCurrent"] == "true"}


def test_tables_of_a_run_are_those_of_plain_python(tmp_path: Path) -> None:
    need_spark()
    nodes = [churn.month(tmp_path / "month"), *(FIXTURES / name / "broker-0" for name in ("3.9.2", "4.3.1"))]
    (tmp_path / "home").mkdir()
    sources = [word for node in nodes for word in ("--source", str(node / METADATA_DIRECTORY))]
    conf = [word for name, value in LARGE.items() for word in ("--conf", f"spark.sql.{name}={value}")]
    out = tmp_path / "out"
    words = ["-m", "kshell.spark.cli", "run", *sources, "--out", str(out), "--master", "local[2]", *conf]
    done = process(*words, home=tmp_path / "home", timeout=600)
    assert done.returncode == 0, done.stderr
    fleet = [cluster(str(find([str(node)])[0].origin.cluster_id), node) for node in nodes]
    gold = {name: [row for one in fleet for row in of(one)] for name, of in expected.TABLES.items()}
    gold["config_drift_episodes"] = config_drift_episodes(fleet)
    settling = {name for name, table in tables().items() if table.settles}
    for name, wanted in gold.items():
        added = ("batch", "isFinal") if name in settling else ("batch",)
        found = [{key: row[key] for key in row if key not in added} for row in plain(out / "gold" / name)]
        assert comparable(found) == comparable(wanted), name
    for name, table in silver.tables().items():
        if wanted := [row for one in fleet for row in one.versions.get(name, [])]:
            names = [field.name for field in table.fields if field.name in wanted[0]]
            laid = plain(out / "silver" / name)
            found, said = ([{key: row[key] for key in names} for row in rows] for rows in (laid, wanted))
            assert comparable(found) == comparable(said), name
    asked = [*f"query --out {out} --as-of {THEN} -o json".split(), "SELECT clusterId, name FROM current_topics"]
    answer = process("-m", "kshell.spark.cli", *asked, home=tmp_path / "home", timeout=300)
    topics = [row for one in fleet for row in one.versions["topics"] if row["validFromOffset"] <= THEN]
    then = [row for row in topics if row["validToOffset"] is None or row["validToOffset"] > THEN]
    wanted = [{"clusterId": row["clusterId"], "name": row["name"]} for row in then]
    assert comparable(json.loads(answer.stdout)) == comparable(wanted)
