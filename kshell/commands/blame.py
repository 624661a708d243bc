"""``blame``: for each field of a leaf, or each leaf of a directory, the record that last changed it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.predicates import FAIL_IF_ANY, fail_if_any
from kshell.engine.result import Column, Result, Row, Rows
from kshell.engine.session import Session
from kshell.engine.walk import names_and_values
from kshell.errors import EXIT_DATA, EXIT_OK, UsageError
from kshell.history.blame import FIELDS, Blame, Removed
from kshell.history.diff import ADDED, CHANGED, REMOVED
from kshell.history.recorded import recorded_past
from kshell.history.records import changed_parts
from kshell.sources.directory.records import LogRecord, log_records
from kshell.tables.declaration import columns
from kshell.tables.selection import where_flag
from kshell.tree.image import iso
from kshell.tree.paths import below_home, join

if TYPE_CHECKING:
    from kshell.json_text import JsonObject
    from kshell.tables.where import Predicate

_LIMIT = 1000
_OF_LEAF = (*(Column(name) for name in ("field", "value", "offset", "time", "record")), Column("old", spare=1))
_OF_DIRECTORY = tuple(map(Column, ("path", "offset", "time", "record", "value", "old", "change", "changes")))


class BlameArguments(Arguments):
    """Arguments and options of ``blame``."""

    path: str
    where: Predicate | None
    limit: int
    fail_if_any: bool


def run(session: Session, args: BlameArguments) -> Result:
    """Return one row per field if the path is a leaf, else one row per leaf below it and per removed entry."""
    place = session.place(args.path)
    if place is None:
        raise UsageError(f"{args.path}: blame takes one path, without a glob", hint="blame the directory around it")
    place = below_home(session.root, place, "blame")
    history, until = recorded_past(session, "blame")
    blame = Blame(history, until, session.redaction)
    leaf = blame.leaf(place)
    if leaf is not None:
        rows = list(filter(args.where, blame.fields(place, leaf)))
    else:
        removed = blame.removed(place)
        leaves = () if removed and not blame.exists(place) else blame.leaves(place)
        every = chain((blame.leaf_row(*path_and_leaf) for path_and_leaf in leaves), _removals(session, blame, removed))
        rows = list(islice(filter(args.where, every), args.limit + 1))
        if len(rows) > args.limit:
            rows.pop()
            session.remarks.append(f"only the first {args.limit} leaves of {join(place)}: --limit N shows more")
    code = EXIT_DATA if session.found_damage else EXIT_OK
    result = Rows(columns(FIELDS), rows, exit_code=code)
    formatted = [_format_row(row) for row in rows]
    if leaf is not None:
        result.readable = Rows(_OF_LEAF, formatted, exit_code=code)
    else:
        result.readable = Rows(_OF_DIRECTORY, formatted, "lines", line=_line, hanging=7, exit_code=code)
    if args.fail_if_any:
        fail_if_any(result, args.limit)
    return result


def _removals(session: Session, blame: Blame, removed: list[Removed]) -> Iterator[Row]:
    """One row per removed entry. The records that removed them are all read in one pass over the log."""
    offsets = {removal.effective for removal in removed if removal.snapshot is None}
    if not removed:
        return
    records: dict[int, LogRecord] = {}
    if offsets:
        walk = log_records(
            session.source, start=min(offsets), until=max(offsets), wanted=lambda raw, control: raw.offset in offsets
        )
        records = {record.offset: record for record in walk}
    for removal in removed:
        yield blame.row_of_removal(removal, records.get(removal.effective))


def _format_row(row: Row) -> Row:
    """A row for text output: values on one line, the record as a phrase, and the changed parts."""
    cells: JsonObject = {
        **row,
        "value": names_and_values(row["value"]),
        "old": None if row["change"] == ADDED else names_and_values(row["old"]),
        "changes": ", ".join(changed_parts(row["old"], row["value"])) if row["change"] == CHANGED else "",
    }
    if row["change"] == REMOVED:
        cells["value"] = None
    if row["snapshot"] is not None or row["notLaterThan"] is not None:
        cells["time"] = f"not later than offset {row['notLaterThan']}"
        absent = "not in" if row["change"] == REMOVED else "in"
        cells["record"] = f"{absent} snapshot {row['snapshot']}" if row["snapshot"] else None
        cells["old"] = names_and_values(row["old"]) if row["change"] == REMOVED else None
        return cells
    record = (row["type"] or "the last record") if row["offset"] is not None else "by no record"
    removed = " (removed)" if row["change"] == REMOVED else ""
    return {**cells, "record": f"{record}{removed}", "time": iso(row["timestampMs"] or -1)}


def _line(row: Row) -> str:
    """The line of one leaf of a directory: offset, time, record, path, and the changed parts, else the value."""
    head = f"{'' if row['offset'] is None else row['offset']:>6} {row['time'] or ''} {row['record'] or ''}".rstrip()
    if row["change"] == REMOVED:
        return f"{head} {row['path']} was {row['old']}"
    if row["changes"]:
        return f"{head} {row['path']}: {row['changes']}"
    return f"{head} {row['path']} {row['value']}"


COMMAND = Command(
    name="blame",
    task=Task.PAST,
    summary="for each field, the record that last changed it: what and when; who did it is in no log",
    run=run,
    arguments=BlameArguments,
    args=(Arg("path", "a leaf, or a directory with every leaf below it", kind="path"),),
    flags=(
        where_flag(FIELDS),
        Flag(
            ("--limit",),
            f"leaves of a directory at most; {_LIMIT} when absent",
            metavar="N",
            convert=count,
            default=_LIMIT,
        ),
        FAIL_IF_ANY,
    ),
    examples=(
        Example("blame /image/topics/byName/legacy-import/0", "when each field of a partition became what it is"),
        Example("blame /image/configs/TOPIC:orders", "each config of a topic"),
        Example("blame /image/topics/byName --where 'offset > 187'", "what changed last"),
        Example("blame /image/cluster/brokers/3 -o json", "for a program"),
    ),
    description=(
        "A leaf gives one row per field. A directory gives one row per leaf, and after them one row per config, quota,"
        " ACL and the like that no longer exists (change is removed, old is its last value). The record is the one that"
        " last changed the value; a later record that sets the same value again is not shown. old is the value before"
        " the change; text shows it for a directory, and with -o wide for a leaf. offset is the record's own;"
        " effectiveOffset is where the change took effect: the end of the record's metadata transaction, otherwise the"
        " same offset (for what a transaction removed, both are its end). A record says what changed and when, never"
        " who changed it. History starts where the log starts. For older values, and for those that are in a snapshot"
        " but not in the log before it, only the snapshot is known: the value is not later than the snapshot's last"
        " offset (notLaterThan). The whole log is read once."
    ),
)
