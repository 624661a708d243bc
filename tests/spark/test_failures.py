"""Errors of tasks, out of what Spark says of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kshell.errors import CommandError
from kshell.spark import cli
from kshell.spark.failures import of_task, of_worker
from kshell.spark.tables.data_files import WRITE_HINT
from kshell.spark.verbs import query
from tests.full_disk import file_size_limit

pyspark = pytest.importorskip("pyspark.errors")

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "./kshell.zip/kshell/protocol/checksum.py", line 30, in _package
    import crc32c as package
{0}
"""


def failed(line: str) -> Exception:
    """As Spark raises what a worker has raised."""
    error: Exception = pyspark.PythonException(WORKER.format(line))
    return error


def test_what_kept_a_task_from_writing() -> None:
    found = of_task(failed("kshell.errors.CommandError: /out/bronze/records: No space left on device"))
    assert isinstance(found, CommandError)
    assert (found.message, found.hint) == ("/out/bronze/records: No space left on device", WRITE_HINT)


@pytest.mark.parametrize(("kind", "code"), [("SourceError", 3), ("DataError", 4)])
def test_what_kept_a_task_from_reading_a_table(kind: str, code: int) -> None:
    found = of_task(failed(f"kshell.errors.{kind}: s3://b/out/silver/topics/x.parquet: AWS Error SLOW_DOWN"))
    assert isinstance(found, CommandError)
    assert (found.message, found.exit_code) == ("s3://b/out/silver/topics/x.parquet: AWS Error SLOW_DOWN", code)
    assert found.hint is None


def test_a_query_tells_what_its_tasks_could_not_read() -> None:
    def sql(text: str) -> None:
        raise failed("kshell.errors.SourceError: s3://b/out/silver/topics/x.parquet: AWS Error SLOW_DOWN")

    warehouse: Any = SimpleNamespace(spark=SimpleNamespace(sql=sql))
    with pytest.raises(CommandError, match=r"^s3://b/out/silver/topics/x\.parquet: ") as raised:
        query._answer(warehouse, "SELECT 1")
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("module", ["crc32c", "kshell", "pyarrow.parquet"])
def test_executors_without_a_package(module: str) -> None:
    found = of_task(failed(f"ModuleNotFoundError: No module named '{module}'"))
    assert isinstance(found, CommandError)
    assert found.message == f"executors have no Python module {module}"
    assert "pip install 'kraft-shell[spark]'" in (found.hint or "")


def test_the_error_of_a_streams_own_python_process() -> None:
    found = of_worker(failed("kshell.errors.SourceNotFoundError: /fleet: no such file or directory"))
    assert isinstance(found, CommandError)
    assert (found.message, found.exit_code) == ("/fleet: no such file or directory", 3)
    assert of_worker(failed("ValueError: kshell.errors.SourceNotFoundError: /fleet")) is None


def test_a_full_disk_where_spark_keeps_temporary_files(tmp_path: Path) -> None:
    """Java's error when tasks spill, and Python's when pyspark hands rows to Java through a file."""
    py4j: Any = pytest.importorskip("py4j.protocol")
    with pytest.raises(OSError) as of_python, file_size_limit(10), (tmp_path / "rows").open("wb", buffering=0) as file:
        while True:
            file.write(b"12345678")
    for error in (failed("java.io.IOException: No space left on device"), of_python.value):
        found = of_task(error)
        assert isinstance(found, CommandError)
        assert found.message.startswith("no space left in Spark's directory for temporary files")
        assert found.hint == "make room there, or --conf spark.local.dir=DIR"
    assert of_task(py4j.Py4JError("No space left on device")) is not None
    assert of_task(ValueError("No space left on device")) is None
    named = of_task(OSError(28, "No space left on device", "/out/report.html"))
    assert named is not None and named.message == "/out/report.html: No space left on device"


def test_a_process_of_spark_was_killed() -> None:
    py4j: Any = pytest.importorskip("py4j.protocol")
    silent = "An error occurred while calling o50.collect"
    ends = [
        py4j.Py4JError(silent),
        py4j.Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111),
    ]
    ends.append(failed("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"))
    found = [cause.message for cause in map(of_task, ends) if cause is not None]
    assert found == ["the Java process of Spark was killed, or failed"] * 3 + [
        "a Python worker of Spark was killed, or failed"
    ]
    assert of_task(py4j.Py4JError("org.apache.spark.Foo does not exist in the JVM")) is None
    assert of_task(py4j.Py4JError(f"{silent}. Trace:\npy4j.Py4JException: no such method")) is None


def test_what_is_something_else() -> None:
    assert of_task(failed("ValueError: ModuleNotFoundError: No module named 'x'")) is None
    assert of_task(ValueError("\nModuleNotFoundError: No module named 'x'\n")) is None
    assert of_task(ModuleNotFoundError("No module named 'x'")) is None


def test_it_is_no_fault_of_kshell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise failed("ModuleNotFoundError: No module named 'crc32c'")

    monkeypatch.setattr("kshell.spark.steps.planning.find", fails)
    assert cli.main(["run", "--source", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "kshell-pipeline: executors have no Python module crc32c" in said
    assert "PYSPARK_PYTHON" in said
    assert "fault of kshell" not in said
