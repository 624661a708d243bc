"""Errors of tasks, out of what Spark says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.errors import CommandError
from kshell.spark import cli
from kshell.spark.failures import of_task, of_worker
from kshell.spark.tables.data_files import WRITE_HINT

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
