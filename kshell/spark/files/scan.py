"""Find and list the metadata directories that the paths of a read name, globs included."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

from kshell.client.concurrency import concurrently
from kshell.errors import SourceError, SourceNotFoundError
from kshell.sources.directory.files import (
    METADATA_DIRECTORY,
    Listing,
    SnapshotFile,
    is_remote,
    locate,
    permission,
    scan,
)
from kshell.sources.directory.sidecar_files import meta_properties, node_id
from kshell.sources.directory.source import read_unchanged
from kshell.sources.remote import Info, children, infos, plain

T = TypeVar("T")
_FILES = (".log", ".checkpoint")
_LOST = "lost+found"
"""A directory of many file systems, which only root may list, and which is no node's."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class CopyOrigin(NamedTuple):
    """Which cluster and node a copy belongs to, by the ``meta.properties`` next to it; ``None`` if unknown."""

    cluster_id: str | None
    node_id: int | None


class LogCopy(NamedTuple):
    """A copy of a metadata log: a metadata directory, or a single file, at ``path``, as it was listed."""

    path: str
    listing: Listing
    origin: CopyOrigin

    def snapshots(self, mode: str) -> tuple[SnapshotFile, ...]:
        """Return the snapshots to read for the option ``snapshots``. ``auto``: the newest one if there is no log."""
        if mode == "none" or (mode == "auto" and self.listing.segments):
            return ()
        return self.listing.snapshots[-1:] if mode == "auto" else self.listing.snapshots


class Unread(NamedTuple):
    """A match of a glob that could not be listed, with the error, and its origin as far as it is known.

    Also a directory on the way of the glob that nobody may list or search, so that it is unknown what is in it.
    """

    path: str
    origin: CopyOrigin
    error: SourceError


def find(paths: Iterable[str], unread: list[Unread] | None = None) -> list[LogCopy]:
    """Find the copies that paths name, each once, in the order of the paths; matches of a glob are sorted.

    In a glob, ``{a,b}`` matches either alternative, as in Hadoop; an alternative without a match is ignored.
    ``unread`` gets the matches of globs that cannot be listed; if it is ``None``, the first such error is raised.

    Raises SourceNotFoundError for a path that does not exist or has no metadata, and for a glob without a match;
    SourceError for a path that cannot be listed; UsageError for a URI that is not understood.
    """
    copies: dict[str, LogCopy] = {}
    for path in map(plain, paths):
        for copy in _remote(path, unread) if is_remote(path) else _local(path, unread):
            copies.setdefault(identity(copy.path), copy)
    return [copy for place, copy in copies.items() if os.path.dirname(place) not in copies]


def identity(path: str) -> str:
    """Return the same text for all names of one directory: its real path, or its URI."""
    return path if is_remote(path) else os.path.realpath(path)


def spelled(path: str) -> str:
    """Return a path as the tables spell it: with a question mark for each byte that is not UTF-8."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def is_glob(path: str) -> bool:
    """Whether a path is a pattern that may match several paths."""
    return glob.has_magic(path) or _BRACES.search(path) is not None


def alternatives(pattern: str) -> list[str]:
    """Expand ``{a,b}`` in a glob into globs without braces, each once; braces without a comma stay."""
    braces = _BRACES.search(pattern)  # the innermost
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    expanded_globs = (expanded for choice in braces[1].split(",") for expanded in alternatives(before + choice + after))
    return list(dict.fromkeys(expanded_globs))


def _local(path: str, unread: list[Unread] | None) -> list[LogCopy]:
    path = os.path.abspath(path)  # executors are started in directories of their own
    if os.path.exists(path) or not is_glob(path):
        return [_list_copy(locate(path))]
    patterns = alternatives(path)
    every = ((match, pattern) for pattern in patterns for match in glob.iglob(pattern, recursive=True))
    refused = _refused(patterns)
    failed = [*refused.values()]
    candidates = sorted({match for match, pattern in every if match not in refused and _counts(match, pattern)})
    copies = [_tried(path, failed) for path in candidates]
    return _some(path, copies, failed, unread)


def _refused(patterns: Iterable[str]) -> dict[str, Unread]:
    """Return the directories on the way of globs that may not be listed or searched: ``glob`` skips them silently.

    If it may not be searched, and the rest of the glob is a plain path, the copy that would be there counts as unread,
    else the directory itself.
    """
    refused: dict[str, Unread] = {}
    for parts in (pattern.split(os.sep) for pattern in patterns):
        for count in range(1, len(parts)):
            rest = os.sep.join(parts[count:])
            is_listed = "**" in parts[count - 1 : count + 1] or glob.has_magic(parts[count])
            for match in glob.iglob(os.sep.join(parts[:count]) + os.sep, recursive=True):
                directory = match.rstrip(os.sep)
                place = directory if glob.has_magic(rest) else os.path.join(directory, rest)
                try:
                    os.stat(os.path.join(match, os.curdir))
                    place = directory  # a copy that is there can be found
                    if is_listed:
                        os.scandir(match).close()
                except PermissionError:
                    if os.path.basename(directory) != _LOST:
                        refused.setdefault(directory, _unread(place, permission(directory)))
                except OSError:
                    continue  # gone meanwhile
    return refused


def _remote(path: str, unread: list[Unread] | None) -> list[LogCopy]:
    """List as :func:`_local` does, with many requests in parallel."""
    if not is_glob(path):
        return [_list_copy(locate(path))]
    every = ((entry, pattern) for pattern in alternatives(path) for entry in _remote_matches(pattern))
    candidates = sorted(
        {
            entry.path
            for entry, pattern in every
            if entry.is_directory or (entry.path.endswith(_FILES) and pattern.endswith(_FILES))
        }
    )
    failed: list[Unread] = []
    return _some(path, concurrently(lambda path: _tried(path, failed, _is_metadata), candidates), failed, unread)


def _is_metadata(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name == METADATA_DIRECTORY or name.endswith(_FILES) or not _has_metadata_sibling(path)


def _has_metadata_sibling(path: str) -> bool:
    return infos([f"{path.rpartition('/')[0]}/{METADATA_DIRECTORY}"])[0].is_directory


def _some(
    pattern: str, tried: Iterable[LogCopy | None], failed: list[Unread], unread: list[Unread] | None
) -> list[LogCopy]:
    """Return the copies that a glob found; raise an error for failed ones without ``unread``, or if there is none."""
    copies = [copy for copy in tried if copy is not None]
    failed.sort(key=lambda item: item.path)  # several threads may have found them
    if failed and unread is None:
        raise failed[0].error
    if unread is not None:
        unread += failed
    if not copies and not failed:
        raise SourceNotFoundError(
            f"{pattern}: finds no metadata log and no snapshot",
            hint=f"a glob names directories ({METADATA_DIRECTORY}, or log directories), or .log and .checkpoint files",
        )
    return copies


def _tried(path: str, failed: list[Unread], counts: Callable[[str], bool] = bool) -> LogCopy | None:
    """List a match of a glob; ``None`` if it is no metadata, or cannot be listed: that error goes to ``failed``."""
    place = path
    try:
        if not counts(path):
            return None
        place = locate(path)
        return _list_copy(place)
    except SourceNotFoundError:
        return None  # a directory without metadata, or one that was formatted but never used
    except SourceError as error:
        failed.append(_unread(place, error))
        return None


def _unread(place: str, error: SourceError) -> Unread:
    whose = CopyOrigin(None, None)
    for folder in (place, os.path.dirname(place)):  # the parent directory may not be reachable through `place`/..
        with contextlib.suppress(SourceError):
            if whose.cluster_id is None:
                whose = origin(Listing(folder, (), ()))
    return Unread(place, whose, error)


def _list_copy(place: str) -> LogCopy:
    listing = scan(place)
    return LogCopy(place, listing, origin(listing))


def _counts(path: str, pattern: str) -> bool:
    """Whether a match can be metadata: in a log directory with a metadata directory, all others belong to topics."""
    if not os.path.isdir(path):
        return path.endswith(_FILES) and pattern.endswith(_FILES)
    if os.path.basename(os.path.normpath(path)) == METADATA_DIRECTORY:
        return True
    return not os.path.isdir(os.path.join(path, os.pardir, METADATA_DIRECTORY))


def origin(listing: Listing) -> CopyOrigin:
    """Return which cluster and node a directory belongs to. SourceError: its ``meta.properties`` cannot be read."""
    meta = meta_properties(listing, raises=True)
    return CopyOrigin(meta.get("cluster.id"), node_id(meta))


def list_again(copies: Sequence[LogCopy]) -> list[LogCopy]:
    """List the copies that still exist again. Raises SourceNotFoundError if none does."""
    listed: list[LogCopy] = []
    for index, copy in enumerate(copies):
        try:
            listed.append(copy._replace(listing=scan(copy.path)))
        except SourceNotFoundError:
            if not listed and index == len(copies) - 1:
                raise
    return listed


def read_stable(copies: Sequence[LogCopy], read: Callable[[list[LogCopy]], tuple[T, bool]]) -> T:
    """Call ``read`` until the copies did not change meanwhile: servers may be writing to them.

    As :func:`.read_unchanged`.

    Args:
        copies: as they were listed; they are listed again for each further attempt.
        read: gives the result, and whether anything looks like damage; raises FileNotFoundError for a file that is no
            longer what it was.

    Raises:
        SourceNotFoundError: no copy is there any more.
    """
    return read_unchanged(lambda: list_again(copies), read, itemgetter(1), list(copies))[0]


def files_of(copies: Iterable[LogCopy], snapshots: str) -> Iterator[tuple[str, int]]:
    """Return (path, bytes) of every file that would be read with the option ``snapshots``."""
    for copy in copies:
        for snapshot in copy.snapshots(snapshots):
            yield snapshot.path, snapshot.size
        if snapshots != "only":
            yield from ((segment.path, segment.size) for segment in copy.listing.segments)


# --- globs in an object store or HDFS: as glob.glob, with many requests in parallel ----------------------------------

_TOGETHER = 8
"""Paths in one call, for which the store is asked one after another."""


def _remote_matches(pattern: str) -> list[Info]:
    """The files and directories that match, sorted. Only a dot matches a name's leading dot. Raises SourceError."""
    scheme, _, rest = pattern.partition("://")
    authority, *parts = rest.rstrip("/").split("/")
    candidates = [Info(f"{scheme}://{authority}", False, True)]
    while parts and candidates:
        if glob.has_magic(parts[0]):
            candidates = _step(candidates, parts[0], is_last=len(parts) == 1)
            parts = parts[1:]
            continue
        count = 1
        while count < len(parts) and not glob.has_magic(parts[count]):
            count += 1
        candidates = _existing([f"{parent.path}/{'/'.join(parts[:count])}" for parent in candidates])
        parts = parts[count:]
        candidates = [
            candidate for candidate in candidates if candidate.is_directory or (candidate.is_file and not parts)
        ]
    return sorted(set(candidates))


def _existing(places: list[str]) -> list[Info]:
    some = [places[at : at + _TOGETHER] for at in range(0, len(places), _TOGETHER)]
    return [info for batch in concurrently(infos, some) for info in batch]


def _step(directories: list[Info], pattern: str, *, is_last: bool) -> list[Info]:
    """Match one component of the pattern against the entries of these directories."""
    if pattern == "**":
        below = [info for top in directories for info in (top, *_all_below(top))]
    else:
        listed = concurrently(lambda directory: children(directory.path), directories)
        below = [entry for names in listed for entry in names if _fits(entry.path.rpartition("/")[2], pattern)]
    return below if is_last else [entry for entry in below if entry.is_directory]


def _all_below(top: Info) -> list[Info]:
    entries: list[Info] = []
    level = [top]
    while level:
        listed = concurrently(lambda directory: children(directory.path), level)
        below = [entry for names in listed for entry in names if not entry.path.rpartition("/")[2].startswith(".")]
        entries += below
        level = [entry for entry in below if entry.is_directory]
    return entries


def _fits(name: str, pattern: str) -> bool:
    return (pattern.startswith(".") or not name.startswith(".")) and fnmatch.fnmatchcase(name, pattern)
