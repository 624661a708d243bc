"""Records one after another, of every form that there is: which are wanted, and what of them is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from kshell.metadata.records import Decoded, decode_record
from kshell.metadata.redaction import REDACTED
from kshell.protocol.batches import Batch, RawRecord, iter_records
from kshell.spark.options import Narrowing
from kshell.tables import arrow as arrow_tables

INT16 = range(-(1 << 15), 1 << 15)
INT64 = range(-(1 << 63), 1 << 63)
"""What the columns of versions, and of offsets and timestamps, can hold. A number beyond it only damage has."""

Wanted = Callable[[RawRecord, bool], bool]
"""Whether a record is of a type that was asked for; the flag: whether it is a control record."""

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode


def records(
    batch: Batch, narrowing: Narrowing, wanted: Wanted | None, *, log: bool
) -> Iterator[tuple[RawRecord, Decoded]]:
    """The records of a batch that are wanted, decoded. Raises DecodeError, MissingCodecError after those before it.

    ``log``: not of a snapshot, whose offsets and times are not the log's.
    """
    control = batch.is_control
    for raw in iter_records(batch):
        if (not log or is_within(raw, narrowing)) and (wanted is None or wanted(raw, control)):
            yield raw, decode_record(raw, control=control)


def is_within(raw: RawRecord, narrowing: Narrowing) -> bool:
    """Whether a record of the log is between the ends that were asked for."""
    since, until = narrowing.since, narrowing.until
    return (
        (since.offset is None or raw.offset >= since.offset)
        and (until.offset is None or raw.offset <= until.offset)
        and (since.time_ms is None or raw.timestamp >= since.time_ms)
        and (until.time_ms is None or raw.timestamp <= until.time_ms)
    )


def json_text(value: Any) -> str:
    """Encode as :func:`~kshell.tables.arrow.json_text` does, with an encoder that is created once."""
    text = _compact(value)
    return text if text.isascii() else arrow_tables.json_text(value)


def raw_bytes(decoded: Decoded, redacted: Any) -> bytes | None:
    """The bytes of what was not decoded, unless they are hidden where records are printed."""
    return None if decoded.undecoded is None or redacted["undecoded"] == REDACTED else decoded.undecoded.raw
