"""Reads through the data source's own planning and decoding, without Spark, and what ``dump`` says of the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import CorruptDataError
from kshell.metadata.redaction import Redaction
from kshell.sources.directory.records import DecodedRecords, log_records, snapshot_records
from kshell.sources.directory.source import DirectorySource
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import partitions
from kshell.spark.options import parse
from kshell.tables.arrow import json_text
from tests.needed import is_required

needs_arrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None and not is_required(), reason="pyarrow is not installed"
)

LogCopy = tuple[str, int | None, str]
"""(file, byte, reason) of damage and torn tails."""
COLUMNS = ("offset", "epoch", "timestampMs", "type", "version", "data", "position")


def rows(path: Path | str, **options: str) -> list[dict[str, Any]]:
    """The rows of a read, in the order of its partitions."""
    asked = parse({"path": str(path), **options})
    view = View(asked.view, asked.fields(), asked.narrowing, show_secrets=asked.show_secrets)
    return [row for slices in partitions(asked) for batch in view.batches(slices) for row in batch.to_pylist()]


def records(path: Path | str, **options: str) -> list[tuple[Any, ...]]:
    """The rows of the view ``records``, as :func:`dumped` has them."""
    return [tuple(row[name] for name in COLUMNS) for row in rows(path, **options)]


def findings(path: Path | str, **options: str) -> set[LogCopy]:
    """Damage and torn tails by the view ``quarantine``."""
    found = rows(path, view="quarantine", **options)
    return {(Path(row["file"]).name, row["position"], row["reason"]) for row in found if row["kind"] in _KINDS}


_KINDS = ("batch", "torn")


def dumped(directory: Path) -> tuple[list[tuple[Any, ...]], set[LogCopy]]:
    """What ``dump`` prints of a directory, and the damage that it names at the end."""
    source = DirectorySource(str(directory))
    listing = source.listing()
    made: DecodedRecords
    made = log_records(source) if listing.segments else snapshot_records(listing, listing.snapshots[-1])
    redaction = Redaction()
    printed: list[tuple[Any, ...]] = [
        (
            record.offset, record.epoch, record.timestamp, record.decoded.name, record.decoded.version,
            json_text(redaction.record(record.decoded)), record.position,
        )
        for record in made
    ]  # fmt: skip
    found: set[LogCopy] = {
        (Path(e.file).name, e.position, e.reason) for e in made.damage if isinstance(e, CorruptDataError)
    }
    if made.torn is not None:
        found.add((Path(made.torn[0]).name, made.torn[1].position, made.torn[1].reason))
    return printed, found
