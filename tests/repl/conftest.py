"""A loaded sample, and a home that belongs to the test alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.engine.session import Session
from kshell.sources.directory.source import DirectorySource

DEMO = str(Path(__file__).parents[2] / "kshell" / "demo")


@pytest.fixture
def session() -> Session:
    made = Session(DirectorySource(DEMO, name="demo"))
    _ = made.loaded
    return made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "PAGER", "KSHELL_PAGER", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
