"""Plan the micro-batches of a stream over all its directories. Free of Spark.

:func:`latest` finds where the next micro-batch ends, :func:`slices` what to read between two ends. Each single
directory is the business of :mod:`kshell.spark.stream.directory_walk`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial

from kshell.errors import SourceNotFoundError
from kshell.sources.directory.files import Listing
from kshell.sources.directory.files import scan as list_again
from kshell.spark.files.pack import Slice, aim, file_slices, pack
from kshell.spark.files.plan import FileFinding, FilePlan
from kshell.spark.files.scan import CopyOrigin, LogCopy, Unread, find, identity, is_glob
from kshell.spark.files.scan import origin as origin_of
from kshell.spark.options import UNLIMITED, Options
from kshell.spark.stream.directory_walk import find_readable_end, plan_between
from kshell.spark.stream.positions import Bound, StreamPosition, StreamPositions, bound_of, bytes_after

Bounds = Mapping[str, Bound]
"""Real path of a directory -> where a query with ``availableNow`` ends in it."""


def listed_copies(options: Options, *, must: bool = False, unread: list[Unread] | None = None) -> dict[str, LogCopy]:
    """List the directories that exist now, by their real paths. A missing one is skipped: it may be created later.

    With ``must`` a missing path that is no glob raises SourceNotFoundError. ``unread`` gets directories that cannot be
    listed; if it is ``None``, the first of them is an error, unless the options say to skip them.
    """
    copies: dict[str, LogCopy] = {}
    passed_over = [] if unread is None and options.skips_unlistable else unread
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
    """Return the present end of every directory."""
    return {path: bound_of(copy.listing) for path, copy in listed_copies(options).items()}


def latest(
    options: Options, before: StreamPositions, limit: int = UNLIMITED, within: Bounds | None = None
) -> StreamPositions:
    """Return the position up to which each directory can be read now.

    Together this is at most about ``limit`` bytes, in fair shares, but at least one batch of each directory that has a
    new one. With ``within`` nothing after those bounds is read. A directory that no longer exists keeps its position.
    """
    copies = listed_copies(options, must=not before)
    if within is not None:
        copies = {path: copy for path, copy in copies.items() if path in within}
    places = {path: before.get(path, StreamPosition()) for path in copies}
    after, remaining = dict(before), limit
    waiting = sorted(copies, key=lambda path: bytes_after(copies[path].listing, places[path]))
    for number, path in enumerate(waiting):
        share = max(remaining // (len(waiting) - number), 1)
        listing = _Lister(copies[path], within[path] if within is not None else None)
        try:
            end = find_readable_end(listing, places[path], options.snapshots, share)
        except SourceNotFoundError:
            continue  # deleted since it was found
        if end.place != StreamPosition():
            after[path] = end.place
        remaining = max(remaining - end.used, 0)
    return after


class _Lister:
    """Lists a directory when it is called, up to a bound. The first call returns the listing that was made already."""

    def __init__(self, copy: LogCopy, within: Bound | None) -> None:
        self._copy = copy
        self._within = within
        self._first: Listing | None = copy.listing

    def __call__(self) -> Listing:
        listing, self._first = self._first or list_again(self._copy.path), None
        return listing if self._within is None else self._within.clip(listing)


def _grown_files(options: Options, before: StreamPositions, after: StreamPositions) -> Iterator[Slice]:
    """Plan the part of every directory whose position changed, in the order of their paths: whole files.

    A directory that is gone gives a finding, of an unknown origin. Raises SourceError.
    """
    moved = [path for path in sorted(after) if after[path] != before.get(path, StreamPosition())]
    copies = listed_copies(options) if moved else {}
    for path in moved:
        start = before.get(path, StreamPosition())
        try:
            origin = copies[path].origin if path in copies else origin_of(list_again(path))
            now = partial(list_again, copies[path].path if path in copies else path)
            files = plan_between(now, start, after[path], options.snapshots, options.slice_bytes)
        except SourceNotFoundError:
            finding = FileFinding(-1, "file", "all of it was deleted before being read")
            origin, files = CopyOrigin(None, None), [FilePlan(path, 0, False, (), (finding,))]
        yield from (Slice(origin, file) for file in files)


def slices(options: Options, before: StreamPositions, after: StreamPositions) -> list[tuple[Slice, ...]]:
    """Return the slices of a micro-batch, one tuple per Spark partition. Raises SourceError."""
    files = [*_grown_files(options, before, after)]
    target = aim(sum(file.cost() for file in files), options)
    return pack((piece for origin, file in files for piece in file_slices(origin, file, options, target)), target)
