"""The files of a Delta table's log: which of them are damaged, and what a power failure has left of others.

``deltalake`` reads the log, but its errors do not name a file, and it takes an empty entry for a version that changed
nothing. Source: the Delta transaction protocol (PROTOCOL.md of delta-io/delta): entries (``N.json``) and checkpoints.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
from collections.abc import Iterable

from kshell.errors import DataError
from kshell.sources import remote
from kshell.spark.tables.data_files import file_system

HINT = "restore its _delta_log, or make the tables again in another --out"
"""What to do about a log that is damaged."""
_DIGITS = 20
"""Digits of a version in the names of a log's files."""
_ENTRY = re.compile(r"[0-9]{20}\.json")
_CHECKPOINT = re.compile(r"[0-9]{20}\.checkpoint.*\.parquet")


def oldest_version(place: str) -> int:
    """Return the oldest version that can still be read: the log's first, or that of its oldest checkpoint."""
    sizes = _sizes(place)
    checkpoints = [_version(name) for name in sizes if _CHECKPOINT.fullmatch(name)]
    return 0 if f"{0:0{_DIGITS}}.json" in sizes else min(checkpoints, default=0)


def check_entries(place: str, version: int) -> None:
    """Raise DataError if an entry is empty, cut or has zeros that is read for ``version`` of the table at ``place``,
    and SourceError if the log may not be read.

    A power failure leaves such a file on a local disk, and copying brings it into a store. There, only empty entries
    are found: each file would be a request, and delta-rs itself notices one that is cut.
    """
    try:
        # The log of a stream may have 20,000 entries, so versions are compared as their digits.
        newest = f"{version:0{_DIGITS}}"
        sizes = {name: size for name, size in _sizes(place).items() if name[:_DIGITS] <= newest}
        for name in _since_checkpoint(sizes):
            if not _ENTRY.fullmatch(name) or (sizes[name] and remote.is_remote(place)):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process may tidy up
                content = _content(place, name).rstrip()
                if not content.endswith(b"}") or b"\0" in content:
                    raise DataError(f"{place}/_delta_log/{name}: {_of_entry(content)}", hint=HINT)
    except OSError as error:
        raise remote.failure(f"{place}/_delta_log", error) from None


def changes_rows(place: str, version: int) -> bool:
    """Whether an entry adds or removes rows, or may do so as it is damaged. Raises SourceError if it may not be read.

    Files whose rows are those of others have ``dataChange`` false, whatever the program calls its operation.
    """
    try:
        entry = [json.loads(line) for line in _content(place, f"{version:0{_DIGITS}}.json").splitlines()]
    except ValueError:
        return True
    except OSError as error:
        raise remote.failure(f"{place}/_delta_log", error) from None
    changes = [actions[kind] for actions in entry for kind in ("add", "remove") if kind in actions]
    return not entry or any(change.get("dataChange", True) for change in changes)


def remove_empty_entries(place: str, version: int, *, dry_run: bool = False) -> int:
    """Remove empty entries that come last in a log, down to ``version``; return how many they are.

    The next commits take their place. Only for the writer that holds the lock of the tables, but for a ``dry_run``,
    which removes nothing. Raises SourceError if that is not possible.
    """
    log, number = f"{place}/_delta_log", 0
    if remote.is_remote(place) or not os.path.isdir(log):
        return 0
    try:
        for name in sorted(filter(_ENTRY.fullmatch, os.listdir(log)), reverse=True):
            if _version(name) <= version or os.lstat(f"{log}/{name}").st_size:
                break
            number += 1
            if not dry_run:
                os.unlink(f"{log}/{name}")
    except OSError as error:
        raise remote.failure(log, error) from None
    return number


def damage(place: str) -> str | None:
    """Return the first file of a log that is damaged or missing, and what is wrong with it, if any.

    Every file is read (in a store those from the last checkpoint on), so this is for logs that could not be read.
    Raises OSError.
    """
    names = [*_sizes(place)]
    due = 1 + max((_version(name) for name in names if _CHECKPOINT.fullmatch(name)), default=-1)
    for name in _since_checkpoint(names) if remote.is_remote(place) else names:
        path = f"{place}/_delta_log/{name}"
        if _CHECKPOINT.fullmatch(name):
            wrong = _of_checkpoint(_content(place, name))
        elif _ENTRY.fullmatch(name):
            if _version(name) > due:
                return f"{place}/_delta_log/{due:0{_DIGITS}}.json: is not there"
            due = max(due, _version(name) + 1)
            wrong = _of_entry(_content(place, name))
        else:
            continue
        if wrong is not None:
            return f"{path}: {wrong}"
    return None


def _of_checkpoint(content: bytes) -> str | None:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    try:
        parquet.ParquetFile(arrow.BufferReader(content)).read()
    except Exception as error:  # damage also brings errors of Thrift and of the operating system
        return remote.reason(error)
    return None


def _of_entry(content: bytes) -> str | None:
    lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line or b"0")
        except ValueError as error:
            return f"line {number} is not JSON: {error}"
    return None if lines else "is empty"


def _sizes(place: str) -> dict[str, int]:
    """Return the sizes of a log's files by their names, which are sorted: of a version, its checkpoint is first."""
    system, root = file_system(place)
    selector = importlib.import_module("pyarrow.fs").FileSelector(f"{root}/_delta_log")
    return dict(sorted((info.base_name, info.size or 0) for info in system.get_file_info(selector)))


def _since_checkpoint(names: Iterable[str]) -> list[str]:
    """Return those of a log's names that are read for its newest version: the last checkpoint, and what follows it."""
    checkpoint = max((name[:_DIGITS] for name in names if _CHECKPOINT.fullmatch(name)), default="")
    return [name for name in names if name[:_DIGITS] > checkpoint or name.startswith(f"{checkpoint}.checkpoint")]


def _content(place: str, name: str) -> bytes:
    system, root = file_system(place)
    with system.open_input_stream(f"{root}/_delta_log/{name}") as file:
        return bytes(file.read())


def _version(name: str) -> int:
    return int(name[:_DIGITS])
