"""An IPython of its own for each test, with the extension loaded and what it displays recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="the extra notebook is not installed")

from tests.magic.shell import Cells


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cells]:
    """IPython with the extension, and no session."""
    for name in ("KSHELL_DIRECTORY", "KSHELL_BOOTSTRAP_CONTROLLERS", "KSHELL_CONTEXT", "KSHELL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = Cells()
    yield cells
    cells.close()


@pytest.fixture
def cells(bare: Cells) -> Cells:
    """The same, connected to the sample."""
    bare.run("%kafka connect --demo;")
    bare.shown.clear()
    return bare
