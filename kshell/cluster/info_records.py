"""The parts of ``info`` that are about records: how many of each type, and what is wrong with which."""

from __future__ import annotations

from typing import Any

from kshell.cluster.snapshot_slips import Slip
from kshell.engine.result import Row, Rows, typed
from kshell.errors import DataError
from kshell.metadata.replay import MOST_PROBLEMS, SKIPPED
from kshell.sources.directory.survey import LogSurvey, SnapshotSurvey, Types
from kshell.sources.source import Loaded
from kshell.tree.paths import join

_COLUMNS = typed("type:string version:int16 count:int64 undecoded:int64 unknownTags:int64")

_PROBLEM_COLUMNS = typed("kind:string count:int64 record:string version:int16 place:string reason:string")


def type_rows(types: Types) -> Rows:
    """A row for each type and version."""
    rows = [
        {
            "type": name,
            "version": version,
            "count": found.count,
            "undecoded": found.undecoded,
            "unknownTags": found.unknown_tags,
        }
        for (name, version), found in sorted(types.items())
    ]
    return Rows(columns=_COLUMNS, rows=rows)


def problem_rows(
    loaded: Loaded | None,
    failure: DataError | None,
    log: LogSurvey,
    snapshots: list[SnapshotSurvey],
    inside: SnapshotSurvey | None,
    slips: list[Slip],
) -> Rows:
    """Everything that is not as it should be, the worst first; what a person is only told of comes last."""
    damage = [failure, *log.damage, *(found.damage for found in snapshots), *(loaded.damage if loaded else ())]
    messages = dict.fromkeys(error.message for error in damage if error is not None)
    rows = [_row("damage", reason=message) for message in messages]
    rows += _of_types(log.types, "log")
    rows += _of_types(inside.types, f"snapshot {inside.file.end_offset}-{inside.file.epoch}") if inside else []
    rows += _skipped(loaded)
    rows += [
        _row("disagreement", place=f"snapshot {slip.snapshot}", reason=f"{join(slip.path)}: {slip.what}")
        for slip in slips
    ]
    if log.torn is not None:
        path, torn = log.torn
        reason = f"{path}: byte {torn.position}: {torn.reason}; normal while a server writes"
        rows.append(_row("torn tail", reason=reason))
    told = [row["reason"].split(":")[0] for row in rows if row["kind"] == "torn tail"]
    notes = loaded.notes if loaded else []
    rows += [_row("note", reason=note) for note in notes if not any(note.startswith(path) for path in told)]
    return Rows(columns=_PROBLEM_COLUMNS, rows=rows, style="lines", line=_problem_line)


def _problem_line(row: Row) -> str:
    what = f" {row['record']} v{row['version']}" if row["record"] else ""
    times = f" x{row['count']}" if row["count"] > 1 else ""
    where = f" ({row['place']})" if row["place"] else ""
    return f"{row['kind']}{what}{times}: {row['reason']}{where}"


def _row(
    kind: str, count: int = 1, record: str | None = None, version: int | None = None, **more: Any
) -> dict[str, Any]:
    row = {"kind": kind, "count": count, "record": record, "version": version, "place": None}
    return row | more


def _of_types(types: Types, where: str) -> list[dict[str, Any]]:
    """Records that stayed bytes, and records with tags that their declaration does not know."""
    rows = []
    for (name, version), found in sorted(types.items()):
        if found.undecoded:
            kind = "malformed" if found.malformed else "unknown"
            place = f"{where}: from offset {found.first_undecoded}"
            rows.append(_row(kind, found.undecoded, name, version, place=place, reason=found.reason))
        if found.unknown_tags:
            reason = "tagged fields that this kshell does not know; they are kept"
            rows.append(_row("unknown tags", found.unknown_tags, name, version, place=where, reason=reason))
    return rows


def _skipped(loaded: Loaded | None) -> list[dict[str, Any]]:
    """Records that were decoded and do not fit the image."""
    rows = []
    for problem in loaded.problems if loaded else ():
        if problem.undecoded is None:
            origin = problem.origin
            place = f"{origin.place.file}: offset {origin.offset}"
            rows.append(_row("skipped", 1, origin.record_type, origin.version, place=place, reason=problem.reason))
    unlisted = len(loaded.problems.unlisted.get(SKIPPED, ())) if loaded else 0
    if unlisted:
        rows.append(_row("skipped", unlisted, reason=f"only the first {MOST_PROBLEMS} are listed one by one"))
    return rows
