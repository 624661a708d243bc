"""Points in the log's history: an offset, an ISO-8601 time, ``-15m``, or ``now``."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from kshell.errors import IncompleteLogError, UsageError
from kshell.protocol.batches import iter_records
from kshell.sources.files import Listing
from kshell.sources.log import LogReader

_AGO = re.compile(r"-(\d+)(ms|s|m|h|d|w)\Z")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Point(NamedTuple):
    """One of both, or neither for "now"."""

    offset: int | None = None
    time_ms: int | None = None


def parse_point(text: str) -> Point:
    """Raises UsageError when ``text`` is no point. A time without a zone is UTC."""
    if text == "now":
        return Point()
    if text.isascii() and text.isdigit():
        return Point(offset=int(text))
    ago = _AGO.match(text)
    if ago:
        return Point(time_ms=int(time.time() * 1000) - int(ago[1]) * _UNITS[ago[2]])
    import datetime  # late: few lines name a point

    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        hint = "a point is an offset (1234), a time (2026-01-31T12:00:00Z), a while ago (-15m, -2h, -1d), or now"
        raise UsageError(f"{text}: not a point in the log", hint=hint) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return Point(time_ms=int(moment.timestamp() * 1000))


def offset_at(listing: Listing, time_ms: int) -> int:
    """The offset of the last record written at or before a time. Raises IncompleteLogError before the log's first."""
    last: int | None = None
    first: int | None = None
    for _, batch in LogReader(listing, 0):
        if first is None:
            first = batch.base_timestamp
        if batch.max_timestamp <= time_ms:
            last = batch.last_offset
            continue
        for record in iter_records(batch):
            if record.timestamp > time_ms:
                break
            last = record.offset
        break
    if last is None:
        reach = "there is no log" if first is None else f"the log's first record is of {_iso(first)}"
        raise IncompleteLogError(f"nothing is known of {_iso(time_ms)}: {reach}")
    return last


def _iso(time_ms: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
