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
from kshell.spark.files.plan import FileFinding, FilePlan
from kshell.spark.files.scan import CopyOrigin, LogCopy, Unread, find, identity, is_glob, origin
from kshell.spark.options import UNLIMITED, Options
from kshell.spark.stream.directory_walk import between, reach
from kshell.spark.stream.positions import Bound, Places, StreamPosition, behind, bound_of

Bounds = Mapping[str, Bound]
_PER_FILE = 1 << 14


def present(options: Options, *, must: bool = False, unread: list[Unread] | None = None) -> dict[str, LogCopy]:
    """The directories that are there now, by their real paths; what is not there may come, or come again.

    With ``must`` a path that is no glob has to be there: raises SourceNotFoundError. ``unread``: gets what cannot be
    listed, which is an error without it, unless the options pass over it.
    """
    copies: dict[str, LogCopy] = {}
    passed_over = [] if unread is None and options.passes_over else unread
    for path in options.paths:
        try:
            matches = find([path], passed_over)
        except SourceNotFoundError:
            if must and not is_glob(path):
                raise
            continue
        for copy in matches:
            if options.narrowing.clusters is None or copy.origin.cluster_id in options.narrowing.clusters:
                copies.setdefault(identity(copy.path), copy)
    return {path: copy for path, copy in copies.items() if os.path.dirname(path) not in copies}


def bounds(options: Options) -> Bounds:
    """Where every directory ends now."""
    return {path: bound_of(copy.listing) for path, copy in present(options).items()}


def latest(options: Options, before: Places, limit: int = UNLIMITED, within: Bounds | None = None) -> Places:
    """Up to where each directory can be read: at most about ``limit`` bytes in all, in fair shares, and at least one
    batch of each that has one; ``within``: not beyond these. A directory that is gone keeps its place.
    """
    copies = present(options, must=not before)
    if within is not None:
        copies = {path: copy for path, copy in copies.items() if path in within}
    places = {path: before.get(path, StreamPosition()) for path in copies}
    after, remaining = dict(before), limit
    waiting = sorted(copies, key=lambda path: behind(copies[path].listing, places[path]))
    for number, path in enumerate(waiting):
        share = max(remaining // (len(waiting) - number), 1)
        listing = _Lister(copies[path], within[path] if within is not None else None)
        try:
            end = reach(listing, places[path], options.snapshots, share)
        except SourceNotFoundError:
            continue  # deleted since it was found
        if end.place != StreamPosition():
            after[path] = end.place
        remaining = max(remaining - end.used, 0)
    return after


class _Lister:
    """List a directory: the first time as it was listed already, then again."""

    def __init__(self, copy: LogCopy, within: Bound | None) -> None:
        self._copy = copy
        self._within = within
        self._first: Listing | None = copy.listing

    def __call__(self) -> Listing:
        listing, self._first = self._first or list_again(self._copy.path), None
        return listing if self._within is None else self._within.clip(listing)


class Growth(NamedTuple):
    """What a micro-batch has of one directory."""

    path: str
    copy: LogCopy | None
    place: StreamPosition
    files: tuple[FilePlan, ...]


def growth(options: Options, before: Places, after: Places, cut: int) -> Iterator[Growth]:
    """Of every directory whose place moved what is between, in the order of their paths. Raises SourceError."""
    moved = [path for path in sorted(after) if after[path] != before.get(path, StreamPosition())]
    copies = present(options) if moved else {}
    for path in moved:
        copy = copies.get(path) or _directly(path)
        files: list[FilePlan] = []
        try:
            if copy is not None:
                now = partial(list_again, copy.path)
                files = between(now, before.get(path, StreamPosition()), after[path], options.snapshots, cut)
        except SourceNotFoundError:
            copy = None
        if copy is None:
            finding = FileFinding(-1, "file", "all of it was deleted before being read")
            files = [FilePlan(path, 0, False, (), (finding,))]
        yield Growth(path, copy, after[path], tuple(files))


def _directly(path: str) -> LogCopy | None:
    try:
        listing = list_again(path)
    except SourceNotFoundError:
        return None
    return LogCopy(path, listing, origin(listing))


def slices(options: Options, before: Places, after: Places) -> list[tuple[Slice, ...]]:
    """The slices of each partition of a micro-batch. Raises SourceError."""
    grown = list(growth(options, before, after, options.slice_bytes))
    total = sum(_PER_FILE + run.end - run.start for item in grown for file in item.files for run in file.runs)
    target = max(min(options.slice_bytes, total // options.parallelism), 1 << 20)
    pieces = [
        piece
        for item in grown
        for file in item.files
        for piece in file_slices(item.copy.origin if item.copy else CopyOrigin(None, None), file, options, target)
    ]
    return pack(pieces, target)
