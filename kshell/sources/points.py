"""Points in the log's history: parse what a user typed, find the offset of a time, and say which points can be shown.

A point is an offset, an ISO-8601 time, a time before now (``-15m``) or before the last record (``end-15m``), or now.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import (
    CorruptDataError,
    DataError,
    IncompleteLogError,
    MissingCodecError,
    OutOfReachError,
    UsageError,
)
from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import LogReader
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.wording import all_of

if TYPE_CHECKING:
    import datetime

_DIGITS = 19
_LARGEST = 2**63 - 1
_MOST = 6
"""The most ranges of points that an error names."""
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,3})?)(ms|s|m|h|d|w)", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
"""A time of today, such as ``12:00``."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Point(NamedTuple):
    """An offset, a time (epoch milliseconds), or milliseconds before the log's last record; all ``None`` means now."""

    offset: int | None = None
    time_ms: int | None = None
    before_end_ms: int | None = None


class Since(NamedTuple):
    """Where the records of ``--since`` begin: at ``offset``, and, if ``time_ms`` is set, at that time.

    The clocks of controllers differ, so a record after ``offset`` may have been written before ``time_ms``: each
    record's own time decides.
    """

    offset: int
    time_ms: int | None = None
    last_ms: int | None = None
    """The time of the log's last record, if it was written before ``time_ms``, so that no record is left."""

    def includes(self, offset: int, timestamp: int) -> bool:
        """Whether a record with that offset and timestamp (epoch milliseconds) is at or after the point."""
        return offset >= self.offset and (self.time_ms is None or timestamp >= self.time_ms)

    def reaches(self, end: int, timestamp: int) -> bool:
        """Whether a state lasted beyond the point, if the record at offset ``end``, of that timestamp, ended it."""
        return timestamp > self.time_ms if self.time_ms is not None else end > self.offset


HINT = (
    "a point is an offset (1234), a time (2026-01-31T12:00:00Z, 2026-01-31 12:00, 12:00 for today's), a while ago"
    " (-15m, -2h, -1d), a while before the last record (end-15m), today, yesterday, @NAME (`mark` lists the names), or"
    " now"
)


def parse_point(text: str, *, zone: datetime.tzinfo | None = None, from_end: bool = False) -> Point:
    """Read a point in the log's history.

    Args:
        text: what the user typed. ``today`` and ``yesterday`` are the midnights at which those days begin.
        zone: the time zone of times that name none; UTC by default.
        from_end: whether ``end-15m`` is allowed; if not, it is refused with a hint.

    Raises:
        UsageError: ``text`` is no point.
    """
    if text in ("now", "end"):
        return Point()
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= _LARGEST:
        return Point(offset=int(text))
    counted, dash, duration = text.partition("-")
    if dash and counted in ("", "end") and _DURATION.fullmatch(duration):
        if not counted:
            return Point(time_ms=int(time.time() * 1000) - duration_ms(duration))
        if not from_end:
            raise UsageError(f"{text}: only the points of one log can be counted from its end", hint="name a time")
        return Point(before_end_ms=duration_ms(duration))
    try:
        return Point(time_ms=int(_moment(text, zone).timestamp() * 1000))
    except (ValueError, OverflowError):
        hint = (
            f"did you mean -{text} (ago) or end-{text} (before the last record)?" if _DURATION.fullmatch(text) else HINT
        )
        raise UsageError(f"{text or repr(text)}: not a point in the log", hint=hint) from None


def _moment(text: str, zone: datetime.tzinfo | None) -> datetime.datetime:
    """Parse a day, a time of today, or an ISO-8601 date with or without a time. Raises ValueError."""
    import datetime  # imported late: few command lines name a point

    zone = zone or datetime.UTC
    midnight = datetime.datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if text == "today":
        return midnight
    if text == "yesterday":
        return midnight - datetime.timedelta(days=1)
    if _CLOCK.fullmatch(text):
        text = f"{midnight:%Y-%m-%d}T{text}"
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def is_ago(text: str) -> bool:
    """Whether a point counts back from now (``-15m``), so that it means another moment later."""
    return text.startswith("-") and _DURATION.fullmatch(text[1:]) is not None


def is_duration_before(text: str) -> bool:
    """Whether a point counts back from now (``-15m``) or from the last record (``end-15m``)."""
    return is_ago(text.removeprefix("end"))


def duration_ms(text: str) -> int:
    """Convert ``500ms``, ``1.5s``, ``5m``, ``2h``, ``7d`` or ``1w`` to milliseconds. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("a duration: 500ms, 30s, 5m, 2h, 7d, 1w")
    return int(float(match[1]) * _UNITS[match[2]])


def end_time(listing: Listing) -> int:
    """The latest time of a record in the log or in a snapshot, in epoch milliseconds.

    Raises:
        OutOfReachError: there is no record with a time.
    """
    last = max((batch.max_timestamp for _, batch in LogReader(listing, 0, resume=True)), default=-1)
    for file in listing.snapshots:
        last = max(last, _written(file))
    if last < 0:
        raise OutOfReachError("the log has no record that a time can be counted from", hint="name an offset")
    return last


def offset_at(listing: Listing, time_ms: int) -> int:
    """The offset of the last record written at or before ``time_ms``, in the log or at the end of a later snapshot.

    Raises:
        OutOfReachError: the time is before every record that is known.
        IncompleteLogError: the records that come next are missing, so one of them may be the last.
        DataError: the log cannot be read.
    """
    last, written = -1, -1
    first: int | None = None
    following: int | None = None
    reader = LogReader(listing, 0, resume=True)
    for _, batch in reader:
        first = batch.base_timestamp if first is None else first
        if batch.max_timestamp > time_ms:
            inside = _last_by(batch, time_ms, reader.path)
            if inside is not None:
                return inside
            following = batch.base_offset
            break
        last, written = batch.last_offset, batch.max_timestamp
    snapshots = [(end, _written(file)) for file in listing.snapshots if (end := file.end_offset or 0) - 1 > last]
    if following is not None:  # a snapshot that ends after that batch has later records, whatever its time says
        snapshots = [(end, of) for end, of in snapshots if end <= following]
    for end, of in snapshots:
        if 0 <= of <= time_ms:
            last, written = end - 1, of
    following = min((end for end, of in snapshots if end - 1 > last and of > time_ms), default=following)
    unknown = f"the state at {_iso(time_ms)} is not known"
    if last < 0:
        reason = "there is no log" if first is None else f"the log's first record was written at {_iso(first)}"
        raise OutOfReachError(f"{unknown}: {reason}", hint=reach(listing))
    if following is not None and following > last + 1 and written < time_ms:
        raise IncompleteLogError(f"{unknown}: {missing(last + 1, following)}", hint=reach(listing))
    return last


def since_time(listing: Listing, time_ms: int) -> Since:
    """Find the first batch with a record written at ``time_ms`` or later; the log's end if there is none.

    A time before the log's first record gives that record, because the log has nothing older. Raises DataError.
    """
    end, last = 0, -1
    for _, batch in LogReader(listing, 0, resume=True):
        if batch.max_timestamp >= time_ms:
            return Since(batch.base_offset, time_ms)
        end, last = batch.last_offset + 1, max(last, batch.max_timestamp)
    return Since(end, time_ms, last if last >= 0 else None)


def missing(first: int, following: int) -> str:
    """Say that the offsets from ``first`` up to ``following`` (exclusive) are missing."""
    return f"offset {first} is missing" if following == first + 1 else f"offsets {first} to {following - 1} are missing"


def _last_by(batch: Batch, time_ms: int, path: str) -> int | None:
    """The offset of the batch's last record written at or before ``time_ms``; ``None`` if it has none."""
    try:
        return max((record.offset for record in iter_records(batch) if record.timestamp <= time_ms), default=None)
    except DecodeError as error:
        raise CorruptDataError(path, batch.position, str(error)) from None
    except MissingCodecError as error:
        raise error.at(path, batch.position) from None


class _OffsetRange(NamedTuple):
    """A range of points that can be shown; both ends are (offset, time of its record in epoch milliseconds)."""

    first: tuple[int, int]
    last: tuple[int, int]

    def __str__(self) -> str:
        return " to ".join(
            f"{offset} ({_iso(time_ms)})" if time_ms >= 0 else f"{offset}" for offset, time_ms in dict.fromkeys(self)
        )


def reach(listing: Listing) -> str | None:
    """Return a hint which offsets can be shown: from the log's start on, or from a snapshot that the log continues."""
    texts = [str(offset_range) for offset_range in _shown_ranges(listing)]
    return f"offsets {_listed(texts)} can be shown" if texts else None


def log_offsets(listing: Listing) -> str | None:
    """Return a hint which offsets the log has, so that a gap is seen; ``None`` if it has none."""
    texts = [f"{first[0]} to {last[0]}" for first, last in _unbroken(listing)]
    return f"the log has offsets {_listed(texts)}" if texts else None


def _listed(texts: list[str]) -> str:
    return all_of([*texts[: _MOST - 1], "…", texts[-1]] if len(texts) > _MOST else texts)


def oldest_before_now(listing: Listing) -> int | None:
    """The oldest offset from which every state can be shown, with no gap up to the end; ``None`` if there is none."""
    ranges = _shown_ranges(listing)
    return ranges[-1].first[0] if ranges else None


def _shown_ranges(listing: Listing) -> list[_OffsetRange]:
    """The ranges of points that can be shown, in order; a snapshot outside of them is a range of one point."""
    ranges: list[_OffsetRange] = []
    for first, last in _unbroken(listing):
        joined = [file for file in listing.snapshots if file.end_offset and first[0] <= file.end_offset <= last[0] + 1]
        if first[0] <= listing.first_needed_offset or listing.directory is None:  # a lone segment shows its own
            ranges.append(_OffsetRange(first, last))
        elif joined:
            ranges.append(_OffsetRange(((joined[0].end_offset or 0) - 1, _written(joined[0])), last))
    for file in listing.snapshots:
        end = (file.end_offset or 0) - 1
        if end >= 0 and not any(offset_range.first[0] <= end <= offset_range.last[0] for offset_range in ranges):
            ranges.append(_OffsetRange((end, _written(file)), (end, _written(file))))
    return sorted(ranges)


def _unbroken(listing: Listing) -> list[_OffsetRange]:
    """The ranges of the log in which no offset is missing."""
    ranges: list[_OffsetRange] = []
    for _, batch in LogReader(listing, 0, resume=True):
        first, last = (batch.base_offset, batch.base_timestamp), (batch.last_offset, batch.max_timestamp)
        if ranges and ranges[-1].last[0] + 1 == batch.base_offset:
            ranges[-1] = ranges[-1]._replace(last=last)
        else:
            ranges.append(_OffsetRange(first, last))
    return ranges


def _written(file: SnapshotFile) -> int:
    """The time of the last record in a snapshot, from its header, in epoch milliseconds; -1 if it is not known."""
    reader = SnapshotReader(file)
    with contextlib.suppress(DataError, OSError):
        next(iter(reader), None)
    return reader.timestamp


def _iso(time_ms: int) -> str:
    import datetime

    try:
        moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
