"""Start Spark sessions: on this machine with suitable settings, or on a cluster with the cluster's own settings.

On this machine (no ``--master``, or ``local…``) this module finds everything that Spark needs: Java, the jars of Spark,
the Python of the workers; and Spark listens on the loopback address only. With any other master, and under
``spark-submit``, it sets only what the tables depend on: the time zone.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import pathlib
import pwd
import re
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kshell.errors import CommandError, KshellError, SourceError, UsageError
from kshell.extras import missing
from kshell.spark import java
from kshell.spark.interrupts import quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kshell-pipeline"
_LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?")
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The variable that spark-submit sets, which has then started the JVM with its own settings."""
_REMOTE = "SPARK_REMOTE"
_CONTAINER = "/sys/fs/cgroup/memory.max"
"""The file with a container's memory limit in bytes (control groups, version 2)."""
_OF_TABLES = {
    # Days and months in the tables are those of UTC, wherever the session runs.
    "spark.sql.session.timeZone": "UTC",
}

FOR_FEW_ROWS = {
    # With little data, most of the time would go into compiling generated code.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Of a wide window Spark would infer very many constraints, and use next to none of them (decision 74).
    "spark.sql.constraintPropagation.enabled": "false",
    # Otherwise Spark parses each text twice, the first time to look for parameters, which kshell's texts do not have.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
}
"""Settings for queries over few rows, which Spark takes longer to plan than to compute."""


_PACKAGE = "kshell"
ZIP = f"{_PACKAGE}.zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def is_local(master: str) -> bool:
    """Whether a master URL means this process: ``local``, ``local[2]``, ``local[*]`` (``local-cluster`` does not)."""
    return _LOCAL.fullmatch(master) is not None


def is_here(spark: SparkSession) -> bool:
    """Whether a session's tasks run on this machine and see its files. A Connect server may be anywhere."""
    is_connect = ".connect." in type(spark).__module__
    return not is_connect and is_local(str(spark.conf.get("spark.master", "")))


def check(master: str | None) -> None:
    """Raise UsageError for a master that begins with ``local`` but is not valid (``local[0]``)."""
    if master is not None and master.startswith("local") and not master.startswith("local-cluster["):
        cores_of(master)


def is_started_here(master: str | None) -> bool:
    """Whether the session for a ``--master`` would run on this machine, with the settings of this module."""
    return is_local(master or _surrounding(os.environ))


def active() -> SparkSession | None:
    """Return the session that is active in this thread, if any. Raises UsageError if pyspark is not installed."""
    return _spark_session().getActiveSession()


@contextlib.contextmanager
def running(
    master: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
    log_level: str = "error",
) -> Iterator[SparkSession]:
    """Start a session for the block and stop it afterwards; a session that is active already is used unchanged.

    ``master``: ``None`` means that of spark-submit or ``SPARK_REMOTE``, else all cores of this machine; ``sc://…`` is
    Spark Connect. ``settings`` override those of this module; ``brief`` and ``log_level`` (off, error, warn, info,
    debug) matter on this machine only (see :func:`local`).

    Raises NoJavaError, UsageError (pyspark is not installed), CommandError and SourceError (it does not start).
    """
    if (active_session := active()) is not None:
        yield active_session
        return
    check(master)
    chosen = master or _surrounding(os.environ)
    with tempfile.TemporaryDirectory(prefix="kshell-spark-", ignore_cleanup_errors=True) as folder:
        if is_local(chosen):
            session = local(chosen, warehouse=folder, settings=settings, brief=brief, log_level=log_level)
        else:
            session = elsewhere(chosen, settings=settings)
        try:
            if chosen and not is_local(chosen):
                ship(session, folder)  # not under spark-submit, whose own options say what to send
            with quiet(session) if is_local(chosen) else contextlib.nullcontext():
                yield session
        except BaseException:
            with contextlib.suppress(Exception):  # Spark may have died, and the block raised that
                session.stop()
            raise
        session.stop()


@contextlib.contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have SQL settings in a session within the block, and afterwards those from before."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # Spark may have died, and the block raised that
            _set(spark, before)
        raise
    _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def _surrounding(environment: Mapping[str, str]) -> str:
    """Return the master if there is no ``--master``; ``""`` under spark-submit, which has one itself."""
    if environment.get(_SUBMITTED):
        return ""
    return environment.get(_REMOTE) or "local[*]"


# --- this machine ----------------------------------------------------------------------------------------------------


def local(
    master: str = "local[*]",
    *,
    warehouse: str,
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
    log_level: str = "error",
) -> SparkSession:
    """Start a session on this machine. Raises as :func:`running` does.

    ``warehouse`` is the directory for Spark's managed tables. ``brief`` is for sessions of seconds (tests, ``doctor``):
    the JVM compiles fast instead of optimizing and has Spark's default heap of 1 GB, not a quarter of the memory.
    """
    _check_user()
    java_home = java.find(os.environ)
    environment = local_environment(java_home, os.environ)
    collects = not names_collector(settings or {}, os.environ, environment["SPARK_HOME"])
    java_options = jvm_options(log_level, brief=brief, collects=collects)
    heap = {} if brief else {"spark.driver.memory": f"{heap_megabytes()}m"}
    wanted = local_settings(master, warehouse, java_options) | heap | dict(settings or {})
    with _environment(environment):
        return _started(
            wanted, f"Spark did not start on this machine (Java {java_home.version}, {java_home.why})", CommandError
        )


def _check_user() -> None:
    """Raise CommandError if the user id has no name on this machine, as in containers that run as an arbitrary user.

    Spark does not start then, because Hadoop's login looks up the name (``UnixLoginModule``: "Invalid UID").
    """
    user = os.getuid()
    try:
        pwd.getpwuid(user)
    except KeyError:
        reason = f"Spark does not start for user {user}: this machine has no name for it (/etc/passwd)"
        hint = (
            "in a container: mount a file that names it (-v /etc/passwd:/etc/passwd:ro where the host does), or run as"
        )
        hint += " the image's own user"
        raise CommandError(reason, hint=hint) from None


def local_settings(master: str, warehouse: str, java_options: Sequence[str] = ()) -> dict[str, str]:
    """Return the settings of a session on this machine, without the memory."""
    cores = cores_of(master)
    return _OF_TABLES | {
        "spark.master": master,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": warehouse,
        # Not extraJavaOptions: those are left to the user, and come after these.
        "spark.driver.defaultJavaOptions": " ".join(java_options),
    }


def heap_megabytes() -> int:
    """Return a quarter of the memory of this machine or container, in MiB; at least 1024, Spark's default."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(_CONTAINER, encoding="ascii") as file:
        total = min(total, int(file.read()))  # "max" where there is no limit
    return max(total // 4 >> 20, 1024)


def cores_of(master: str) -> int:
    """Return how many tasks run in parallel with a local master. Raises UsageError for another master."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        raise UsageError(f"{master}: no master on this machine", hint="local, local[2], local[*]")
    if match[2] == "*":
        return os.cpu_count() or 1
    return int(match[2] or 1)


def local_environment(java_home: java.Java, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for the JVM and its Python workers."""
    variables = {
        "JAVA_HOME": java.home_for_spark(java_home, environment),
        "SPARK_HOME": spark_home(environment),
        "SPARK_LOCAL_IP": _LOOPBACK,
        # Otherwise workers run the first python3 on the path.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Workers must not import modules from the directory in which the command was started.
        "PYTHONSAFEPATH": "1",
    }
    return variables | _python_path(environment)


def _python_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``PYTHONPATH`` with this package's parent directory if workers would not find the package otherwise."""
    import sysconfig

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    entries = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    # Workers have the directory of installed packages on their path anyway, after the standard library.
    if root in entries or root in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return {}
    return {"PYTHONPATH": os.pathsep.join([*entries, root])}


def spark_home(environment: Mapping[str, str]) -> str:
    """Return the home of Spark: ``SPARK_HOME`` if it has the version of the installed pyspark, else pyspark's own.

    Raises UsageError if pyspark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    own = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""
    configured = environment.get("SPARK_HOME", "")
    if not own:
        raise _no_pyspark()
    version = jars_version(own)
    return configured if configured and version in (None, jars_version(configured)) else own


def jars_version(home: str) -> str | None:
    """Return the version of Spark by its jars below ``home``; ``None`` if there are no jars."""
    jars = glob.glob(os.path.join(glob.escape(home), "jars", "spark-core_*.jar"))  # spark-core_2.13-4.3.0.jar
    return os.path.basename(jars[0]).removesuffix(".jar").partition("-core_")[2].partition("-")[2] if jars else None


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the block: only the start of the JVM needs them."""
    removed = (_REMOTE, "SPARK_API_MODE", "SPARK_CONNECT_MODE")  # they would ask for another kind of session
    before = {name: os.environ.get(name) for name in (*variables, *removed)}
    try:
        os.environ.update(variables)
        for name in removed:
            os.environ.pop(name, None)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# --- the JVM's options ------------------------------------------------------------------------------------------------

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


def jvm_options(log_level: str, *, brief: bool = False, collects: bool = True) -> list[str]:
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


# --- elsewhere -------------------------------------------------------------------------------------------------------


def elsewhere(master: str, *, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session on a cluster, through Connect (``sc://host:port``), or the one of spark-submit (``""``).

    Memory, cores, shuffles, logs and the Python of the executors are left to the cluster's settings.
    """
    wanted = _OF_TABLES | dict(settings or {})
    if not master:
        return _started(wanted, "spark-submit: no session", SourceError)
    if master.startswith("sc://"):
        return _started({"spark.remote": master} | wanted, f"{master}: no session", SourceError)
    # The driver's JVM runs on this machine and needs a Java here; executors use that of their machine.
    _check_user()
    driver = {"JAVA_HOME": java.home_for_spark(java.find(os.environ), os.environ)}
    with _environment(driver):
        return _started({"spark.master": master} | wanted, f"{master}: no session", SourceError)


def ship(spark: SparkSession, folder: str) -> None:
    """Make this package importable for the session's tasks; the zip for that is written to ``folder``.

    The packages that kshell needs (``crc32c`` and ``numpy``, which are compiled; ``pyarrow`` and ``pandas``, which
    Spark needs, too) must be installed there, or sent in one of the ways in docs/spark.md.
    """
    spark.addArtifacts(zipped(folder), pyfile=True)


def zipped(folder: str) -> str:
    """Return the path of a zip with the package's code: the one it runs from, or a new one in ``folder``.

    The same code gives the same bytes. Raises UsageError if the code cannot be found.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.isfile(os.path.dirname(root)):
        return os.path.dirname(root)
    if not os.path.isdir(root):
        raise UsageError(f"{root}: no directory, so the package cannot be sent to executors", hint="give --py-files")
    path = os.path.join(folder, ZIP)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_code(root)):
            entry = zipfile.ZipInfo(f"{_PACKAGE}/{os.path.relpath(file, root)}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with open(file, "rb") as source:
                archive.writestr(entry, source.read())
    return path


def _code(root: str) -> list[str]:
    return [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]


def _started(settings: Mapping[str, str], failed: str, kind: type[CommandError | SourceError]) -> SparkSession:
    builder: SparkSession.Builder = _spark_session().builder.appName(NAME)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _no_process_left():
            session: SparkSession = builder.getOrCreate()
    except KshellError:
        raise  # --timeout: the machine may only have been busy
    except Exception as error:
        # py4j, pyspark and grpc raise unrelated types; the cause is in the first line, with py4j in the second.
        lines = [line for line in str(error).strip().split("\n") if not line.startswith("An error occurred while")]
        reason = lines[0].lstrip(": ")[:300] if lines else ""
        raise kind(f"{failed}: {reason or type(error).__name__}", hint=f"`{NAME} doctor` looks into it") from error
    return session


@contextlib.contextmanager
def _no_process_left() -> Iterator[None]:
    """Kill the processes of Spark that the block has started if it raises anything, on Linux.

    Java that is interrupted while it starts never ends, and holds the terminal or the pipe that it inherited.
    """
    before = _children()
    try:
        yield
    except BaseException:
        for number in _children() - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        raise


def _children() -> set[int]:
    """Return the ids of Spark's processes below this one; none where the system does not list them."""
    numbers = set[int]()
    for folder in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            status = pathlib.Path(folder, "stat").read_text("utf-8", errors="replace")
            parent = status.rpartition(")")[2].split()[1]
            if parent == str(os.getpid()) and b"spark" in pathlib.Path(folder, "cmdline").read_bytes():
                numbers.add(int(folder.rpartition("/")[2]))
    return numbers


def _spark_session() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise _no_pyspark() from None
    return SparkSession


def _no_pyspark() -> UsageError:
    return missing(NAME, "spark", "pyspark")
