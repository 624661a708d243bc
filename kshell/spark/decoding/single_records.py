"""Decode records one by one, whatever their form: the slow path of the view ``records``, the only one of others."""

from __future__ import annotations

from collections.abc import Iterator

from kshell.metadata.records import Decoded, decode_record
from kshell.protocol.batches import Batch, RawRecord, iter_records
from kshell.sources.directory.records import Wanted
from kshell.spark.options import Narrowing


def records(
    batch: Batch, narrowing: Narrowing, wanted: Wanted | None, *, log: bool
) -> Iterator[tuple[RawRecord, Decoded]]:
    """Decode the wanted records of a batch. ``log``: it is of a log, so its offsets and times count for that.

    Raises DecodeError or MissingCodecError, after the records before the fault.
    """
    control = batch.is_control
    for raw in iter_records(batch):
        if (not log or _is_within(raw, narrowing)) and (wanted is None or wanted(raw, control)):
            yield raw, decode_record(raw, control=control)


def _is_within(raw: RawRecord, narrowing: Narrowing) -> bool:
    """Whether a record of the log has an offset and a time between ``since`` and ``until`` (both inclusive)."""
    since, until = narrowing.since, narrowing.until
    return (
        (since.offset is None or raw.offset >= since.offset)
        and (until.offset is None or raw.offset <= until.offset)
        and (since.time_ms is None or raw.timestamp >= since.time_ms)
        and (until.time_ms is None or raw.timestamp <= until.time_ms)
    )
