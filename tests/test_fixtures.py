"""Every leaf of every recorded directory, as Kafka's own classes see it.

``expected-image.tsv`` was printed by Kafka's own image classes. The directories are also read with all snapshots
removed (where the log starts at 0) and with each older snapshot as the newest.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.protocol import framing
from kshell.sources.directory.source import DirectorySource
from tests.kafka import text
from tests.leaves import printed

FIXTURES = Path(__file__).parent / "fixtures"
DIRECTORIES = sorted(
    path.parent for path in FIXTURES.rglob("expected-image.tsv") if (path.parent / "meta.properties").exists()
)


def lines(directory: Path, until: int | None = None) -> list[str]:
    session = Session(DirectorySource(str(directory)), show_secrets=True, until=until)
    found = printed(session)
    assert not session.problems()
    return found


def expected(directory: Path, name: str = "expected-image.tsv") -> text.Expected:
    return text.read((directory / name).read_text())


def ident(directory: Path) -> str:
    return "/".join(directory.parts[-2:])


def test_there_are_directories() -> None:
    assert len(DIRECTORIES) >= 14


@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_every_leaf(directory: Path) -> None:
    assert text.compare(expected(directory), lines(directory)) == []


def test_every_leaf_of_what_patterns_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots of these directories are so small that no pattern would be compiled for them."""
    monkeypatch.setattr(framing, "_SMALL", 1)
    monkeypatch.setattr(framing, "_PATIENCE", 1)
    runs = 0

    def counted(*parts: Any) -> framing.TopicRun:
        nonlocal runs
        runs += 1
        return framing.TopicRun(*parts[0])

    monkeypatch.setattr(framing, "_new_topic_run", counted)
    for directory in DIRECTORIES:
        assert text.compare(expected(directory), lines(directory)) == [], ident(directory)
    assert runs > 50


def snapshots(directory: Path) -> list[Path]:
    return sorted((directory / "__cluster_metadata-0").glob("*-*.checkpoint"))


def log_starts_at_zero(directory: Path) -> bool:
    return (directory / "__cluster_metadata-0" / f"{0:020d}.log").exists()


def copy(directory: Path, to: Path) -> Path:
    shutil.copytree(directory, to / directory.name)
    return to / directory.name


@pytest.mark.parametrize("directory", [d for d in DIRECTORIES if log_starts_at_zero(d)], ids=ident)
def test_the_log_alone(directory: Path, tmp_path: Path) -> None:
    twin = copy(directory, tmp_path)
    for snapshot in snapshots(twin):
        snapshot.unlink()
    assert text.compare(expected(directory), lines(twin)) == []


@pytest.mark.parametrize("directory", DIRECTORIES, ids=ident)
def test_each_older_snapshot_as_the_newest(directory: Path, tmp_path: Path) -> None:
    twin = copy(directory, tmp_path)
    first = min(int(path.name[:20]) for path in (twin / "__cluster_metadata-0").glob("*.log"))
    for snapshot in reversed(snapshots(twin)[1:]):
        snapshot.unlink()
        older = snapshots(twin)[-1]
        if int(older.name[:20]) < first:
            break  # the log no longer reaches back to that snapshot
        assert text.compare(expected(directory), lines(twin)) == [], older.name


@pytest.mark.parametrize("directory", [d for d in DIRECTORIES if (d / "expected-at-300.tsv").exists()], ids=ident)
def test_as_of_300(directory: Path, tmp_path: Path) -> None:
    wanted = expected(directory, "expected-at-300.tsv")
    # That file's last line tells where the log ends, not where it was cut.
    assert text.compare(dataclasses.replace(wanted, last_offset=300), lines(directory, until=300)) == []
