"""What a notebook that uses Spark needs around it: Java, and a start that keeps its chatter to itself."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import needed
from tests.notebooks.running import ROOT
from tests.spark.beyond import BRIEF, CHEAP, UNCOMPILED

FIXTURES = ROOT / "tests" / "fixtures"


def missing() -> str:
    """What is not installed here, or nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    home = os.environ.get("JAVA_HOME")
    if not (home and shutil.which("java", path=os.path.join(home, "bin"))) and shutil.which("java") is None:
        return "java is not installed"
    return ""


def need() -> None:
    """Ends the test where Spark cannot run."""
    if reason := missing():
        needed.missing(reason)


@contextlib.contextmanager
def session(folder: Path) -> Iterator[Any]:
    """A session of Spark on this machine alone, which finds this checkout; ``folder`` is its own.

    It compiles nothing and plans once: with few rows both take longer than the work. :mod:`tests.spark.test_whole_run`
    has the settings for much data.
    """
    need()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder / "conf", folder / "log").items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(ROOT))
        sql: Any = importlib.import_module("pyspark.sql")  # its types are not there where it is not
        made = (
            sql.SparkSession.builder.master("local[1]")
            .config(map=CHEAP)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .getOrCreate()
        )
        try:
            yield made
        finally:
            made.stop()


def environment(conf: Path, log: Path) -> dict[str, str]:
    """The environment of the kernel. ``conf`` becomes Spark's configuration directory.

    The JVM writes to standard error before any setting of a session counts (modules, host names), and ipykernel would
    show that below a cell: it goes to ``log``. What Python says is not touched.
    """
    conf.mkdir(parents=True)
    (conf / "spark-env.sh").write_text('exec 2>>"$KSHELL_TEST_SPARK_LOG"\n', "utf-8")
    # Half of the time of a short session is the JVM's own compiler, and much of the rest is Spark's.
    defaults = {"spark.driver.extraJavaOptions": BRIEF} | UNCOMPILED
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in defaults.items()), "utf-8")
    return {
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "KSHELL_TEST_SPARK_LOG": str(log),
        "KSHELL_FLEET": str(FIXTURES),
    }
