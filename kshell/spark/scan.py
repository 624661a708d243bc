"""Which metadata directories the paths of a read mean: one, many, or what globs find."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kshell.errors import SourceNotFoundError
from kshell.sources.files import METADATA_DIRECTORY, Listing, SnapshotFile, locate, meta_properties, scan

_FILES = (".log", ".checkpoint")


class Origin(NamedTuple):
    """Whose copy a file is, by the ``meta.properties`` around it; ``None`` where that does not say."""

    cluster_id: str | None
    node_id: int | None


class Found(NamedTuple):
    """A metadata directory, or a lone file: what a listing of ``path`` gave."""

    path: str
    listing: Listing
    origin: Origin

    def snapshots(self, which: str) -> tuple[SnapshotFile, ...]:
        """The snapshots to read. ``auto``: as ``dump``, the newest one where there is no log."""
        if which == "none" or (which == "auto" and self.listing.segments):
            return ()
        return self.listing.snapshots[-1:] if which == "auto" else self.listing.snapshots


def find(paths: Iterable[str]) -> list[Found]:
    """What is there to read, each once, in the order of the paths; what a glob finds is sorted.

    Raises SourceNotFoundError for a path that is not there or holds no metadata, and for a glob that finds none.
    """
    found: dict[str, Found] = {}
    for path in paths:
        if os.path.exists(path) or not glob.has_magic(path):
            places = [locate(path)]
            listings = [scan(places[0])]
        else:
            places, listings = _matches(path)
        for place, listing in zip(places, listings, strict=True):
            found.setdefault(os.path.realpath(place), Found(place, listing, origin(listing)))
    return [one for real, one in found.items() if os.path.dirname(real) not in found]


def _matches(pattern: str) -> tuple[list[str], list[Listing]]:
    places, listings = [], []
    for path in sorted(glob.iglob(pattern, recursive=True)):
        if _counts(path, pattern):
            place = locate(path)
            try:
                listings.append(scan(place))
            except SourceNotFoundError:
                continue  # a directory of something else, or formatted and never used
            places.append(place)
    if not places:
        raise SourceNotFoundError(
            f"{pattern}: finds no metadata log and no snapshot",
            hint=f"a glob names directories ({METADATA_DIRECTORY}, or log directories), or .log and .checkpoint files",
        )
    return places, listings


def _counts(path: str, pattern: str) -> bool:
    """Whether a match can be metadata: beside a metadata directory, everything else is the data of topics."""
    if not os.path.isdir(path):
        return path.endswith(_FILES) and pattern.endswith(_FILES)
    if os.path.basename(os.path.normpath(path)) == METADATA_DIRECTORY:
        return True
    return not os.path.isdir(os.path.join(path, os.pardir, METADATA_DIRECTORY))


def origin(listing: Listing) -> Origin:
    """Whose copy it is."""
    meta = meta_properties(listing)
    node = meta.get("node.id") or meta.get("broker.id") or ""
    return Origin(meta.get("cluster.id"), int(node) if node.isascii() and node.isdigit() and len(node) < 10 else None)


def files_of(found: Iterable[Found], snapshots: str) -> Iterator[tuple[str, int]]:
    """(path, bytes) of every file that would be read."""
    for one in found:
        for snapshot in one.snapshots(snapshots):
            yield snapshot.path, snapshot.size
        if snapshots != "only":
            yield from ((segment.path, segment.size) for segment in one.listing.segments)
