"""``kshell-pipeline run`` with the settings that much data gets, its tables read by another reader of Delta: gold and
silver are those of plain Python.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark import silver
from kshell.spark.files.scan import find
from kshell.spark.gold import tables
from tests.builders import FIXTURES
from tests.spark.gold import churn, expected
from tests.spark.gold.expected.drift import config_drift_episodes
from tests.spark.gold.frames import cluster, comparable
from tests.spark.here import need_spark, process
from tests.spark.warehouses import delta_rows

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
    assert delta_rows(out / "quality/breaches") == []
    gold = {name: [row for one in fleet for row in of(one)] for name, of in expected.TABLES.items()}
    gold["config_drift_episodes"] = config_drift_episodes(fleet)
    settling = {name for name, table in tables().items() if table.final_by}
    for name, wanted in gold.items():
        added = ("isFinal",) if name in settling else ()
        found = [{key: row[key] for key in row if key not in added} for row in delta_rows(out / "gold" / name)]
        assert comparable(found) == comparable(wanted), name
    for name, table in silver.tables().items():
        if wanted := [row for one in fleet for row in one.versions.get(name, [])]:
            names = [field.name for field in table.fields if field.name in wanted[0]]
            laid = delta_rows(out / "silver" / name)
            found, said = ([{key: row[key] for key in names} for row in rows] for rows in (laid, wanted))
            assert comparable(found) == comparable(said), name
    asked = [*f"query --out {out} --as-of {THEN} -o json".split(), "SELECT clusterId, name FROM current_topics"]
    answer = process("-m", "kshell.spark.cli", *asked, home=tmp_path / "home", timeout=300)
    topics = [row for one in fleet for row in one.versions["topics"] if row["validFromOffset"] <= THEN]
    then = [row for row in topics if row["validToOffset"] is None or row["validToOffset"] > THEN]
    wanted = [{"clusterId": row["clusterId"], "name": row["name"]} for row in then]
    assert comparable(json.loads(answer.stdout)) == comparable(wanted)
