"""Tables as a truth makes them, step by step, without Spark: the records that were read, and the state at every offset.

What a step reads is kept as bytes, because the files may be gone at the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kshell.metadata.image import Image
from kshell.metadata.replay import Replayer
from kshell.protocol.batches import Batch, read_header
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.sources.points import Point
from kshell.spark.decoding.decode import View
from kshell.spark.files.plan import FileFinding
from kshell.spark.files.read import read
from kshell.spark.files.scan import LogCopy, find
from kshell.spark.options import Narrowing
from kshell.spark.reconcile import Checkpoint, ReconciledLog, ReplayRange, Request, by_cluster, reconcile
from kshell.spark.schemas import QUARANTINE, RECORDS, fields_of

CUT = 4000
NOW = Point()
COLUMNS = ("offset", "epoch", "timestampMs", "type", "version", "data")


class Tables:
    """What truths of one cluster add up to."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        """Rows of ``records``."""
        self.findings: list[dict[str, Any]] = []
        self.ranges: list[ReplayRange] = []
        self.checkpoint: Checkpoint | None = None
        self.last: ReconciledLog | None = None
        self.restarts = 0
        self._batches: list[Batch] = []
        self._snapshots: dict[str, SnapshotFile] = {}

    def step(
        self,
        *paths: Path | str,
        until: int | None = None,
        since: Point = NOW,
        cut: int = CUT,
        given: str | None = None,
    ) -> ReconciledLog:
        """Brings them up to date. Batches that turn out to be damaged when they are read are told to another truth."""
        ((cluster, copies),) = by_cluster(find(map(str, paths)), given).items()
        request = Request(cluster, cut, self.checkpoint, since, until)
        made = reconcile(copies, request)
        bad: set[tuple[str, int, str]] = set()
        while more := _damaged(made):
            assert not more & bad, "it is read though it is known to be damaged"
            bad |= more
            anew = made.restart
            made = reconcile(copies, request._replace(bad=bad), from_scratch=anew)
        self.take(made)
        return made

    def take(self, made: ReconciledLog) -> None:
        if made.restart:
            restarts = self.restarts + 1
            self.__init__()  # type: ignore[misc]
            self.restarts = restarts
        self.last = made
        self.rows += rows(made)
        self.findings += made.findings
        self.ranges += made.ranges
        self.checkpoint = Checkpoint.from_json(json.loads(json.dumps(made.checkpoint._asdict())))
        for piece in made.slices:
            if piece.file.is_snapshot:
                raw = Path(piece.file.path).read_bytes()
                name = Path(piece.file.path).name
                end, epoch = (int(name[:20]), int(name[21:31])) if name[20:21] == "-" else (None, None)
                self._snapshots[piece.file.path] = SnapshotFile(piece.file.path, end, epoch, len(raw), 0, raw)
                continue
            for placed in read(piece.file):
                assert not isinstance(placed, FileFinding)
                batch = placed.batch
                self._batches.append(read_header(bytes(batch.buf[batch.position : batch.end]), 0))

    @property
    def log(self) -> list[tuple[Any, ...]]:
        """The records of the log."""
        return [tuple(row[name] for name in COLUMNS) for row in self.rows if not row["isSnapshot"]]

    @property
    def offsets(self) -> list[int]:
        """Of the log's records."""
        return [row["offset"] for row in self.rows if not row["isSnapshot"]]

    def at(self, offset: int) -> Image | None:
        """The state as of an offset; ``None`` before the first that is known."""
        replayer: Replayer | None = None
        for era in self.ranges:
            if era.since - 1 > offset:
                break
            if era.base is not None:
                replayer = Replayer(until=offset)
                self._load(era.base, replayer)
            elif replayer is None:
                replayer = Replayer(until=offset)
            for batch in self._batches:
                if batch.last_offset >= era.since and batch.base_offset < era.to and batch.base_offset <= offset:
                    replayer.log_batch(batch, "x.log", era.since)
        return None if replayer is None else replayer.image()

    def _load(self, path: str, replayer: Replayer) -> None:
        """The batches of a snapshot that were given."""
        given = {row["position"] for row in self.rows if row["file"] == path}
        file = self._snapshots[path]
        reader = SnapshotReader(file)
        for batch in reader:
            if batch.position in given:
                replayer.snapshot_batch(batch, Path(path).name)
        facts = reader.facts()
        replayer.snapshot_end(facts.end_offset, facts.epoch if file.epoch is None else file.epoch, facts.timestamp)


def rows(made: ReconciledLog) -> list[dict[str, Any]]:
    """Rows of ``records`` that the slices give."""
    view = View(RECORDS, fields_of(RECORDS), Narrowing())
    return [row for batch in view.batches(made.slices) for row in batch.to_pylist()]


def _damaged(made: ReconciledLog) -> set[tuple[str, int, str]]:
    view = View(QUARANTINE, fields_of(QUARANTINE), Narrowing())
    found = [row for batch in view.batches(made.slices) for row in batch.to_pylist()]
    return {(row["file"], row["position"], row["reason"]) for row in found if row["kind"] == "batch"}


def found(*paths: Path) -> Sequence[LogCopy]:
    return find(map(str, paths))
