"""What the JVM is started with; a garbage collector only where nobody has chosen one: with two it does not start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.spark import session
from tests.spark.here import ROOT, need_spark, process


def test_options() -> None:
    said = session.jvm_options("error")
    assert f"-Dlog4j2.configurationFile={(ROOT / 'kshell/spark/log4j2.properties').as_uri()}" in said
    assert {"-Dkshell.log.level=error", "-Dkshell.log.task.level=off", "-XX:+UseParallelGC"} <= set(said)
    assert not any("Tiered" in one for one in said)
    brief = session.jvm_options("info", brief=True)
    assert {
        "-XX:TieredStopAtLevel=1",
        "-XX:MetaspaceSize=256m",
        "-Dkshell.log.task.level=info",
        "-XX:+UseSerialGC",
    } <= set(brief)
    with pytest.raises(UsageError, match="'loud' is no level of a log"):
        session.jvm_options("loud")


@pytest.mark.parametrize("brief", [False, True])
def test_options_without_a_collector(brief: bool) -> None:
    every = session.jvm_options("error", brief=brief)
    chosen = session.jvm_options("error", brief=brief, collects=False)
    assert len(every) == len(chosen) + 1
    assert not any(one.endswith("GC") for one in chosen)


_EXTRA = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("settings", "environment", "defaults", "expected"),
    [
        ({}, {}, None, False),
        ({_EXTRA: "-Xss4m -XX:+UseZGC"}, {}, None, True),
        ({_EXTRA: "-XX:+PrintGC -XX:+UseGCOverheadLimit"}, {}, None, False),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}, None, True),
        ({}, {"JDK_JAVA_OPTIONS": "-ea -XX:-UseSerialGC"}, None, True),
        ({}, {"_JAVA_OPTIONS": "-XX:+UseShenandoahGC -ea"}, None, True),
        ({}, {"SPARK_SUBMIT_OPTS": "-XX:+UseG1GC"}, None, True),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--driver-java-options -XX:+UseG1GC pyspark-shell"}, None, True),
        ({}, {"OTHER": "-XX:+UseG1GC"}, None, False),
        ({}, {}, f"spark.driver.memory 2g\n{_EXTRA}  -XX:+UseG1GC\n", True),
        ({}, {}, "spark.driver.memory 2g\n", False),
    ],
)
@pytest.mark.parametrize("place", ["home", "folder"])
def test_who_has_chosen_one(
    settings: Mapping[str, str],
    environment: dict[str, str],
    defaults: str | None,
    expected: bool,
    place: str,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "conf"
    if defaults is not None:
        folder.mkdir()
        (folder / "spark-defaults.conf").write_text(defaults)
    if place == "folder":
        home, environment = tmp_path / "nothing", environment | {"SPARK_CONF_DIR": str(folder)}
    else:
        home = tmp_path
    assert session.names_collector(settings, environment, str(home)) == expected


_PROGRAM = """
import sys
from kshell.spark import session

settings = {"spark.driver.extraJavaOptions": sys.argv[1]} if sys.argv[1] else {}
with session.running("local[1]", settings=settings) as spark:
    beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    print(sorted(bean.getName() for bean in beans)[0])
"""
_G1 = "-XX:+UseG1GC"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "variables", "expected"),
    [
        ("", {}, "PS MarkSweep"),
        (_G1, {}, "G1 "),
        ("", {"SPARK_SUBMIT_OPTS": _G1}, "G1 "),
        ("", {"PYSPARK_SUBMIT_ARGS": f"--driver-java-options {_G1} pyspark-shell"}, "G1 "),
    ],
)
def test_the_collector_of_a_session(chosen: str, variables: dict[str, Any], expected: str, tmp_path: Path) -> None:
    need_spark()
    done = process("-c", _PROGRAM, chosen, home=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(expected)
