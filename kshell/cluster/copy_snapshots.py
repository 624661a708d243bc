"""Snapshots of several copies: those of one id hold the same metadata, whatever their bytes are.

Each node makes its own: batches may be cut elsewhere, and times differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import DataError, SourceNotFoundError
from kshell.history.difference import PROVENANCE, changed_places
from kshell.metadata.image import Image
from kshell.sources.copies.agreement import BEHIND, DIVERGED, NOT_COMPARED, SAME, Standing
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.ranges import FileWindows
from kshell.sources.directory.source import DirectorySource
from kshell.tree.paths import Segments, join

_MOST = 3
"""Paths that a sentence names."""


class Snapshots(NamedTuple):
    """What the snapshots add to a standing: the state, and what differs (``None``: nothing)."""

    state: str
    difference: str | None


def compare_snapshots(one: Standing, reference: Copy, progress: Progress | None) -> Snapshots:
    """Holds the snapshots of a copy against those of the copy that it was compared with, else of the reference.

    Where they share neither offsets nor snapshots, one is held against what the other copy's log makes of its offset.
    Raises SourceError for a file that cannot be read.
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
    """Of copies whose logs share nothing: a snapshot of either, against what the other's log makes of its offset."""
    ahead_of_it = SAME if copy.end == other.end else BEHIND
    if compared:
        return Snapshots(ahead_of_it, None)
    for file, holder in ((_newest(copy, other.end), other), (_newest(other, copy.end), copy)):
        made = None if file is None else _image_at(holder, file, progress)
        if file is None or made is None:
            continue
        found = _differing(_image(file, progress), made)
        if found:
            name = f"snapshot {file.end_offset}-{file.epoch} of {(copy if holder is other else other).path}"
            return Snapshots(
                DIVERGED, f"{name} holds other metadata ({_said(found)}) than the log of {holder.path} makes"
            )
        return Snapshots(ahead_of_it, None)
    return Snapshots(NOT_COMPARED, None)


def _newest(copy: Copy, end: int | None) -> SnapshotFile | None:
    """The newest snapshot that does not go beyond an offset."""
    files = [file for file in copy.snapshots if file.end_offset and file.end_offset <= (end or 0)]
    return files[-1] if files else None


def _image_at(copy: Copy, file: SnapshotFile, progress: Progress | None) -> Image | None:
    """What a copy makes of the offset at which a snapshot ends; ``None`` where that is out of its reach, or damaged."""
    assert file.end_offset is not None
    try:
        then = copy.source.load(until=file.end_offset - 1, progress=progress)
    except DataError:
        return None
    return None if then.damage or then.image.provenance.offset != file.end_offset - 1 else then.image


def _shared(copy: Copy, other: Copy) -> Iterator[tuple[SnapshotFile, SnapshotFile]]:
    """Snapshots of the same end offset, oldest first. The one at offset 0 holds what a cluster was begun with."""
    theirs = {file.end_offset: file for file in other.snapshots if file.end_offset}
    for file in copy.snapshots:
        if file.end_offset in theirs:
            yield file, theirs[file.end_offset]


def _same_bytes(one: SnapshotFile, other: SnapshotFile) -> bool:
    if one.size != other.size:
        return False
    with FileWindows(one.path) as mine, FileWindows(other.path) as theirs:
        position = 0
        while mine.size == theirs.size and position < mine.size:
            piece, its_piece = mine.window(position, 1), theirs.window(position, 1)
            if piece != its_piece:
                return False
            position = piece.end
        return mine.size == theirs.size


def _image(file: SnapshotFile, progress: Progress | None) -> Image:
    return DirectorySource(file.path).load(progress=progress).image


def _differing(one: Image, other: Image) -> list[Segments]:
    return [path for path in changed_places(one, other) if path != PROVENANCE]


def _said(paths: list[Segments]) -> str:
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return ", ".join(map(join, paths[:_MOST])) + more
