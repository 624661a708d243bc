"""Sessions that are not kshell's own: the format without ``register``, VARIANT, and workers that lack the packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.builders import FIXTURES
from tests.spark.here import ROOT, need_spark
from tests.spark.reading import dumped

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NODE = FIXTURES / "4.3.1/broker-0"
SESSION = """
import json, sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
"""
READS = """
frame = spark.read.format("kraft").option("variant", "true").load(sys.argv[1])
assert frame.schema["data"].dataType.simpleString() == "variant", frame.schema
frame.createTempView("found")
rows = spark.sql("SELECT offset, type, to_json(data), variant_get(data, '$.name', 'string') FROM found ORDER BY offset")
print(json.dumps([list(row) for row in rows.collect()]))
"""
REGISTERS = """
import kshell.spark
from kshell.errors import CommandError
try:
    kshell.spark.register(spark)
except CommandError as error:
    print(json.dumps([error.message, error.hint]))
"""


def run(
    program: str, *words: str, home: Path, places: list[Path], **variables: str
) -> subprocess.CompletedProcess[str]:
    """A script of somebody else, in a directory of their own."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, places))}
    if "JAVA_HOME" in os.environ:
        clean["JAVA_HOME"] = os.environ["JAVA_HOME"]
    return subprocess.run(
        [sys.executable, "-c", SESSION + program, *words], env=clean | variables, cwd=home, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_format_is_found_without_register_and_gives_variants(tmp_path: Path) -> None:
    need_spark()
    (tmp_path / "top").mkdir()
    (tmp_path / "top/pyspark_kraft.py").symlink_to(ROOT / "kshell/spark/pyspark_kraft.py")
    done = run(READS, str(NODE), home=tmp_path, places=[tmp_path / "top", ROOT], PYSPARK_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = dumped(NODE)[0]
    assert [(offset, kind, json.loads(data)) for offset, kind, data, _ in found] == [
        (row[0], row[3], json.loads(row[5])) for row in wanted
    ]
    assert [name for *_, name in found] == [_name(json.loads(row[5])) for row in wanted]
    assert any(name for *_, name in found)


def _name(data: dict[str, object]) -> object:
    return None if data.get("name") is None else str(data["name"])


def test_workers_without_the_packages_are_told_in_one_sentence(tmp_path: Path) -> None:
    need_spark()
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    path = os.pathsep.join([str(tmp_path / "bare/bin"), os.environ["PATH"]])
    done = run(REGISTERS, home=tmp_path, places=[ROOT], PATH=path)
    assert done.returncode == 0, done.stderr
    message, hint = json.loads(done.stdout)
    assert message.startswith(f"the Python of Spark's workers, {tmp_path}/bare/bin/python3, has no module ")
    assert hint == f"set PYSPARK_PYTHON={sys.executable} before the session starts"


def test_the_wheel_has_the_module_at_its_top() -> None:
    import tomllib

    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {"kshell/spark/pyspark_kraft.py": "pyspark_kraft.py"}
