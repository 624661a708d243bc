"""Streams without Spark: what its engine asks of a source, in that order, and a directory that grows bit by bit."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kshell.spark.decoding.decode import View
from kshell.spark.options import UNLIMITED, parse
from kshell.spark.stream.plan import Bounds, latest, slices
from kshell.spark.stream.positions import StreamPositions, offset_of, places_of
from tests.spark.reading import COLUMNS

Row = dict[str, Any]


class Stream:
    """A query over a path. Offsets go through JSON, as in a checkpoint."""

    def __init__(self, path: Path | str, **options: str) -> None:
        self.options = parse({"path": str(path), **options})
        self.places: StreamPositions = {}
        self.batches: list[tuple[StreamPositions, StreamPositions]] = []

    def trigger(self, limit: int = UNLIMITED, within: Bounds | None = None) -> list[Row]:
        """The rows of the next micro-batch, planned twice: none where nothing is new."""
        before = self.places
        after = places_of(json.loads(json.dumps(offset_of(latest(self.options, before, limit, within)))))
        if after == before:
            return []
        self.places = after
        self.batches.append((before, after))
        return self.rows(before, after)

    def rows(self, before: StreamPositions, after: StreamPositions) -> list[Row]:
        """The rows of a micro-batch."""
        options = self.options
        view = View(options.view, options.fields(), options.narrowing, show_secrets=options.show_secrets)
        return [
            row for part in slices(options, before, after) for batch in view.batches(part) for row in batch.to_pylist()
        ]

    def records(self, limit: int = UNLIMITED) -> list[tuple[Any, ...]]:
        """As :func:`tests.spark.reading.dumped` has them."""
        return [tuple(row[name] for name in COLUMNS) for row in self.trigger(limit)]


def growing(source: Path, target: Path, rng: random.Random) -> Iterator[Path]:
    """Writes a metadata directory as its server did: segments in pieces of any size, snapshots when they were due.

    Yields after each piece; the small files beside are there from the start.
    """
    target.mkdir(parents=True, exist_ok=True)
    for beside in (source.parent / "meta.properties", source / "leader-epoch-checkpoint"):
        if beside.exists():
            (target.parent if beside.parent == source.parent else target).joinpath(beside.name).write_bytes(
                beside.read_bytes()
            )
    snapshots = sorted(source.glob("*.checkpoint"))
    for segment in sorted(source.glob("*.log")):
        raw, written = segment.read_bytes(), 0
        while written < len(raw):
            piece = rng.choice((1, 40, 200, 1000, 5000, 50_000))
            with (target / segment.name).open("ab") as file:
                file.write(raw[written : written + piece])
            written += piece
            yield target
        while snapshots and int(snapshots[0].name[:20]) <= int(segment.stem) and segment.stem != "0" * 20:
            done = snapshots.pop(0)
            (target / done.name).write_bytes(done.read_bytes())
    for done in snapshots:
        (target / done.name).write_bytes(done.read_bytes())
        yield target
