"""``dump`` holds what kafka-dump-log prints, record by record."""

from __future__ import annotations

import functools
import json
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.kafka import dumplog, jars
from tests.kafka.dumplog import Row
from tests.live import oneshot

pytestmark = pytest.mark.live

FIXTURES = Path(__file__).parents[1] / "fixtures"
DEMO = Path(__file__).parents[2] / "kshell" / "demo"
DIRECTORIES = [DEMO, *sorted(path.parent for path in FIXTURES.glob("*/*/__cluster_metadata-0"))]
SNAPSHOTS = sorted(file for directory in DIRECTORIES for file in directory.glob("__cluster_metadata-0/*-*.checkpoint"))


def name(path: Path) -> str:
    """Return what to call a directory or file in the test's id."""
    base = DEMO.parent if path.is_relative_to(DEMO) else FIXTURES
    return "-".join(part for part in path.relative_to(base).parts if part != "__cluster_metadata-0")


@functools.cache
def kafka() -> dict[Path, list[Row]]:
    """Return kafka-dump-log's rows of every file, from one run."""
    segments = [file for directory in DIRECTORIES for file in directory.glob("__cluster_metadata-0/*.log")]
    return dumplog.dump([*segments, *SNAPSHOTS])


def ours(source: Path) -> list[Row]:
    """Return the rows that kshell dumps."""
    return [json.loads(line) for line in oneshot.lines(source, "dump", "-o", "jsonl", "--show-secrets")]


def compare(found: list[Row], expected: list[Row]) -> None:
    """Fail at the first record that differs."""
    for mine, theirs in zip_longest(found, expected):
        assert mine == theirs
    assert expected


@pytest.mark.parametrize("directory", DIRECTORIES, ids=name)
def test_log_of_a_directory(directory: Path) -> None:
    jars.require()
    segments = sorted(directory.glob("__cluster_metadata-0/*.log"))
    compare(ours(directory), [row for segment in segments for row in kafka()[segment]])


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=name)
def test_snapshot(snapshot: Path) -> None:
    jars.require()
    compare(ours(snapshot), kafka()[snapshot])


def test_a_single_segment() -> None:
    jars.require()
    segment = sorted(DEMO.glob("__cluster_metadata-0/*.log"))[1]
    compare(ours(segment), kafka()[segment])
