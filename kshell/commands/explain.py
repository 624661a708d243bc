"""``explain``: every byte of a record batch, with the field to which it belongs and what the field means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows
from kshell.engine.walk import one_line
from kshell.errors import EXIT_DATA, EXIT_OK, CommandError, UsageError
from kshell.history.byte_map import TYPES, ByteRange, batch_pieces, record_pieces, unreadable_pieces
from kshell.history.records import SNAPSHOT_FLAG, snapshot_to_read
from kshell.sources.directory.batch_at import BatchAt, in_log, in_snapshot
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import Listing
from kshell.sources.points import log_offsets
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.redaction import Redaction

_FIELDS = (
    Field("position", "int64", "the first byte; within the file, or within the decompressed records"),
    Field("hex", "string", "the bytes"),
    Field("field", "string", "what they are, as a dotted path"),
    Field("value", "json", "what they mean"),
    Field("note", "string", "what follows from the value, or what is wrong"),
    Field("type", Enumeration(TYPES), "how the value is written", True),
    Field("length", "int64", "how many bytes", True),
    Field("within", Enumeration(("file", "decompressed")), "what position counts in", True),
)
_BYTES_PER_LINE = 8
_FIELD_AT = 8 + 1 + 1 + 3 * _BYTES_PER_LINE + 1
"""The column where a field's name begins."""


class ExplainArguments(RowArguments):
    """Arguments and options of ``explain``."""

    offset: str
    record: bool
    snapshot: str | None


def run(session: Session, args: ExplainArguments) -> Result:
    """Explain the batch with an offset, or one of its records.

    Returns:
        A row per field, in the order of the bytes. Exit code 4 if the batch is damaged.

    Raises:
        CommandError: no batch has that offset, or the batch is damaged and a record was asked for.
    """
    try:
        offset = count(args.offset)
    except ValueError as error:
        raise UsageError(f"explain: {args.offset}: not {error}", hint="explain 8 --record") from None
    located, place = _locate(session, offset, args.snapshot)
    if located.batch is not None and located.fault is None:
        pieces: Iterable[ByteRange] = (
            record_pieces(located.batch, offset, session.redaction)
            if args.record
            else batch_pieces(located.batch, session.redaction)
        )
    else:
        if args.record:
            raise CommandError(
                f"explain: the batch at byte {located.position} of {place} is damaged ({located.fault})",
                hint=f"explain {offset}, without --record, shows what is there",
            )
        pieces = _damaged(located, session.redaction)
    session.remarks.append(f"{place}: bytes {located.position} to {located.end - 1}")
    if located.fault is not None:
        session.remarks.append(f"byte {located.position}: {located.fault}")
    rows = [_row(piece) for piece in pieces]
    result = select(_FIELDS, rows, args, exit_code=EXIT_OK if located.fault is None else EXIT_DATA)
    if not has_row_options(args):
        result.readable = Rows(result.columns, list(_lines(rows)), "lines", line=_line, hanging=_FIELD_AT)
    return result


def _locate(session: Session, offset: int, snapshot: str | None) -> tuple[BatchAt, str]:
    """Find the batch that has an offset, and the name of its file. Raises CommandError if there is none."""

    def look(listing: Listing) -> tuple[BatchAt, str]:
        file = snapshot_to_read(listing, snapshot)
        located = in_log(listing, offset) if file is None else in_snapshot(file, offset)
        if located is None:
            where = "the log" if file is None else f"snapshot {snapshot_id(file)}"
            hint = log_offsets(listing) if file is None else None
            raise CommandError(
                f"{offset}: no batch of {where} has that offset", hint=hint or "`info` lists the offsets"
            )
        if file is None and session.until is not None and offset > session.until:
            raise CommandError(
                f"{offset}: after offset {session.until}, the point in time that is shown",
                hint=f"explain {offset} --as-of now",
            )
        return located, os.path.basename(located.file)

    return session.source.read_listed(look)


def _damaged(located: BatchAt, redaction: Redaction) -> Iterable[ByteRange]:
    if located.batch is None:
        return unreadable_pieces(located.raw, located.start, redaction)
    return batch_pieces(located.batch, redaction, end=located.end - located.start)


def _row(piece: ByteRange) -> JsonObject:
    return {
        "position": piece.start,
        "hex": piece.hex,
        "field": piece.field,
        "value": piece.visible_value,
        "note": piece.note,
        "type": piece.type,
        "length": piece.end - piece.start,
        "within": "decompressed" if piece.is_decompressed else "file",
    }


def _lines(rows: Iterable[JsonObject]) -> Iterator[Row]:
    """Rows for text output: fields of many bytes become several rows; only the first has name and value."""
    width = 3 * _BYTES_PER_LINE
    for row in rows:
        yield row | {"hex": row["hex"][: width - 1]}
        for at in range(width, len(row["hex"]), width):
            more = {"position": row["position"] + at // 3, "hex": row["hex"][at : at + width - 1]}
            yield row | more | {"field": "", "value": None, "note": None}


def _line(row: Row) -> str:
    value = "" if row["value"] is None else f" = {one_line(row['value'])}"
    note = f"  ({row['note']})" if row["note"] else ""
    mark = "+" if row["within"] == "decompressed" else " "
    return f"{row['position']:>8}{mark} {row['hex']:<{3 * _BYTES_PER_LINE}} {row['field']}{value}{note}".rstrip()


COMMAND = Command(
    name="explain",
    task=Task.LOG,
    summary="each byte of the batch with that offset: position, hex, field, value",
    run=run,
    arguments=ExplainArguments,
    args=(Arg("offset", "an offset that the batch has"),),
    flags=(
        Flag(("--record",), "only the record with that offset"),
        SNAPSHOT_FLAG,
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("explain 8 --record", "one record"),
        Example("explain 0", "a batch with a control record"),
        Example("explain 2 --snapshot 159-1 --where 'field ~ \"^records.0.\"'", "a record of a snapshot"),
    ),
    description=(
        "Covers each byte once and in order: the batch's header (whether its checksum is right, the bits of its"
        " attributes), the records with their lengths and deltas, and each field of a record's declaration by a dotted"
        " path. Positions are those in the file. The records of a compressed batch are explained decompressed: their"
        " positions (marked + in text) count within the decompressed data.\n\n"
        "What is damaged is explained as far as it can be; the last row says where that stops, and why (exit code 4)."
        " Types and versions that are not known stay bytes. Secret fields are redacted, in hex as well; so are values"
        " of records where a checksum is wrong, and bytes that are not understood, because they may hold secrets."
    ),
)
