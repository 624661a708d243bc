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
_One = TypeVar("_One")
_Many = TypeVar("_Many")


def matches(pattern: str) -> list[Info]:
    """What is there of that pattern, sorted. A name that begins with a dot is only found by one. Raises SourceError."""
    scheme, _, rest = pattern.partition("://")
    authority, *parts = rest.rstrip("/").split("/")
    found = [Info(f"{scheme}://{authority}", False, True)]
    while parts and found:
        if glob.has_magic(parts[0]):
            found = _step(found, parts[0], is_last=len(parts) == 1)
            parts = parts[1:]
            continue
        plain = [parts[0]]
        while len(plain) < len(parts) and not glob.has_magic(parts[len(plain)]):
            plain.append(parts[len(plain)])
        found = _looked_at([f"{one.path}/{'/'.join(plain)}" for one in found])
        parts = parts[len(plain) :]
        found = [one for one in found if one.is_directory or (one.is_file and not parts)]
    return sorted(set(found))


def _looked_at(places: list[str]) -> list[Info]:
    some = [places[at : at + _TOGETHER] for at in range(0, len(places), _TOGETHER)]
    return [one for made in at_once(infos, some) for one in made]


def _step(found: list[Info], pattern: str, *, is_last: bool) -> list[Info]:
    """One part of the pattern further, from directories."""
    if pattern == "**":
        below = [one for top in found for one in (top, *_all_below(top))]
    else:
        listed = at_once(lambda one: children(one.path), found)
        below = [one for names in listed for one in names if _fits(one.path.rpartition("/")[2], pattern)]
    return below if is_last else [one for one in below if one.is_directory]


def _all_below(top: Info) -> list[Info]:
    made: list[Info] = []
    level = [top]
    while level:
        listed = at_once(lambda one: children(one.path), level)
        below = [one for names in listed for one in names if not one.path.rpartition("/")[2].startswith(".")]
        made += below
        level = [one for one in below if one.is_directory]
    return made


def _fits(name: str, pattern: str) -> bool:
    return (pattern.startswith(".") or not name.startswith(".")) and fnmatch.fnmatchcase(name, pattern)


def at_once(work: Callable[[_One], _Many], items: Iterable[_One]) -> list[_Many]:
    """The results of work that mostly waits, in the order of the items. Raises what the work raises."""
    items = list(items)
    if len(items) < 2:
        return [work(one) for one in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items))) as pool:
        return list(pool.map(work, items))
