"""The Spark session: on this machine with settings that suit it, or on a cluster, which decides for itself.

On this machine (no ``--master``, or ``local…``) everything that is needed is found or brought along: Java, the jars of
Spark, the Python of the workers; and nothing listens beyond the loopback address. With any other master, and under
``spark-submit``, only what the tables depend on is set: the time zone.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import pwd
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshell.errors import CommandError, SourceError, UsageError
from kshell.extras import missing
from kshell.spark import java, jvm_options
from kshell.spark.interrupts import quiet
from kshell.spark.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kshell-pipeline"
_LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?")
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started the JVM and has the settings."""
_REMOTE = "SPARK_REMOTE"
_CONTAINER = "/sys/fs/cgroup/memory.max"
"""The limit of control groups, version 2, in bytes."""
_OF_TABLES = {
    # Days and months of the tables are UTC's, wherever the session runs.
    "spark.sql.session.timeZone": "UTC",
}


def is_local(master: str) -> bool:
    """Whether a master URL means this process: ``local``, ``local[2]``, ``local[*]`` (``local-cluster`` does not)."""
    return _LOCAL.fullmatch(master) is not None


def is_here(spark: SparkSession) -> bool:
    """Whether a session's tasks run in this machine's own files: a Connect server may be anywhere."""
    is_connect = ".connect." in type(spark).__module__
    return not is_connect and is_local(str(spark.conf.get("spark.master", "")))


def check(master: str | None) -> None:
    """Raises UsageError for a master that begins like one on this machine and is none (``local[0]``)."""
    if master is not None and master.startswith("local") and not master.startswith("local-cluster["):
        cores_of(master)


def is_started_here(master: str | None) -> bool:
    """Whether a session of that ``--master`` would be one on this machine, which this module decides about."""
    return is_local(master or _surrounding(os.environ))


def active() -> SparkSession | None:
    """The session that is active in this thread. Raises UsageError where pyspark is not installed."""
    return _spark_session().getActiveSession()


@contextlib.contextmanager
def running(
    master: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
    log_level: str = "error",
) -> Iterator[SparkSession]:
    """A session, stopped at the end if it was started here; one that is active is used as it is.

    ``master``: ``None`` is what spark-submit or ``SPARK_REMOTE`` say, else all cores of this machine; ``sc://…`` is
    Spark Connect. ``settings`` win over what this module sets; ``brief`` and ``log_level`` (off, error, warn, info,
    debug) only count on this machine (see :func:`local`).

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
                ship(session, folder)  # spark-submit was told what to ship
            with quiet(session) if is_local(chosen) else contextlib.nullcontext():
                yield session
        except BaseException:
            with contextlib.suppress(Exception):  # Spark may be gone, which is what was raised then
                session.stop()
            raise
        session.stop()


def _surrounding(environment: Mapping[str, str]) -> str:
    """The master without ``--master``; ``""`` under spark-submit, which has one."""
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
    """A session on this machine. Managed tables would go below ``warehouse``. Raises as :func:`running` does.

    ``brief`` is for sessions of seconds (tests, ``doctor``): the JVM compiles quickly, not well, and has Spark's own
    gigabyte; others have a quarter of the memory.
    """
    _check_user()
    java_home = java.find(os.environ)
    environment = local_environment(java_home, os.environ)
    collects = not jvm_options.names_collector(settings or {}, os.environ, environment["SPARK_HOME"])
    java_options = jvm_options.options(log_level, brief=brief, collects=collects)
    heap = {} if brief else {"spark.driver.memory": f"{heap_megabytes()}m"}
    wanted = local_settings(master, warehouse, java_options) | heap | dict(settings or {})
    with _environment(environment):
        return _started(
            wanted, f"Spark did not start on this machine (Java {java_home.version}, {java_home.why})", CommandError
        )


def _check_user() -> None:
    """Raises CommandError for a user without a name, as containers have that run as any number.

    Spark does not start without Hadoop's login, which asks the machine for it (``UnixLoginModule``: "Invalid UID").
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
    """What a session on this machine is started with."""
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
        # Not extraJavaOptions: those stay the person's own, and come after these.
        "spark.driver.defaultJavaOptions": " ".join(java_options),
    }


def heap_megabytes() -> int:
    """A quarter of this machine's memory, or of what its container may have; Spark's own gigabyte at the least."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(_CONTAINER, encoding="ascii") as file:
        total = min(total, int(file.read()))  # "max" where there is no limit
    return max(total // 4 >> 20, 1024)


def cores_of(master: str) -> int:
    """How many tasks run at once under a local master."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        raise UsageError(f"{master}: no master on this machine", hint="local, local[2], local[*]")
    if match[2] == "*":
        return os.cpu_count() or 1
    return int(match[2] or 1)


def local_environment(java_home: java.Java, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the JVM and its Python workers are started with."""
    variables = {
        "JAVA_HOME": java.home_for_spark(java_home, environment),
        "SPARK_HOME": spark_home(environment),
        "SPARK_LOCAL_IP": _LOOPBACK,
        # Else workers are whatever python3 is on the path.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Nothing in the directory where the command was started is a module of theirs.
        "PYTHONSAFEPATH": "1",
    }
    return variables | _python_path(environment)


def _python_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Workers must find this package, also when it runs from a checkout."""
    import sysconfig

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    entries = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    # The place of installed packages is on every worker's path, behind the standard library, where it belongs.
    if root in entries or root in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return {}
    return {"PYTHONPATH": os.pathsep.join([*entries, root])}


def spark_home(environment: Mapping[str, str]) -> str:
    """The directory of Spark's jars: ``SPARK_HOME`` where that is the Spark of this pyspark, else pyspark's own.

    Raises UsageError where pyspark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    own = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""
    configured = environment.get("SPARK_HOME", "")
    if not own:
        raise _no_pyspark()
    version = jars_version(own)
    return configured if configured and version in (None, jars_version(configured)) else own


def jars_version(home: str) -> str | None:
    """The version of the Spark whose jars are below ``home``; ``None`` where none are."""
    jars = glob.glob(os.path.join(glob.escape(home), "jars", "spark-core_*.jar"))  # spark-core_2.13-4.3.0.jar
    return os.path.basename(jars[0]).removesuffix(".jar").partition("-core_")[2].partition("-")[2] if jars else None


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables for a while: only while the JVM starts do they count."""
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


# --- elsewhere -------------------------------------------------------------------------------------------------------


def elsewhere(master: str, *, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on a cluster, by Connect (``sc://host:port``), or as spark-submit says (``""``).

    Memory, cores, shuffles, the Python of the executors and logs are the cluster's business.
    """
    wanted = _OF_TABLES | dict(settings or {})
    if not master:
        return _started(wanted, "spark-submit: no session", SourceError)
    if master.startswith("sc://"):
        return _started({"spark.remote": master} | wanted, f"{master}: no session", SourceError)
    # The driver's JVM runs here and needs a Java like any other; executors have the one of their machine.
    _check_user()
    driver = {"JAVA_HOME": java.home_for_spark(java.find(os.environ), os.environ)}
    with _environment(driver):
        return _started({"spark.master": master} | wanted, f"{master}: no session", SourceError)


def _started(settings: Mapping[str, str], failed: str, kind: type[CommandError | SourceError]) -> SparkSession:
    builder: Any = _spark_session().builder.appName(NAME)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        # py4j, pyspark and grpc raise unrelated kinds; what they say of it stands in their first line, but for py4j's.
        lines = [line for line in str(error).strip().split("\n") if not line.startswith("An error occurred while")]
        reason = lines[0].lstrip(": ")[:300] if lines else ""
        raise kind(f"{failed}: {reason or type(error).__name__}", hint=f"`{NAME} doctor` looks into it") from error
    return session


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
