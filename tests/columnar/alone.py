"""Rows of the view ``records`` decoded together, and the same batches one record after another."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from kshell.errors import MissingCodecError
from kshell.metadata.records import decode_record
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.primitives import DecodeError
from kshell.spark.options import Narrowing
from kshell.spark.schemas import RECORD_FIELDS
from kshell.tables.arrow import json_text
from tests.builders import batches

Row = tuple[Any, ...]
NAMES = ("offset", "timestampMs", "type", "version", "data", "reason", "raw")


def together(
    made: Iterable[Batch], narrowing: Narrowing | None = None, *, show_secrets: bool = False, snapshot: bool = False
) -> list[Row]:
    """As the pipeline decodes them, all at once."""
    bronze = importlib.import_module("kshell.spark.decoding.bronze")
    records = bronze.Records(RECORD_FIELDS, narrowing or Narrowing(), Redaction(show_secrets=show_secrets))
    for number, batch in enumerate(made):
        records.add(batch, ("c", 1, "f", snapshot, number, batch.epoch))
    found = []
    for part in records.record_batches():
        part.validate(full=True)
        found += [tuple(row[name] for name in NAMES) for row in part.to_pylist()]
    assert list(records.record_batches()) == []
    return found


def alone(made: Iterable[Batch], *, show_secrets: bool = False) -> list[Row]:
    """One after another, with nothing but the core."""
    redaction, found = Redaction(show_secrets=show_secrets), []
    for batch in made:
        try:
            for raw in iter_records(batch):
                decoded = decode_record(raw, control=batch.is_control)
                shown = redaction.record(decoded)
                reason = decoded.undecoded.reason if decoded.undecoded else None
                kept = None
                if decoded.undecoded and shown["undecoded"] != REDACTED:
                    kept = decoded.undecoded.raw
                found.append(
                    (
                        _held(raw.offset, 64), _held(raw.timestamp, 64), decoded.name, _held(decoded.version, 16),
                        json_text(shown), reason, kept,
                    )
                )  # fmt: skip
        except (DecodeError, MissingCodecError):
            continue
    return found


def _held(number: int, bits: int) -> int | None:
    """What an integer of so many bits can hold."""
    return number if -(1 << (bits - 1)) <= number < 1 << (bits - 1) else None


def same(*raw: bytes, show_secrets: bool = False) -> list[Row]:
    """The rows of some batches' bytes, both ways."""
    made = [one for part in raw for one in (batches(part) if part else [])]
    found = together(made, show_secrets=show_secrets)
    assert found == alone(made, show_secrets=show_secrets)
    return found
