"""Runs a notebook from a clean kernel, in a directory and with a home of its own.

A process for each: ``python -m tests.notebooks.running NOTEBOOK TARGET``, which is what :func:`run` starts. So whatever
nbclient changes or warns about stays out of the process that tests.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
SECONDS = 600
"""For a whole notebook; a cell has half of it."""

Notebook = dict[str, Any]


class CellFailed(Exception):
    """A notebook did not run to its end; the message is what nbclient and the kernel said."""


def names() -> list[str]:
    """Names of the notebooks, without their ending."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def read(name: str) -> Notebook:
    """A notebook as it is in git."""
    found: Notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))
    return found


def run(name: str, work: Path, extra: Mapping[str, str] | None = None) -> Notebook:
    """Executes a notebook in the directory ``work`` and gives it with its outputs. Raises CellFailed.

    Of the environment it gets what Python and Java need, ``extra``, and an empty home below ``work``.
    """
    home = work / "home"
    home.mkdir(parents=True)
    target = work / f"{name}-executed.ipynb"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KSHELL_", "XDG_", "JUPYTER"))}
    env = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", **(extra or {})}
    command = [sys.executable, "-m", "tests.notebooks.running", str(NOTEBOOKS / f"{name}.ipynb"), str(target)]
    done = subprocess.run(
        command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        encoding="utf-8", timeout=SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise CellFailed(f"{name}: {done.stderr[-4000:]}")
    executed: Notebook = json.loads(target.read_text("utf-8"))
    return executed


def outputs(notebook: Notebook) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every output, with the id of its cell."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            yield cell["id"], output


def text(notebook: Notebook, cell: str) -> str:
    """All that a cell shows, as text. Raises AssertionError if there is no such cell."""
    assert cell in {one["id"] for one in notebook["cells"]}, f"there is no cell {cell}"
    return "\n".join(_plain(output) for owner, output in outputs(notebook) if owner == cell)


def _plain(output: dict[str, Any]) -> str:
    """What a reader without pictures sees. IPython's own Markdown has no plain form worth the name."""
    if output["output_type"] == "stream":
        return joined(output["text"])
    data = output.get("data", {})
    plain = joined(data.get("text/plain", ""))
    return joined(data["text/markdown"]) if plain.startswith("<IPython.core.display.Markdown") else plain


def joined(lines: str | list[str]) -> str:
    """A text as nbformat has it: one, or a list of lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def _execute(source: Path, target: Path) -> None:
    nbformat: Any = importlib.import_module("nbformat")
    nbclient: Any = importlib.import_module("nbclient")
    manager: Any = importlib.import_module("jupyter_client.manager")

    notebook = nbformat.read(source, as_version=4)
    # A socket in a file: no port that somebody else could take or read. Such paths have to be short.
    with tempfile.TemporaryDirectory(prefix="ks") as short:
        kernel = manager.AsyncKernelManager(
            kernel_name="python3", transport="ipc", connection_file=f"{short}/kernel.json", ip=f"{short}/kernel"
        )
        client = nbclient.NotebookClient(notebook, km=kernel, timeout=SECONDS // 2, record_timing=False)
        client.execute()
    nbformat.write(notebook, target)


if __name__ == "__main__":
    _execute(Path(sys.argv[1]), Path(sys.argv[2]))
