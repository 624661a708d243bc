"""Files that kshell writes: exports in every format, with all of the past; bundles, reports, redirections."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

from kshell.commands.export import EXPORT_FORMATS as EXPORTED
from kshell.escape import unsafe
from tests.canaries.planted import HOSTILE, Canaries
from tests.canaries.shown import faults
from tests.commands.shell import opened, run

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def values(value: Any) -> Iterator[Any]:
    """What is in a value, at any depth, keys as well."""
    if isinstance(value, dict):
        yield from (each for pair in value.items() for part in pair for each in values(part))
    elif isinstance(value, list | tuple):
        yield from (each for part in value for each in values(part))
    else:
        yield value


def cells(path: Path) -> Iterator[Any]:
    """Every value in a file of an export, by another program than the one that wrote it."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            yield from (cell for row in csv.reader(file) for cell in row)
    elif path.suffix == ".jsonl":
        yield from (each for line in path.read_text("utf-8").splitlines() for each in values(json.loads(line)))
    elif path.suffix == ".parquet":
        yield from values(parquet.read_table(path).to_pylist())
    elif path.suffix == ".sqlite":
        yield from _of_sqlite(path)
    else:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
            for (name,) in connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'file'"
            ).fetchall():
                yield from values(connection.execute(f'SELECT * FROM file."{name}"').fetchall())


def _of_sqlite(path: Path) -> Iterator[Any]:
    connection = sqlite3.connect(path)
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            yield from values(connection.execute(f'SELECT * FROM "{name}"').fetchall())
    finally:
        connection.close()


@pytest.mark.parametrize("fmt", EXPORTED)
def test_an_export_holds_no_secret_and_names_as_they_are(
    sample: Path, canaries: Canaries, fmt: str, tmp_path: Path
) -> None:
    list(run(opened(sample), f"export --format {fmt} --history {tmp_path / 'out'}"))  # type: ignore[call-overload]
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files
    found = [cell for path in files for cell in cells(path)]
    texts = {cell for cell in found if isinstance(cell, str)}
    for path in files:
        assert canaries.seen_in(path.read_bytes().decode("latin-1")) == set(), path.name
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name
    assert canaries.seen_in("\n".join(map(str, found))) == set()
    if fmt != "csv":  # whoever reads these has the exact value
        assert not [name for number, name in enumerate(HOSTILE, 1) if f"{name}{number}" not in texts]
        return
    assert not [text for text in texts if text[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(text)]
    assert not [text for text in texts if unsafe().search(text.replace("\n", "").replace("\t", ""))]


def test_a_bundle_and_a_report_hold_neither(sample: Path, canaries: Canaries, tmp_path: Path) -> None:
    list(run(opened(sample), f"support-bundle {tmp_path / 'bundle.zip'}"))  # type: ignore[call-overload]
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert any("Ignore all previous instructions" in text for text in parts.values())
    for name, text in parts.items():
        assert faults(name.rpartition(".")[2], text, canaries) == [], name
    list(run(opened(sample), f"report --since 100 --to {tmp_path / 'report.html'}"))  # type: ignore[call-overload]
    page = (tmp_path / "report.html").read_text()
    assert "Ignore all previous instructions" in page
    assert faults("html", page, canaries) == []


def test_what_a_save_says_of_itself_holds_none(sample: Path, canaries: Canaries, tmp_path: Path) -> None:
    """The log itself is copied as it is, and is for its owner only."""
    run(opened(sample), f"save {tmp_path / 'saved'}")
    for path in (tmp_path / "saved").rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name
            if path.suffix not in (".log", ".checkpoint"):
                assert faults("json", path.read_text(), canaries) == [], path.name
