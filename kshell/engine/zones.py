"""The user's time zone (``set timezone``, ``--tz``): apply it to times that the user types, and to times in answers.

Kafka's records have epoch milliseconds, and all formats for programs print UTC. The zone only changes the formats for
reading (``text``) and the meaning of a typed time without a zone.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from kshell.engine.result import (
    Branch,
    Drawing,
    Many,
    Report,
    Result,
    Row,
    Rows,
    Section,
    StyledText,
    Text,
    Tree,
    Value,
)
from kshell.errors import UsageError
from kshell.sources.points import parse_point

LOCAL = "local"
_LENGTH = len("2026-11-21T15:11:22.345Z")
_TIME = re.compile(r"(?<![\w/:.-])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:\d{3})?Z(?![\w/-]|[:.]\w)", re.ASCII)
"""A time as kshell writes it (``sql`` with microseconds), where it is a word of its own: one inside a path, a principal
or another name is not kshell's, and must stay what it is.
"""
_ENDS_OF_AXIS = re.compile(f"( *)({_TIME.pattern})( +)({_TIME.pattern})", re.ASCII)
"""A line of a drawing with the times at both ends of its axis."""


def zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name (``Europe/Berlin``), or that of this machine (``local``).

    Raises:
        ValueError: there is no such zone; its text says what is expected.
    """
    if name == LOCAL:
        return _local()
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError("a time zone such as Europe/Berlin, UTC or local") from None


def _local() -> tzinfo:
    """Return the zone that ``TZ`` or ``/etc/localtime`` names; if neither does, the present offset from UTC."""
    name = os.environ.get("TZ") or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        here = datetime.now().astimezone().tzinfo
        assert here is not None
        return here


def zone_name(name: str) -> str:
    """Return the name unchanged if it is a zone. Raises ValueError if not."""
    zone(name)
    return name


def absolute(point: str, name: str) -> str:
    """Convert a typed time to UTC; a time without a zone is read in the zone ``name``. Other points stay unchanged."""
    try:
        moment = parse_point(point, zone=zone(name), from_end=True)
    except UsageError:
        return point
    if moment.time_ms is None:
        return point
    return datetime.fromtimestamp(moment.time_ms / 1000, ZoneInfo("UTC")).isoformat(timespec="milliseconds")


def in_zone(result: Result, name: str) -> Result:
    """Return a copy of an answer with all UTC times, also inside texts, in the zone: ``2026-11-21T16:11:22+01:00``."""
    here = zone(name)
    localized = copy.copy(result)
    if isinstance(localized, Drawing):
        draw = localized.draw
        localized.draw = lambda width: [moved for line in draw(width) for moved in _drawn(line, here)]
    elif isinstance(localized, Text):
        localized.text = _value(localized.text, here)
    elif isinstance(localized, Value):
        localized.value = _value(localized.value, here)
    elif isinstance(localized, Rows):
        localized.rows = _Rows(localized.rows, here)
        if localized.line is not None:
            line = localized.line
            localized.line = lambda row: _value(line(row), here)
    elif isinstance(localized, Tree):
        localized.root = _branch(localized.root, here)
    elif isinstance(localized, Report):
        localized.sections = [_section(section, here, name) for section in localized.sections]
    if not isinstance(localized, Many) and localized.readable is not None:
        localized.readable = in_zone(localized.readable, name)
    return localized


def text_in_zone(text: str, name: str) -> str:
    """Return a text with its UTC times in the zone."""
    localized: str = _value(text, zone(name))
    return localized


def _drawn(line: list[str], here: tzinfo) -> list[list[str]]:
    """Return the line of a drawing, or two: times with an offset are longer, and must stay at the axis's ends."""
    localized: list[str] = _value(line, here)
    ends = _ENDS_OF_AXIS.fullmatch(line[0]) if len(line) == 1 else None
    if ends is None or localized == line:
        return [localized]
    first, last = (_value(ends[number], here) for number in (2, 4))
    start = ends[1] + first
    end = last.rjust(len(line[0]) - len(start))
    return [[start + end]] if end.startswith(" ") else [[start], [last.rjust(len(line[0]))]]


class _Rows(Iterable[Row]):
    """Rows whose times are converted while they are read, without materializing them."""

    def __init__(self, rows: Iterable[Row], here: tzinfo) -> None:
        self._rows = rows
        self._here = here

    def __iter__(self) -> Iterator[Row]:
        return ({key: _value(value, self._here) for key, value in row.items()} for row in self._rows)


def _section(section: Section, here: tzinfo, name: str) -> Section:
    if isinstance(section.body, Rows):
        body = in_zone(section.body, name)
        assert isinstance(body, Rows)
        return section._replace(body=body)
    return section._replace(body=_value(section.body, here))


def _branch(branch: Branch, here: tzinfo) -> Branch:
    below = None if branch.children is None else [_branch(child, here) for child in branch.children]
    return branch._replace(value=_value(branch.value, here), children=below)


def _value(value: object, here: tzinfo) -> Any:
    if isinstance(value, str):
        if "T" not in value:
            return value
        text = _TIME.sub(lambda match: _in_words(match[0], here), value)
        return StyledText(text, value.tone) if isinstance(value, StyledText) else text
    if isinstance(value, Mapping):
        return {key: _value(below, here) for key, below in value.items()}
    return [_value(below, here) for below in value] if isinstance(value, list | tuple) else value


def _in_words(time: str, here: tzinfo) -> str:
    """Convert an ISO 8601 time to the zone; return it unchanged if that is impossible."""
    try:
        unit = "milliseconds" if len(time) == _LENGTH else "microseconds"
        return datetime.fromisoformat(time).astimezone(here).isoformat(timespec=unit)
    except (ValueError, OverflowError):
        return time
