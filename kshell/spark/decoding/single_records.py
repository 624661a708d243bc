"""Decode records one by one, whatever their form: the slow path of the view ``records``, the only one of others."""

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
"""The ranges of the columns for versions, and for offsets and timestamps; only damage has numbers beyond them."""

Wanted = Callable[[RawRecord, bool], bool]
"""(record, whether it is a control record) -> whether it is of a requested type."""

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode


def records(
    batch: Batch, narrowing: Narrowing, wanted: Wanted | None, *, log: bool
) -> Iterator[tuple[RawRecord, Decoded]]:
    """Decode the wanted records of a batch. ``log``: it is of a log, so its offsets and times count for that.

    Raises DecodeError or MissingCodecError, after the records before the fault.
    """
    control = batch.is_control
    for raw in iter_records(batch):
        if (not log or is_within(raw, narrowing)) and (wanted is None or wanted(raw, control)):
            yield raw, decode_record(raw, control=control)


def is_within(raw: RawRecord, narrowing: Narrowing) -> bool:
    """Whether a record of the log has an offset and a time between ``since`` and ``until`` (both inclusive)."""
    since, until = narrowing.since, narrowing.until
    return (
        (since.offset is None or raw.offset >= since.offset)
        and (until.offset is None or raw.offset <= until.offset)
        and (since.time_ms is None or raw.timestamp >= since.time_ms)
        and (until.time_ms is None or raw.timestamp <= until.time_ms)
    )


def json_text(value: object) -> str:
    """Encode as :func:`~kshell.tables.arrow.json_text` does, but faster: with an encoder that is created once."""
    text = _compact(value)
    return text if text.isascii() else arrow_tables.json_text(value)


def raw_bytes(decoded: Decoded, redacted: Any) -> bytes | None:
    """Return the bytes of a record that was not decoded; ``None`` if it was, or if its type may carry secrets."""
    return None if decoded.undecoded is None or redacted["undecoded"] == REDACTED else decoded.undecoded.raw
