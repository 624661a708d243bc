"""Another release of Spark than the one that kshell runs with, with Delta Lake: in an environment of its own.

The environment and the jars are made once, below ``$XDG_CACHE_HOME/kshell-tests/spark-delta`` (``~/.cache`` by
default; about 500 MB, half a minute), by uv and Maven from the registries that they are configured for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kafka.jars import Unavailable, program

SPARK, DELTA, SCALA = "4.2.1", "4.4.0", "2.13"
SERVER = Path(__file__).with_name("spark_sql_server.py")
_STOP_SECONDS = 60
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kshell.tests</groupId><artifactId>delta</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>io.delta</groupId>
<artifactId>delta-spark_{SPARK.rpartition(".")[0]}_{SCALA}</artifactId><version>{DELTA}</version></dependency>
</dependencies></project>
"""
_GROUPS = "io.delta,io.unitycatalog"
"""Whose jars Spark does not bring itself."""


class Environment(NamedTuple):
    """What is needed to run Spark with Delta Lake."""

    python: Path
    jars: list[Path]


def environment() -> Environment:
    """Return the environment, made the first time. Raises Unavailable, with the reason, where that is impossible."""
    program("java")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    release = f"{SPARK}-{DELTA}-python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = caches / "kshell-tests" / "spark-delta" / release
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, jars, complete = folder / "environment/bin/python", folder / "jars", folder / ".complete"
    with open(folder.parent / f".{release}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists() or not python.exists():  # the Python that it was made from may be gone
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _install(folder / "environment")
            _fetch(folder, jars)
            complete.touch()
    return Environment(python, sorted(jars.glob("*.jar")))


def _install(folder: Path) -> None:
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--no-python-downloads", "--python", sys.executable, str(folder)], folder.parent)
    _run(
        [*uv, "pip", "install", "--quiet", "--system-certs", "--python", str(folder / "bin/python"),
         f"pyspark=={SPARK}"],
        folder.parent,
    )  # fmt: skip


def _fetch(folder: Path, jars: Path) -> None:
    (folder / "pom.xml").write_text(_POM)
    _run(
        [program("mvn"), "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies",
         f"-DoutputDirectory={jars}", "-DincludeScope=runtime", f"-DincludeGroupIds={_GROUPS}"],
        folder,
    )  # fmt: skip


def _run(command: Sequence[str], folder: Path) -> None:
    ended = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Unavailable(f"{' '.join(command)} failed: {(ended.stdout + ended.stderr)[-600:]}")


class Answer(NamedTuple):
    """What a statement gave."""

    columns: list[dict[str, object]]
    """As Spark's schema in JSON has them."""
    rows: list[str]
    """Each as JSON text, sorted."""


class Refused(Exception):
    """Spark's error of a statement."""


class OtherSpark:
    """A session of that Spark, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def sql(self, statement: str) -> Answer:
        """Run a statement. Raises Refused."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(statement) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"Spark {SPARK} has ended:\n{self._log.read_text(errors='replace')[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return Answer(answer["columns"], sorted(answer["rows"]))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[OtherSpark]:
    """A session that keeps its own files in ``folder``, and is stopped at the end. Raises Unavailable."""
    python, jars = environment()
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
    }  # fmt: skip
    if "JAVA_HOME" in os.environ:
        variables["JAVA_HOME"] = os.environ["JAVA_HOME"]
    log = folder / "spark.log"
    with (
        open(log, "wb") as errors,
        subprocess.Popen(
            [str(python), "-I", str(SERVER), ",".join(map(str, jars)), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="ascii",
            cwd=folder,
            env=variables,
            start_new_session=True,  # so that its JVM can be ended with it
        ) as process,
    ):
        try:
            yield OtherSpark(process, log)
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
