"""Expand globs in an object store or HDFS, as ``glob.glob`` does on this machine, with many requests in parallel."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kshell.sources.remote import Info, children, infos

AT_ONCE = 16
"""Requests in parallel: each of them mostly waits."""
_TOGETHER = 8
"""Paths in one call, for which the store is asked one after another."""
_Item = TypeVar("_Item")
_Many = TypeVar("_Many")


def matches(pattern: str) -> list[Info]:
    """The files and directories that match, sorted. Only a dot matches a name's leading dot. Raises SourceError."""
    scheme, _, rest = pattern.partition("://")
    authority, *parts = rest.rstrip("/").split("/")
    candidates = [Info(f"{scheme}://{authority}", False, True)]
    while parts and candidates:
        if glob.has_magic(parts[0]):
            candidates = _step(candidates, parts[0], is_last=len(parts) == 1)
            parts = parts[1:]
            continue
        plain = [parts[0]]
        while len(plain) < len(parts) and not glob.has_magic(parts[len(plain)]):
            plain.append(parts[len(plain)])
        candidates = _existing([f"{parent.path}/{'/'.join(plain)}" for parent in candidates])
        parts = parts[len(plain) :]
        candidates = [
            candidate for candidate in candidates if candidate.is_directory or (candidate.is_file and not parts)
        ]
    return sorted(set(candidates))


def _existing(places: list[str]) -> list[Info]:
    some = [places[at : at + _TOGETHER] for at in range(0, len(places), _TOGETHER)]
    return [info for batch in at_once(infos, some) for info in batch]


def _step(directories: list[Info], pattern: str, *, is_last: bool) -> list[Info]:
    """Match one component of the pattern against the entries of these directories."""
    if pattern == "**":
        below = [info for top in directories for info in (top, *_all_below(top))]
    else:
        listed = at_once(lambda directory: children(directory.path), directories)
        below = [entry for names in listed for entry in names if _fits(entry.path.rpartition("/")[2], pattern)]
    return below if is_last else [entry for entry in below if entry.is_directory]


def _all_below(top: Info) -> list[Info]:
    entries: list[Info] = []
    level = [top]
    while level:
        listed = at_once(lambda directory: children(directory.path), level)
        below = [entry for names in listed for entry in names if not entry.path.rpartition("/")[2].startswith(".")]
        entries += below
        level = [entry for entry in below if entry.is_directory]
    return entries


def _fits(name: str, pattern: str) -> bool:
    return (pattern.startswith(".") or not name.startswith(".")) and fnmatch.fnmatchcase(name, pattern)


def at_once(work: Callable[[_Item], _Many], items: Iterable[_Item]) -> list[_Many]:
    """Call ``work`` for each item in parallel threads; return the results in order. For work that mostly waits."""
    items = list(items)
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items))) as pool:
        return list(pool.map(work, items))
