"""So much of a log that executors decode it, together with whatever else a run takes in: the driver reads little."""

from __future__ import annotations

from pathlib import Path

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.steps import ingest
from tests.builders import batch, value, write_log

_BATCHES, _RECORDS = 45, 100


def write_filler(directory: Path) -> Path:
    """A cluster of its own, whose config changes again and again; gives its directory."""
    made = (
        value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=f"{n:01000}") for n in range(99)
    )
    records = [*made, value("NO_OP")]
    parts = [batch(records, number * _RECORDS) for number in range(_BATCHES)]
    assert sum(map(len, parts)) > ingest._HERE
    write_log(directory / METADATA_DIRECTORY, *parts)
    (directory / "meta.properties").write_text("version=1\ncluster.id=filler\nnode.id=1\n")
    return directory
