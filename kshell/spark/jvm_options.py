"""The JVM options of a session on this machine: log level, compiler, and garbage collector."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
from collections.abc import Mapping

from kshell.errors import UsageError

_LEVELS = ("off", "error", "warn", "info", "debug")
_BRIEF = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-Xmn256m", "-XX:MetaspaceSize=256m"]
"""Compile fast instead of optimizing, and collect seldom: by default, loading Spark's classes alone causes four full
collections. Without the second option the code cache would be 48 MB, which the pipeline fills."""
_BRIEF_COLLECTOR = "-XX:+UseSerialGC"
_COLLECTOR = "-XX:+UseParallelGC"
"""Throughput matters here, not pauses: no answer is expected within milliseconds (decision 21)."""
_ANY_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
"""Variables with options that Java reads itself, or that Spark passes to it."""
_EXTRA = "spark.driver.extraJavaOptions"
_DEFAULTS = "spark-defaults.conf"


def options(log_level: str, *, brief: bool = False, collects: bool = True) -> list[str]:
    """Return the JVM options of a session.

    ``brief``: the session lasts only seconds. ``collects``: choose a garbage collector, too.
    Raises UsageError for an unknown log level.
    """
    if log_level not in _LEVELS:
        raise UsageError(f"{log_level!r} is no level of a log", hint=f"one of {', '.join(_LEVELS)}")
    collector = [_BRIEF_COLLECTOR if brief else _COLLECTOR] if collects else []
    return _logging(log_level) + (_BRIEF if brief else []) + collector


def _logging(level: str) -> list[str]:
    quiet = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")
    if not os.path.isfile(quiet):  # it cannot be read if this package runs from a zip
        return []
    return [
        f"-Dlog4j2.configurationFile={pathlib.Path(quiet).as_uri()}",
        f"-Dkshell.log.level={level}",
        f"-Dkshell.log.task.level={'off' if level == 'error' else level}",
    ]


def names_collector(settings: Mapping[str, str], environment: Mapping[str, str], spark_home: str) -> bool:
    """Whether the user has chosen a garbage collector already: with two of them Java does not start.

    It may be in the session's ``settings``, in variables, or in ``spark-defaults.conf``.
    """
    places = [settings.get(_EXTRA, ""), *(environment.get(name, "") for name in _VARIABLES)]
    folder = environment.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    with contextlib.suppress(OSError):  # the file is missing, or Spark will report what is wrong with it
        places.append(pathlib.Path(folder, _DEFAULTS).read_text("utf-8", errors="replace"))
    return any(_ANY_COLLECTOR.search(place) for place in places)
