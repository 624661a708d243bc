"""What the JVM of a session on this machine is started with: logs, how it compiles, and how it collects garbage."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
from collections.abc import Mapping

from kshell.errors import UsageError

_LEVELS = ("off", "error", "warn", "info", "debug")
_BRIEF = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-Xmn256m"]
"""Compile quickly, not well (the room for compiled code is 48 MB then, and the pipeline fills it); collect seldom."""
_BRIEF_COLLECTOR = "-XX:+UseSerialGC"
_COLLECTOR = "-XX:+UseParallelGC"
"""Nobody waits for an answer within milliseconds here: throughput counts (decision 21)."""
_ANY_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
"""Java's own, and those that Spark hands to it."""
_EXTRA = "spark.driver.extraJavaOptions"
_DEFAULTS = "spark-defaults.conf"


def options(log_level: str, *, brief: bool = False, collects: bool = True) -> list[str]:
    """``brief``: of a session of seconds; ``collects``: whether the collector is chosen here.

    Raises UsageError for a level that is none.
    """
    if log_level not in _LEVELS:
        raise UsageError(f"{log_level!r} is no level of a log", hint=f"one of {', '.join(_LEVELS)}")
    collector = [_BRIEF_COLLECTOR if brief else _COLLECTOR] if collects else []
    return _logging(log_level) + (_BRIEF if brief else []) + collector


def _logging(level: str) -> list[str]:
    quiet = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")
    if not os.path.isfile(quiet):  # it is not in a zip
        return []
    return [
        f"-Dlog4j2.configurationFile={pathlib.Path(quiet).as_uri()}",
        f"-Dkshell.log.level={level}",
        f"-Dkshell.log.task.level={'off' if level == 'error' else level}",
    ]


def names_collector(settings: Mapping[str, str], environment: Mapping[str, str], spark_home: str) -> bool:
    """Whether somebody has chosen a collector: with two of them Java does not start.

    ``settings``: of the session; Spark's own are in ``spark-defaults.conf``.
    """
    places = [settings.get(_EXTRA, ""), *(environment.get(name, "") for name in _VARIABLES)]
    folder = environment.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    with contextlib.suppress(OSError):  # there is none, or Spark will say what is wrong with it
        places.append(pathlib.Path(folder, _DEFAULTS).read_text("utf-8", errors="replace"))
    return any(_ANY_COLLECTOR.search(place) for place in places)
