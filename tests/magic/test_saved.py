"""What a notebook saves, what IPython remembers and what an export shows: no secret, and nothing that is not text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="the tools of a notebook are not installed")
nbclient = pytest.importorskip("nbclient", reason="the tools of a notebook are not installed")
nbconvert = pytest.importorskip("nbconvert", reason="the tools of a notebook are not installed")

from tests import builders  # noqa: E402
from tests.canaries.planted import IMAGE, NEWLINE, Canaries, hostile_values, secret_values  # noqa: E402
from tests.commands.test_secrets import LINES  # noqa: E402

pytestmark = pytest.mark.slow

_LINES = (
    *LINES,
    "why orders-0",
    "diff 3 now --show-secrets",
    "find / --values --show-secrets",
    "dump --show-secrets",
    "watch --times 1 configs",
    "topics -o html",
    "topics -o markdown",
    "log -o wide",
)


@pytest.fixture(scope="module")
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, canaries: Canaries) -> Iterator[Path]:
    """A notebook that ran every command on such data, saved, with IPython's history beside it."""
    folder = tmp_path_factory.mktemp("saved")
    data = folder / "data"
    builders.write_snapshot(data, builders.snapshot(secret_values(canaries, "snapshot")), end_offset=3)
    batch = builders.batch([*secret_values(canaries, "log"), *hostile_values()], 4)
    builders.write_log(data, builders.control_batch([builders.leader_change()], 3), batch, base_offset=3)
    book = nbformat.v4.new_notebook()
    cells = [f"%load_ext kshell\n%kafka connect -d {data}"]
    cells += [f"%kafka {line}" for line in _LINES]
    cells += [f"x = %kafka {line}\nx" for line in ("topics", "cat /image/scram", "diff 3 now")]
    cells += ["y = %kafka partitions\ny.diff(y.__class__(y.answer))", "x.plot()", "%kafka timeline --all"]
    cells += [
        "%kafka cat '/image/topics/byName/<img src=x onerror=alert(1)>'",
        "%%kafka --keep-going\nls '\x1b[31m'\npwd",
    ]
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    environment = {"IPYTHONDIR": str(folder / "ipython"), "HOME": str(folder)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        nbclient.NotebookClient(
            book,
            timeout=120,
            kernel_name="python3",
            allow_errors=True,
            ipython_hist_file=str(folder / "history.sqlite"),
            extra_arguments=["--HistoryManager.db_log_output=True"],
        ).execute()
    nbformat.write(book, folder / "saved.ipynb")
    yield folder


def outputs(folder: Path) -> list[Any]:
    """Every text of every output."""
    book = json.loads((folder / "saved.ipynb").read_text())

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for below in value.values():
                yield from texts(below)
        elif isinstance(value, list):
            # Jupyter saves a text as its lines.
            joined = "".join(value) if all(isinstance(item, str) for item in value) else None
            yield from [joined] if joined is not None else (text for item in value for text in texts(item))
        elif isinstance(value, str):
            yield value

    return [text for cell in book["cells"] for text in texts(cell["outputs"])]


def test_cells_gave_answers(saved: Path) -> None:
    book = json.loads((saved / "saved.ipynb").read_text())
    errors = {
        output["ename"]: cell["source"] for cell in book["cells"] for output in cell["outputs"] if "ename" in output
    }
    assert set(errors) <= {"NoSuchPathError", "UsageError", "CommandError", "DataError"}, errors
    assert sum(bool(cell["outputs"]) for cell in book["cells"]) > 50
    assert any("&lt;img src=x onerror=alert(1)&gt;" in text for text in outputs(saved))


def test_no_secret_is_saved(saved: Path, canaries: Canaries) -> None:
    assert canaries.made
    assert canaries.seen_in((saved / "saved.ipynb").read_text()) == set()


def test_no_secret_is_in_the_history(saved: Path, canaries: Canaries) -> None:
    with sqlite3.connect(saved / "history.sqlite") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [str(row) for name in tables for row in connection.execute(f"SELECT * FROM {name}")]
    connection.close()
    assert any("%kafka" in row for row in rows)
    assert canaries.seen_in("\n".join(rows)) == set()


def test_names_are_text(saved: Path) -> None:
    for text in outputs(saved):
        assert "\x1b" not in text
        assert NEWLINE not in text
        assert "\u202e" not in text
        if "<table" in text or "<details" in text or "<p" in text:
            assert "<img src=x" not in text and "<script" not in text and '" onmouseover' not in text


def test_an_exported_page_holds_neither(saved: Path, canaries: Canaries) -> None:
    page, _ = nbconvert.HTMLExporter().from_filename(str(saved / "saved.ipynb"))
    assert canaries.seen_in(page) == set()
    assert IMAGE not in page and "<script>alert(2)" not in page and "\x1b" not in page
