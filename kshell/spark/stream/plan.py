"""All directories of a stream: the end of the next micro-batch, and the slices of one. Free of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from kshell.errors import SourceNotFoundError
from kshell.sources.directory.files import Listing
from kshell.sources.directory.files import scan as list_again
from kshell.spark.files.pack import Slice, file_slices, pack
from kshell.spark.files.plan import FilePlan, Finding
from kshell.spark.files.scan import LogCopy, Origin, Unread, find, identity, is_glob, origin
from kshell.spark.options import UNLIMITED, Options
from kshell.spark.stream.place import Bound, Place, Places, behind, bound_of
from kshell.spark.stream.walk import between, reach

Bounds = Mapping[str, Bound]
_PER_FILE = 1 << 14


def present(options: Options, *, must: bool = False, unread: list[Unread] | None = None) -> dict[str, LogCopy]:
    """The directories that are there now, by their real paths; what is not there may come, or come again.

    With ``must`` a path that is no glob has to be there: raises SourceNotFoundError. ``unread``: gets what cannot be
    listed, which is an error without it, unless the options pass over it.
    """
    found: dict[str, LogCopy] = {}
    passed_over = [] if unread is None and options.passes_over else unread
    for path in options.paths:
        try:
            matches = find([path], passed_over)
        except SourceNotFoundError:
            if must and not is_glob(path):
                raise
            continue
        for one in matches:
            if options.narrowing.clusters is None or one.origin.cluster_id in options.narrowing.clusters:
                found.setdefault(identity(one.path), one)
    return {path: one for path, one in found.items() if os.path.dirname(path) not in found}


def bounds(options: Options) -> Bounds:
    """Where every directory ends now."""
    return {path: bound_of(one.listing) for path, one in present(options).items()}


def latest(options: Options, before: Places, limit: int = UNLIMITED, within: Bounds | None = None) -> Places:
    """Up to where each directory can be read: at most about ``limit`` bytes in all, in fair shares, and at least one
    batch of each that has one; ``within``: not beyond these. A directory that is gone keeps its place.
    """
    found = present(options, must=not before)
    if within is not None:
        found = {path: one for path, one in found.items() if path in within}
    places = {path: before.get(path, Place()) for path in found}
    after, left = dict(before), limit
    waiting = sorted(found, key=lambda path: behind(found[path].listing, places[path]))
    for number, path in enumerate(waiting):
        share = max(left // (len(waiting) - number), 1)
        listing = _Lister(found[path], within[path] if within is not None else None)
        try:
            reached = reach(listing, places[path], options.snapshots, share)
        except SourceNotFoundError:
            continue  # deleted since it was found
        if reached.place != Place():
            after[path] = reached.place
        left = max(left - reached.used, 0)
    return after


class _Lister:
    """Lists a directory: as it was found the first time, then anew."""

    def __init__(self, found: LogCopy, within: Bound | None) -> None:
        self._found = found
        self._within = within
        self._first: Listing | None = found.listing

    def __call__(self) -> Listing:
        listing, self._first = self._first or list_again(self._found.path), None
        return listing if self._within is None else self._within.clip(listing)


class Growth(NamedTuple):
    """What a micro-batch has of one directory."""

    path: str
    found: LogCopy | None
    place: Place
    files: tuple[FilePlan, ...]


def growth(options: Options, before: Places, after: Places, cut: int) -> Iterator[Growth]:
    """Of every directory whose place moved what is between, in the order of their paths. Raises SourceError."""
    moved = [path for path in sorted(after) if after[path] != before.get(path, Place())]
    found = present(options) if moved else {}
    for path in moved:
        one = found.get(path) or _directly(path)
        files: list[FilePlan] = []
        try:
            if one is not None:
                now = partial(list_again, one.path)
                files = between(now, before.get(path, Place()), after[path], options.snapshots, cut)
        except SourceNotFoundError:
            one = None
        if one is None:
            finding = Finding(-1, "file", "all of it was deleted before being read")
            files = [FilePlan(path, 0, False, (), (finding,))]
        yield Growth(path, one, after[path], tuple(files))


def _directly(path: str) -> LogCopy | None:
    try:
        listing = list_again(path)
    except SourceNotFoundError:
        return None
    return LogCopy(path, listing, origin(listing))


def slices(options: Options, before: Places, after: Places) -> list[tuple[Slice, ...]]:
    """The slices of each partition of a micro-batch. Raises SourceError."""
    grown = list(growth(options, before, after, options.slice_bytes))
    total = sum(_PER_FILE + run.end - run.start for one in grown for file in one.files for run in file.runs)
    target = max(min(options.slice_bytes, total // options.parallelism), 1 << 20)
    pieces = [
        piece
        for one in grown
        for file in one.files
        for piece in file_slices(one.found.origin if one.found else Origin(None, None), file, options, target)
    ]
    return pack(pieces, target)
