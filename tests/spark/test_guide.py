"""The Python in the guide to Spark runs as it stands there, but for its paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import FIXTURES
from tests.notebooks import sparks
from tests.spark.here import ROOT, need_spark, process

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.long]
FLEET = "/fleet/*/*/__cluster_metadata-0"
TABLES = "file:///…/tables"


def test_python_of_the_guide(tmp_path: Path) -> None:
    need_spark()
    for package in ("pandas", "deltalake", "polars", "duckdb"):
        pytest.importorskip(package)
    source = f"{FIXTURES}/3.6.2/*/{METADATA_DIRECTORY}"
    quick = sparks.environment(tmp_path / "conf", tmp_path / "log")
    words = ("run", "--source", source, "--out", "tables")
    made = process("-m", "kshell.spark.cli", *words, home=tmp_path, timeout=600, **quick)
    assert made.returncode == 0, made.stderr
    guide = (ROOT / "docs/spark.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    code = "".join(blocks)
    assert len(blocks) > 2 and FLEET in code and TABLES in code
    code = code.replace(FLEET, source).replace(TABLES, f"file://{tmp_path}/tables")
    session = "import kshell.spark\nspark = kshell.spark.local('local[1]')\n"  # until the guide has its own
    done = process("-c", f"{session}{code}spark.stop()", home=tmp_path, timeout=600, **quick)
    assert done.returncode == 0, done.stderr
    assert "clusterId" in done.stdout
