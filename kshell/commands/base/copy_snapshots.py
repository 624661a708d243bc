"""Snapshots of several copies: those of one id hold the same metadata, whatever their bytes are.

Each node makes its own: batches may be cut elsewhere, and times differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import DataError, SourceNotFoundError
from kshell.metadata.image import Image
from kshell.sources.agreement import BEHIND, DIVERGED, NOT_COMPARED, SAME, Standing
from kshell.sources.copies import Copy
from kshell.sources.directory import DirectorySource
from kshell.sources.files import SnapshotFile
from kshell.sources.log import Progress
from kshell.sources.snapshot import map_file
from kshell.tree.difference import PROVENANCE, changed_places
from kshell.tree.paths import Segments, join

_MOST = 3
"""Paths that a sentence names."""


class Snapshots(NamedTuple):
    """What the snapshots add to a standing: the state, and what differs (``None``: nothing)."""

    state: str
    difference: str | None


def compare_snapshots(one: Standing, reference: Copy, progress: Progress | None) -> Snapshots:
    """Holds the snapshots of a copy against those of the copy that it was compared with, else of the reference.

    Where they share neither offsets nor snapshots, the newest one is held against what the reference's log makes of
    that offset. Raises SourceError for a file that cannot be read.
    """
    other = one.other or reference
    compared = False
    for mine, theirs in _shared(one.copy, other):
        try:
            difference = _difference(mine, theirs, progress)
        except (FileNotFoundError, SourceNotFoundError):
            continue  # deleted meanwhile: a running server does that
        if difference is not None:
            return Snapshots(DIVERGED, f"{difference} {other.path}")
        compared = True
    if one.state != NOT_COMPARED:
        return Snapshots(one.state, None)
    return _by_state(one.copy, other, progress, compared=compared)


def _difference(mine: SnapshotFile, theirs: SnapshotFile, progress: Progress | None) -> str | None:
    """What is not the same in two snapshots of one end offset, in words that the other copy's path ends."""
    name = f"snapshot {mine.end_offset}-{mine.epoch}"
    if mine.epoch != theirs.epoch:
        return f"{name} is {theirs.end_offset}-{theirs.epoch} in"
    if _same_bytes(mine, theirs):
        return None
    found = _differing(_image(mine, progress), _image(theirs, progress))
    return f"{name} holds other metadata ({_said(found)}) than that of" if found else None


def _by_state(copy: Copy, other: Copy, progress: Progress | None, *, compared: bool) -> Snapshots:
    """Of a copy without a log that could be compared."""
    ahead_of_it = SAME if copy.end == other.end else BEHIND
    newest = copy.newest
    if compared:
        return Snapshots(ahead_of_it, None)
    if newest is None or newest.end_offset is None or not newest.end_offset:
        return Snapshots(NOT_COMPARED, None)
    try:
        then = other.source.load(until=newest.end_offset - 1, progress=progress)
    except DataError:
        return Snapshots(NOT_COMPARED, None)  # out of the other's reach
    if then.damage or then.image.provenance.offset != newest.end_offset - 1:
        return Snapshots(NOT_COMPARED, None)
    found = _differing(_image(newest, progress), then.image)
    if found:
        name = f"snapshot {newest.end_offset}-{newest.epoch}"
        return Snapshots(DIVERGED, f"{name} holds other metadata ({_said(found)}) than the log of {other.path} makes")
    return Snapshots(ahead_of_it, None)


def _shared(copy: Copy, other: Copy) -> Iterator[tuple[SnapshotFile, SnapshotFile]]:
    """Snapshots of the same end offset, oldest first. The one at offset 0 holds what a cluster was begun with."""
    theirs = {file.end_offset: file for file in other.snapshots if file.end_offset}
    for file in copy.snapshots:
        if file.end_offset in theirs:
            yield file, theirs[file.end_offset]


def _same_bytes(one: SnapshotFile, other: SnapshotFile) -> bool:
    return one.size == other.size and bytes(map_file(one.path)) == bytes(map_file(other.path))


def _image(file: SnapshotFile, progress: Progress | None) -> Image:
    return DirectorySource(file.path).load(progress=progress).image


def _differing(one: Image, other: Image) -> list[Segments]:
    return [path for path in changed_places(one, other) if path != PROVENANCE]


def _said(paths: list[Segments]) -> str:
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return ", ".join(map(join, paths[:_MOST])) + more
