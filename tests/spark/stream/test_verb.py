"""``kshell-pipeline stream``: where segments vanished before they were read its tables go on with a snapshot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark import cli
from tests.builders import FIXTURES
from tests.spark.beyond import CHEAP, confs
from tests.spark.here import need_spark
from tests.spark.warehouses import delta_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak, pytest.mark.long]
NODE = FIXTURES / "4.2.1-rolled/controller-3002"
KEYS = {"topics": "topicId", "partitions": "topicId", "brokers": "id", "configs": "resourceName", "features": "name"}


def piped(verb: str, source: Path, out: Path, *words: str) -> int:
    """Runs a verb here; its exit code."""
    need_spark()
    more = ["--checkpoint", f"{out}-checkpoint", "--available-now"] if verb == "stream" else []
    place = ["--source", str(source), "--out", str(out)]
    return cli.main([verb, *place, "--master", "local[1]", *confs(CHEAP), *more, *words])


def rows(out: Path, table: str) -> list[str]:
    """As anybody reads them, without what is about files."""
    kept = ({name: row[name] for name in row if name != "file"} for row in delta_rows(out / table))
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in kept)


def steps(out: Path) -> list[dict[str, Any]]:
    """What the log of steps has."""
    return delta_rows(out / "_kshell/steps")


def copied(target: Path, *names: str) -> Path:
    """Some files of the recorded directory, in place of what is there."""
    place = target / METADATA_DIRECTORY
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copyfile(NODE / "meta.properties", target / "meta.properties")
    for name in (*names, "leader-epoch-checkpoint"):
        shutil.copyfile(NODE / METADATA_DIRECTORY / name, place / name)
    return target


@pytest.mark.usefixtures("without_gold")
def test_tables_go_on_after_what_vanished_with_the_snapshot_that_covers_it(tmp_path: Path) -> None:
    segments = sorted(path.name for path in (NODE / METADATA_DIRECTORY).glob("*.log"))
    snapshots = sorted(path.name for path in (NODE / METADATA_DIRECTORY).glob("*.checkpoint"))
    assert int(segments[3][:20]) < int(segments[-2][:20]) < int(snapshots[-1][:20]), "what this test needs"
    source, out = copied(tmp_path / "c", *segments[:3]), tmp_path / "tables"
    assert piped("stream", source, out) == 0
    before = rows(out, "silver/topics")
    copied(source, *segments[-2:], snapshots[-1])
    assert piped("stream", source, out) == 4, "what is missing is told"
    assert any('"kind": "gap"' in row for row in rows(out, "bronze/quarantine"))
    assert before and rows(out, "silver/topics") != before
    once = tmp_path / "once"
    assert piped("run", source, once) in (0, 4)
    for table, key in KEYS.items():
        current = [json.loads(row) for row in rows(out, f"silver/{table}")]
        expected = [json.loads(row) for row in rows(once, f"silver/{table}")]
        assert _current(current, key) == _current(expected, key), table
    known = steps(out)
    assert piped("stream", source, out) == 0
    assert steps(out) == known and known, "nothing new, no step"


def _current(versions: list[dict[str, Any]], key: str) -> list[str]:
    """The rows that hold now, without since when: that is another moment for who saw it come about."""
    now = [row for row in versions if row["isCurrent"]]
    return sorted(
        json.dumps({name: row[name] for name in row if not name.startswith("valid")}, sort_keys=True, default=str)
        for row in sorted(now, key=lambda row: str(row[key]))
    )
