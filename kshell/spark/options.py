"""Parse and check the options of the data source ``kraft``; an unknown option is an error.

================ ===================================================================================================
``view``         ``records`` (the default), ``files``, ``quarantine``, or a record type
``types``        only records of these types: ``TOPIC,PARTITION``
``since``        only records from that point on: an offset (1234), a time (2026-01-31T12:00:00Z), -15m
``until``        only records up to that point
``clusters``     only these cluster ids
``columns``      only these columns, in this order; what nobody asks for is not decoded
``snapshots``    ``auto`` (as ``dump``: the newest where there is no log), ``all`` (and the log), ``only``, ``none``
``showSecrets``  ``true`` shows what is redacted otherwise
``sliceBytes``   at most so many bytes of a log in one Spark partition, about (default 16 MiB)
``parallelism``  how many partitions there should be at least, if there is enough to read (default: cores, twice)
``variant``      ``true``: the data of records, and other JSON, as VARIANT instead of text
``pushFilters``  ``true``: conditions on type, clusterId, offset and timestampMs narrow what is read
================ ===================================================================================================

More options of a stream (see :mod:`kshell.spark.stream.source`):

====================== =============================================================================================
``maxBytesPerTrigger`` at most about so many bytes of logs and snapshots in one micro-batch (no limit)
``startingOffsets``    ``earliest``: all that is there (the default); ``latest``: only what comes after its start
====================== =============================================================================================

A stream takes ``since`` and ``until`` as offsets and times only: a duration before now would be another time after each
restart, and records in between would be missing. (The documentation's reference is made of these tables.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kshell.errors import UsageError
from kshell.history.records import record_type
from kshell.sources.points import Point, is_ago, parse_point
from kshell.sources.remote import plain
from kshell.spark.schemas import RECORDS, fields_of, view_name
from kshell.tables.declaration import Field

SLICE_BYTES = 16 << 20
UNLIMITED = 1 << 62
STARTS = ("earliest", "latest")
SNAPSHOTS = ("auto", "all", "only", "none")
_NAMES = (
    "path paths view types since until clusters columns snapshots showSecrets sliceBytes parallelism pushFilters"
    " variant maxBytesPerTrigger startingOffsets"
).split()


class Narrowing(NamedTuple):
    """Which records are wanted; ``None`` means all. ``since`` and ``until`` are inclusive."""

    types: frozenset[str] | None = None
    clusters: frozenset[str] | None = None
    since: Point = Point()
    until: Point = Point()


class Options(NamedTuple):
    """The options of a read or a stream, parsed; see the module for their meaning."""

    paths: tuple[str, ...]
    view: str = RECORDS
    narrowing: Narrowing = Narrowing()
    columns: tuple[str, ...] | None = None
    snapshots: str = SNAPSHOTS[0]
    show_secrets: bool = False
    slice_bytes: int = SLICE_BYTES
    parallelism: int = 1
    push_filters: bool = False
    variant: bool = False
    trigger_bytes: int = UNLIMITED
    starts: str = STARTS[0]
    moving: tuple[str, ...] = ()
    """Which of ``since`` and ``until`` were given as a duration before now, so that they move with time."""
    skips_unlistable: bool = False
    """Not an option for users: whether a stream skips matches of globs that cannot be listed, instead of failing."""

    def fields(self) -> tuple[Field, ...]:
        """Return the requested columns of the view. Raises UsageError for one that the view does not have."""
        fields = fields_of(self.view)
        return fields if self.columns is None else chosen(fields, self.columns, self.view)


def chosen(fields: Iterable[Field], names: Iterable[str], view: str) -> tuple[Field, ...]:
    """Return the fields with the given names, in their order. Raises UsageError for one unknown or given twice."""
    by_name = {field.name: field for field in fields}
    names = tuple(names)
    for name in names:
        if name not in by_name:
            raise UsageError(f"{name}: the view {view} has no such column", hint=f"it has {', '.join(by_name)}")
        if names.count(name) > 1:
            raise UsageError(f"{name}: a column that is named twice", hint="Spark needs columns with different names")
    return tuple(by_name[name] for name in names)


def parse(texts: Mapping[str, str]) -> Options:
    """Parse the options that Spark passes; their names are case-insensitive. Raises UsageError."""
    by_lower = {name.lower(): name for name in _NAMES}
    options = {}
    for name, text in texts.items():
        if name.lower() not in by_lower:
            raise UsageError(f"{name}: the format kraft has no such option", hint=f"it has {', '.join(_NAMES)}")
        options[by_lower[name.lower()]] = text
    types = _list(options.get("types"))
    clusters = _list(options.get("clusters"))
    columns = _list(options.get("columns"))
    narrowing = Narrowing(
        None if types is None else frozenset(map(record_type, types)),
        None if clusters is None else frozenset(clusters),
        parse_point(options.get("since", "now")),
        parse_point(options.get("until", "now")),
    )
    return Options(
        _paths(options),
        view_name(options.get("view", RECORDS)),
        narrowing,
        columns,
        _one_of("snapshots", options, SNAPSHOTS),
        _truth("showSecrets", options),
        _count("sliceBytes", options, SLICE_BYTES),
        _count("parallelism", options, 2 * (os.cpu_count() or 1)),
        _truth("pushFilters", options),
        _truth("variant", options),
        _count("maxBytesPerTrigger", options, UNLIMITED),
        _one_of("startingOffsets", options, STARTS),
        tuple(name for name in ("since", "until") if is_ago(options.get(name, ""))),
    )


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths: Spark passes one path as the option ``path``, several as a JSON list in ``paths``."""
    paths = [options["path"]] if "path" in options else []
    if "paths" in options:
        try:
            listed = json.loads(options["paths"])
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
            raise UsageError("paths: not a JSON list of paths", hint='load(["/a", "/b"]) makes one')
        paths += listed
    if not paths:
        raise UsageError("no path", hint="load() takes metadata directories, log directories, files, or globs of them")
    return tuple(map(plain, paths))


def _list(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    values = tuple(part for part in (part.strip() for part in text.split(",")) if part)
    if not values:
        raise UsageError("an option that is a list is empty", hint="leave it out")
    return values


def _one_of(name: str, options: Mapping[str, str], choices: tuple[str, ...]) -> str:
    """Return the value of an option with a few choices, of which the first is the default."""
    value = options.get(name, choices[0]).lower()
    if value not in choices:
        raise UsageError(f"{name}: {value} is not one of {', '.join(choices)}")
    return value


def _truth(name: str, options: Mapping[str, str]) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise UsageError(f"{name}: {text} is neither true nor false")
    return text == "true"


def _count(name: str, options: Mapping[str, str], default: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text[:19]) > 0):
        raise UsageError(f"{name}: {text} is no positive number")
    return int(text[:19])
