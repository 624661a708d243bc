"""Records as the tables of silver take them, and what the shell says of the same directories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import kshell
from kshell.engine.session import Session
from kshell.protocol.control import CONTROL_TYPES
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import LogReader
from kshell.sources.directory.source import DirectorySource, before_the_log
from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import partitions
from kshell.spark.options import parse
from kshell.tables.declaration import tables

ReplayRange = tuple[str, str | None, int, int]
"""clusterId, base, sinceOffset, toOffset."""
Rows = list[tuple[Any, ...]]
CONTROL_NAMES = frozenset(kind.name for kind in CONTROL_TYPES.values())


class Cluster(NamedTuple):
    """A directory that is taken for a cluster of its own, and its eras."""

    name: str
    node: Path
    eras: tuple[ReplayRange, ...]


def cluster(node: Path, name: str = "") -> Cluster:
    """A directory from the oldest state on that is still known of it."""
    listing = DirectorySource(str(node)).listing()
    first, name = listing.segments[0].base_offset or 0, name or str(node)
    usable = [one for one in listing.snapshots if (one.end_offset or 0) >= first]
    empty = [one for one in usable if one.end_offset == 0]
    base = (empty if not first else usable)[:1]
    since = base[0].end_offset or 0 if base else 0
    return Cluster(name, node, ((name, base[0].path if base else None, since, _end(node)),))


def with_gaps(node: Path, name: str) -> Cluster:
    """The same as if most of the log between its snapshots had been lost."""
    [whole] = cluster(node).eras
    snapshots: list[SnapshotFile] = [
        one for one in DirectorySource(str(node)).listing().snapshots if (one.end_offset or 0) > whole[2]
    ]
    begins = [(whole[1], whole[2]), *((one.path, one.end_offset or 0) for one in snapshots)]
    ends = [since for _, since in begins[1:]]
    eras = [
        (name, base, since, since + (end - since) * 2 // 3)
        for (base, since), end in zip(begins, [*ends, whole[3]], strict=True)
    ]
    return Cluster(name, node, tuple(eras))


def _end(node: Path) -> int:
    end = kshell.open(str(node))._shell.loaded.log_end_offset
    assert end
    return end


def records(clusters: Iterable[Cluster]) -> list[dict[str, Any]]:
    """The rows of ``records`` of each as a run reads them: of what kafka-storage wrote the control records alone."""
    made = []
    for one in clusters:
        asked = parse({"path": str(one.node), "snapshots": "all"})
        view = View(asked.view, asked.fields(), asked.narrowing)
        found = [row for slices in partitions(asked) for batch in view.batches(slices) for row in batch.to_pylist()]
        bootstrap = {file.path for file in DirectorySource(str(one.node)).listing().snapshots if file.is_bootstrap}
        given = (row for row in found if row["file"] not in bootstrap or row["type"] in CONTROL_NAMES)
        made += [row | {"clusterId": one.name} for row in given]
    return made


def told(session: Session, name: str) -> Rows:
    """The rows of one of the shell's tables."""
    table = tables()[name]
    rows = table.rows(session, session.image, None)
    return listed(tuple(row.get(field.name) for field in table.fields) for row in rows)


def at(node: Path, offset: int) -> Session:
    """The shell as of an offset."""
    session = kshell.open(str(node)).at(offset)._shell
    assert not session.loaded.damage
    return session


def by_records(node: Path, offset: int) -> Session:
    """The shell as of an offset, as if it knew all that the records say of the quorum, and nothing else."""
    session = kshell.open(str(node))._shell
    listing = DirectorySource(str(node)).listing()
    replayer, facts, _, _ = before_the_log(listing, None)
    replayer._until = offset
    start = facts.end_offset if facts else 0
    for file, batch in LogReader(listing, start, until=offset):
        replayer.log_batch(batch, os.path.basename(file), start)
    known = session.loaded._replace(
        image=replayer.image(), listing=listing._replace(sidecar_texts={}), snapshot=facts, until=offset
    )
    session.__dict__["loaded"] = known
    return session


def listed(rows: Iterable[Iterable[Any]]) -> Rows:
    """Rows that can be compared: sorted, maps and structs alike as pairs."""
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(item)) for key, item in value.items()))
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
