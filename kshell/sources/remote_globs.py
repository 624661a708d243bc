"""What globs find in an object store or HDFS: as ``glob.glob`` does it on this machine, with many requests at once."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kshell.sources.remote import Info, children, infos

AT_ONCE = 16
"""Requests: each is mostly waiting."""
_TOGETHER = 8
"""Paths that one thread asks for, one after another."""
_Item = TypeVar("_Item")
_Many = TypeVar("_Many")


def matches(pattern: str) -> list[Info]:
    """What is there of that pattern, sorted. A name that begins with a dot is only found by one. Raises SourceError."""
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
    """One part of the pattern further, from directories."""
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
    """The results of work that mostly waits, in the order of the items. Raises what the work raises."""
    items = list(items)
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items))) as pool:
        return list(pool.map(work, items))
