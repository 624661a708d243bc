"""The declarative pipeline of the documentation runs, and its tables are what the logs say."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.builders import FIXTURES
from tests.spark.here import ROOT, need_spark
from tests.spark.reading import dumped

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NODE = FIXTURES / "4.3.1/broker-0"
FLEET = "/fleet/*/*/__cluster_metadata-0"


def test_the_declarative_pipeline_of_the_documentation(tmp_path: Path) -> None:
    need_spark()
    pytest.importorskip("grpc")
    program = Path(sys.executable).with_name("spark-pipelines")
    assert program.exists(), "pyspark 4.1 and later bring it"
    (tmp_path / "top").mkdir()
    (tmp_path / "top/pyspark_kraft.py").symlink_to(ROOT / "kshell/spark/pyspark_kraft.py")
    project = shutil.copytree(ROOT / "docs/pipelines", tmp_path / "project")
    spec = (project / "spark-pipeline.yml").read_text()
    for asked, ours in (("file:///fleet/pipeline", f"{tmp_path.as_uri()}/storage"), (FLEET, str(NODE))):
        assert asked in spec
        spec = spec.replace(asked, ours)
    (project / "spark-pipeline.yml").write_text(spec)
    variables = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "top"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [str(program), "run", *words],
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parquet = importlib.import_module("pyarrow.parquet")
    tables = {path.name: parquet.read_table(path).to_pylist() for path in (project / "spark-warehouse").iterdir()}
    assert tables.keys() == {"records", "quarantine", "topics_made", "hourly_records"}
    wanted = dumped(NODE)[0]
    assert sorted((row["offset"], row["type"]) for row in tables["records"]) == sorted(
        (row[0], row[3]) for row in wanted
    )
    assert not tables["quarantine"]
    assert len(tables["topics_made"]) == sum(row[3] == "TOPIC_RECORD" for row in wanted)
    counts = Counter[str]()
    for row in tables["hourly_records"]:
        counts[row["type"]] += row["count"]
    assert counts == Counter(row[3] for row in wanted)
