"""Spark beyond one process, on the loopback address: what the tests of spark-submit and of Connect share."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.spark.warehouses import delta_rows, delta_tables

LIMIT = 1200
"""Seconds for a run: minutes on a busy machine, most of which several JVMs take to start and to compile."""
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For JVMs that live for seconds: they compile quickly, not well, and have room for what they compile."""
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Of few rows, compiling an expression takes far longer than computing it."""
CHEAP = UNCOMPILED | {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # With few rows, planning a query anew at each stage takes far longer than running it.
    "spark.sql.adaptive.enabled": "false",
}
_LOG = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n
"""


def contents(out: Path) -> dict[str, list[str]]:
    """The tables of a warehouse that have rows, as any reader of Delta finds them: each row as JSON, sorted."""
    found = {path.name: delta_rows(path) for path in delta_tables(out)}
    return {
        name: sorted(json.dumps(row, default=repr, sort_keys=True) for row in rows)
        for name, rows in found.items()
        if rows
    }


def environment(home: Path) -> dict[str, str]:
    """Of a Spark that does not know this checkout: whatever its Python finds of kshell was shipped."""
    (home / "log4j2.properties").write_text(_LOG)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SPARK_HOME": str(_spark_home(home / "spark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
    }
    return variables | {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}


def _spark_home(folder: Path) -> Path:
    """What pyspark has as links: workers of a local cluster keep what they are sent in this directory."""
    if not folder.is_dir():
        folder.mkdir()
        for entry in Path(importlib.import_module("pyspark").__file__ or "").parent.iterdir():
            (folder / entry.name).symlink_to(entry)
    return folder


def submit(home: Path) -> list[str]:
    """The words of a spark-submit that listens on the loopback address only, and says no more than errors."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    options = f"-Dlog4j2.configurationFile={(home / 'log4j2.properties').as_uri()} {BRIEF}"
    program = os.path.join(environment(home)["SPARK_HOME"], "bin", "spark-submit")
    return [program, "--driver-java-options", options, *confs(loopback | CHEAP)]


def confs(settings: Mapping[str, str]) -> list[str]:
    """Settings as the words of a command line, of spark-submit and of kshell-pipeline alike."""
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


@contextlib.contextmanager
def connect_server(home: Path) -> Iterator[str]:
    """A server of Spark Connect with one core; its ``sc://`` URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        *submit(home), "--master", "local[1]", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", f"spark.connect.grpc.binding.port={port}",
        "spark-internal",
    ]  # fmt: skip
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            words, env=environment(home), cwd=home, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        _wait(server, port, home / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + 180
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert server.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.2)
