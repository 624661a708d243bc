"""Points in the log's history: an offset, an ISO-8601 time, ``-15m``, or ``now``, and which points can be shown."""

from __future__ import annotations

import contextlib
import re
import time
from typing import NamedTuple

from kshell.errors import CorruptDataError, DataError, IncompleteLogError, MissingCodecError, UsageError
from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.files import Listing, SnapshotFile
from kshell.sources.log import LogReader
from kshell.sources.snapshot import SnapshotReader

_DIGITS = 18
_AGO = re.compile(r"-(\d{1,12})(ms|s|m|h|d|w)\Z")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Point(NamedTuple):
    """One of both, or neither for "now"."""

    offset: int | None = None
    time_ms: int | None = None


def parse_point(text: str) -> Point:
    """Raises UsageError when ``text`` is no point. A time without a zone is UTC."""
    if text == "now":
        return Point()
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return Point(offset=int(text))
    ago = _AGO.match(text)
    if ago:
        return Point(time_ms=int(time.time() * 1000) - int(ago[1]) * _UNITS[ago[2]])
    import datetime  # late: few lines name a point

    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return Point(time_ms=int(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        hint = "a point is an offset (1234), a time (2026-01-31T12:00:00Z), a while ago (-15m, -2h, -1d),"
        hint += " @NAME (`mark` lists the names), or now"
        raise UsageError(f"{text}: not a point in the log", hint=hint) from None


def offset_at(listing: Listing, time_ms: int) -> int:
    """The offset of the last record written at or before a time: of the log, else of the snapshots.

    Raises IncompleteLogError before everything that is known, other DataErrors where the log cannot be read.
    """
    last: int | None = None
    first: int | None = None
    reader = LogReader(listing, 0)
    for _, batch in reader:
        if first is None:
            first = batch.base_timestamp
        if batch.max_timestamp > time_ms:
            inside = _last_by(batch, time_ms, reader.path)
            last = last if inside is None else inside
            break
        last = batch.last_offset
    if last is None:
        last = _snapshot_by(listing, time_ms)
    if last is None:
        told = "there is no log" if first is None else f"the log's first record is of {_iso(first)}"
        raise IncompleteLogError(f"nothing is known of {_iso(time_ms)}: {told}", hint=reach(listing))
    return last


def _last_by(batch: Batch, time_ms: int, path: str) -> int | None:
    try:
        return max((record.offset for record in iter_records(batch) if record.timestamp <= time_ms), default=None)
    except DecodeError as error:
        raise CorruptDataError(path, batch.position, str(error)) from None
    except MissingCodecError as error:
        raise error.at(path, batch.position) from None


def _snapshot_by(listing: Listing, time_ms: int) -> int | None:
    """The last offset in the newest snapshot whose last record was written by then."""
    for file in reversed(listing.snapshots):
        if file.end_offset and 0 <= _written(file) <= time_ms:
            return file.end_offset - 1
    return None


def reach(listing: Listing) -> str | None:
    """The points that an image can be made of, in words: from the log's start, or the oldest snapshot that it joins."""
    base = listing.segments[0].base_offset or 0 if listing.segments else None
    joined = [file for file in listing.snapshots if file.end_offset and (base is None or file.end_offset >= base)]
    first: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    if listing.segments:
        reader = LogReader(listing, listing.segments[-1].base_offset or 0)
        for _, batch in reader:
            last = batch.last_offset, batch.max_timestamp
    if base is not None and base <= listing.unseen:
        first = next(((batch.base_offset, batch.base_timestamp) for _, batch in LogReader(listing, 0)), None)
    elif joined:
        first = (joined[0].end_offset or 0) - 1, _written(joined[0])
        last = last or ((joined[-1].end_offset or 0) - 1, _written(joined[-1]))
    if first is None or last is None:
        return None
    alone = [str(file.end_offset - 1) for file in listing.snapshots if file.end_offset and file.end_offset <= first[0]]
    also = f", and {', '.join(alone)} (snapshots)" if alone else ""
    return f"offsets {first[0]} ({_iso(first[1])}) to {last[0]} ({_iso(last[1])}){also} can be shown"


def _written(file: SnapshotFile) -> int:
    """When the last record in a snapshot was written, as its header says."""
    reader = SnapshotReader(file)
    with contextlib.suppress(DataError, OSError):
        next(iter(reader), None)
    return reader.timestamp


def _iso(time_ms: int) -> str:
    import datetime

    try:
        return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
