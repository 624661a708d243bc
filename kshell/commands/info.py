"""``info``: describe a source: files, offsets, epochs, record counts, quorum, commit status and problems.

All of it is read and verified, but no image is needed, so it also works on a log that cannot be replayed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kshell.cluster.snapshot_slips import Slip, slips
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.local_files import complete_file
from kshell.engine.result import Column, Report, Result, Row, Rows, Section, typed
from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_OK, DataError, UsageError
from kshell.metadata.families.features import ZK_MIGRATION
from kshell.metadata.families.quorum import KRAFT_VERSION, QUORUM
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.readable import ZK_MIGRATION_STATES
from kshell.metadata.replay import MOST_PROBLEMS, SKIPPED
from kshell.protocol.verify import USUAL
from kshell.sources.directory import describe
from kshell.sources.directory.files import Listing, local_path
from kshell.sources.directory.node_directories import inconsistencies, read_directory
from kshell.sources.directory.sidecar_files import (
    bootstrap_file,
    cluster_id,
    leader_epochs,
    meta_properties,
    node_id,
    quorum_state,
)
from kshell.sources.directory.survey import LogSurvey, SegmentSurvey, SnapshotSurvey, Types, survey_log, survey_snapshot
from kshell.sources.source import Loaded
from kshell.tree.image import epoch_ms, iso, provenance
from kshell.tree.paths import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kshell.json_text import JsonObject

_COLUMNS = typed("type:string version:int16 count:int64 undecoded:int64 unknownTags:int64")

_PROBLEM_COLUMNS = typed("kind:string count:int64 record:string version:int16 place:string reason:string")


def type_rows(types: Types) -> Rows:
    """One row per record type and version, with how often it occurs."""
    rows = [
        {
            "type": name,
            "version": version,
            "count": type_survey.count,
            "undecoded": type_survey.undecoded,
            "unknownTags": type_survey.unknown_tags,
        }
        for (name, version), type_survey in sorted(types.items())
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
    """All problems as rows, worst first, notes last. ``inside``: the loaded snapshot, whose records were decoded."""
    damage = [failure, *log.damage, *(survey.damage for survey in snapshots), *(loaded.damage if loaded else ())]
    messages = dict.fromkeys(error.message for error in damage if error is not None)
    rows = [_row("damage", reason=message) for message in messages]
    rows += _of_types(log.types, "log")
    rows += _of_types(inside.types, f"snapshot {inside.file.end_offset}-{inside.file.epoch}") if inside else []
    rows += _skipped(loaded)
    rows += [
        _row("disagreement", place=f"snapshot {slip.snapshot}", reason=f"{join(slip.path)}: {slip.difference}")
        for slip in slips
    ]
    if log.torn is not None:
        path, torn = log.torn
        usual = "" if loaded is not None and loaded.cut_at is not None else USUAL
        reason = f"{path}: byte {torn.position}: {torn.reason}{usual}"
        rows.append(_row("torn tail", reason=reason))
    torn_paths = [row["reason"].split(":")[0] for row in rows if row["kind"] == "torn tail"]
    notes = loaded.notes if loaded else []
    rows += [_row("note", reason=note) for note in notes if not any(note.startswith(path) for path in torn_paths)]
    return Rows(columns=_PROBLEM_COLUMNS, rows=rows, style="lines", line=_problem_line, hanging=2)


def _problem_line(row: Row) -> str:
    record = f" {row['record']} v{row['version']}" if row["record"] else ""
    times = f" x{row['count']}" if row["count"] > 1 else ""
    where = f" ({row['place']})" if row["place"] else ""
    return f"{row['kind']}{record}{times}: {row['reason']}{where}"


def _row(
    kind: str, count: int = 1, record: str | None = None, version: int | None = None, **more: object
) -> JsonObject:
    row = {"kind": kind, "count": count, "record": record, "version": version, "place": None}
    return row | more


def _of_types(types: Types, where: str) -> list[JsonObject]:
    """Problem rows of record types that could not be decoded, or that have unknown tagged fields."""
    rows = []
    for (name, version), type_survey in sorted(types.items()):
        if type_survey.undecoded:
            kind = "malformed" if type_survey.malformed else "unknown"
            place = f"{where}: from offset {type_survey.first_undecoded}"
            rows.append(_row(kind, type_survey.undecoded, name, version, place=place, reason=type_survey.reason))
        if type_survey.unknown_tags:
            reason = "tagged fields that this kshell does not know; they are kept"
            rows.append(_row("unknown tags", type_survey.unknown_tags, name, version, place=where, reason=reason))
    return rows


def _skipped(loaded: Loaded | None) -> list[JsonObject]:
    """Problem rows of records that were decoded, but skipped at replay because they do not fit the image."""
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


_SEGMENTS = ("baseOffset", "endOffset", "sizeBytes", "batches", "epochs", "lastTime")
_SNAPSHOTS = ("id", "sizeBytes", "complete", "records", "lastContainedTime", "damage")


_DIRECTORIES = typed(
    "directory:string clusterId:string nodeId:int32 directoryId:string version:string"
    " unknownKeys:[string] problems:[string]"
)


class InfoArguments(Arguments):
    """Arguments and options of ``info``."""

    directory: list[str]
    meta_properties: bool


def run(session: Session, args: InfoArguments) -> Result:
    """Read the whole log and every snapshot, and report on them; if no image can be made, say why.

    With ``--meta-properties``, only that file of each directory is read.
    """
    if args.meta_properties:
        return _meta_properties([local_path(path) for path in args.directory] or [session.source.path])
    if args.directory:
        raise UsageError("info: takes directories only with --meta-properties", hint="kshell -d DIR info")
    loaded, failure = _load(session)
    listing = loaded.listing if loaded else session.source.listing()
    notes = loaded.notes if loaded else session.remarks
    log = survey_log(session.source, session.until, session.progress)
    used = loaded.snapshot.path if loaded and loaded.snapshot else None
    snapshots = [
        survey
        for file in listing.snapshots
        if (survey := survey_snapshot(listing, file, decode=file.path == used, progress=session.progress))
    ]
    inside = next((survey for survey in snapshots if survey.file.path == used), None)
    offsets = _log(session, listing, log)
    sections = [
        Section("source", "Source", _source(session, listing, notes)),
        Section("image", "Image", _image(loaded) if loaded else {"error": failure.message if failure else None}),
        Section("quorum", "Quorum", _quorum(session, loaded, listing)),
        Section("log", "Log", offsets),
        Section("segments", "Segments", _segments(listing, log)),
        Section("snapshots", "Snapshots", _snapshots(snapshots)),
        Section("epochs", "Epochs", _epochs(session, listing, log)),
        Section("commit", "Commit status", _commit(session, snapshots, offsets)),
        Section("records", "Records in the log", type_rows(log.types)),
    ]
    if inside is not None:
        title = f"Records in snapshot {describe.snapshot_id(inside.file)}"
        sections.append(Section("snapshotRecords", title, type_rows(inside.types)))
    problems = problem_rows(loaded, failure, log, snapshots, inside, slips(session) if loaded else [])
    faulty = bool(list(problems))
    sections.append(Section("problems", "Problems" if faulty else "Problems: none", problems))
    damaged = failure is not None or log.damage or any(survey.damage for survey in snapshots)
    counted = [*log.types.values(), *(inside.types.values() if inside else ())]
    damaged = damaged or any(type_survey.malformed for type_survey in counted)
    result = Report(sections, exit_code=EXIT_DATA if damaged else EXIT_OK)
    result.readable = Report([sections[-1], *sections[:-1]])
    return result


def _meta_properties(paths: list[str]) -> Result:
    """Return one row per directory; exit code 4 if the meta.properties of one is wrong or contradicts another's."""
    if paths == [""]:
        raise UsageError("info: the source has no directory", hint="info --meta-properties DIR …")
    directories = [read_directory(path) for path in paths]
    problems = inconsistencies(directories)
    rows = [
        {
            "directory": directory.path,
            "clusterId": directory.cluster_id,
            "nodeId": directory.node_id,
            "directoryId": directory.directory_id,
            "version": directory.version,
            "unknownKeys": directory.unknown_keys,
            "problems": sentences,
        }
        for directory, sentences in zip(directories, problems, strict=True)
    ]
    result = Rows(_DIRECTORIES, rows, exit_code=EXIT_DATA if any(problems) else EXIT_OK)
    sections = [Section("directories", "", Rows(_DIRECTORIES[:-1], rows))]
    if any(problems):
        faulty = {
            directory.path: sentences for directory, sentences in zip(directories, problems, strict=True) if sentences
        }
        sections.append(Section("problems", "Problems", faulty))
    result.readable = Report(sections)
    return result


def _load(session: Session) -> tuple[Loaded | None, DataError | None]:
    try:
        return session.loaded, None
    except DataError as error:
        return None, error


_TYPES = {
    column.name: column.type
    for column in typed(
        "file:string id:string damage:string complete:boolean epoch:int32 epochs:json firstTime:timestamp"
        " lastTime:timestamp lastContainedTime:timestamp"
    )
}


def _table(names: tuple[str, ...], rows: Sequence[Row], wide: tuple[str, ...] = ()) -> Rows:
    return Rows(
        columns=tuple(Column(name, name in wide, _TYPES.get(name, "int64")) for name in (*names, *wide)), rows=rows
    )


def _source(session: Session, listing: Listing, notes: list[str]) -> JsonObject:
    properties = meta_properties(listing, notes)
    lone = "log file" if listing.segments else "snapshot file"
    source = session.source
    named = source.is_sample or source.is_live
    kind = source.kind if source.is_live else lone if listing.directory is None else "metadata directory"
    return {
        "path": source.name if named else os.path.abspath(source.path),
        "kind": kind,
        "clusterId": cluster_id(listing, notes),
        "nodeId": node_id(properties),
        "directoryId": properties.get("directory.id"),
        "bootstrapFile": bootstrap_file(listing) if not session.source.is_sample else None,
    }


def _image(loaded: Loaded) -> JsonObject:
    image = loaded.image
    version = image["features"].get(FEATURE)
    kraft = image[QUORUM].get(KRAFT_VERSION)
    facts: JsonObject = {
        "provenance": provenance(image),
        "metadataVersion": version_name(version.value) if version else None,
        "kraftVersion": kraft.value if kraft else 0,
        "snapshot": describe.snapshot_named_by(os.path.basename(loaded.snapshot.path)) if loaded.snapshot else None,
        "counts": _counts(image),
        "openTransaction": loaded.open_transaction,
    }
    state = image[ZK_MIGRATION].get(ZK_MIGRATION)
    if state is not None:
        facts["zkMigrationState"] = ZK_MIGRATION_STATES.get(state.value, state.value)
    return facts


def _counts(image: Image) -> dict[str, int]:
    counts = {"topics": len(image[TOPICS]), "partitions": sum(map(len, image[TOPICS].values()))}
    for _, family in sorted(families().items()):
        table = image[family.name]
        counts[family.name] = sum(map(len, table.values())) if len(family.levels) > 1 else len(table)
    counts["fencedBrokers"] = sum(entry.value.fenced for entry in image["brokers"].values())
    return counts


def _quorum(session: Session, loaded: Loaded | None, listing: Listing) -> JsonObject:
    if session.source.is_live and loaded is not None and session.until is None:
        facts = session.source.quorum(loaded)
        leader = {"leaderId": facts["leaderId"][1], "leaderEpoch": facts["leaderEpoch"][1]}
        return leader | {"voters": [_replica(fact[1]) for fact in facts["voters"].values()]}
    if loaded is None:
        state = quorum_state(listing) if session.until is None else {}
        return {"leaderId": state.get("leaderId"), "leaderEpoch": state.get("leaderEpoch"), "voters": []}
    quorum = describe.quorum(loaded)
    return {
        "leaderId": quorum["leaderId"][1],
        "leaderEpoch": quorum["leaderEpoch"][1],
        "voters": [_voter(voter) for voter in describe.voters(loaded)],
    }


def _replica(replica: JsonObject) -> JsonObject:
    points = [f"{point['name']}://{point['host']}:{point['port']}" for point in replica["endpoints"]]
    return {"id": replica["id"], "directoryId": replica["directoryId"], "endpoints": points}


def _voter(voter: JsonObject) -> JsonObject:
    points = [f"{point['name']}://{point['host']}:{point['port']}" for point in voter.get("endpoints", ())]
    return {"id": voter["voterId"], "directoryId": voter.get("voterDirectoryId"), "endpoints": points}


def _log(session: Session, listing: Listing, log: LogSurvey) -> JsonObject:
    first = listing.segments[0].base_offset if listing.segments else None
    history = leader_epochs(listing)
    start = history[0][1] if history and first is not None and history[0][1] > first else first
    return {
        "startOffset": start,
        "firstOffset": log.segments[0].base_offset if log.segments else first,
        "endOffset": log.segments[-1].end_offset if log.segments else first,
        "segments": len(listing.segments),
        "sizeBytes": sum(segment.size for segment in listing.segments),
        "asOf": session.until,
    }


def _segments(listing: Listing, log: LogSurvey) -> Rows:
    surveyed = {survey.file: survey for survey in log.segments}
    rows = []
    for segment in listing.segments:
        name = os.path.basename(segment.path)
        survey = surveyed.get(name) or SegmentSurvey(name, segment.base_offset or 0, segment.base_offset or 0)
        rows.append(
            {
                "file": name,
                "baseOffset": survey.base_offset if segment.base_offset is None else segment.base_offset,
                "endOffset": survey.end_offset,
                "sizeBytes": segment.size,
                "batches": survey.batches,
                "epochs": survey.epochs,
                "firstTime": iso(survey.first_timestamp),
                "lastTime": iso(survey.last_timestamp),
                "firstTimeMs": epoch_ms(survey.first_timestamp),
                "lastTimeMs": epoch_ms(survey.last_timestamp),
            }
        )
    return _table(_SEGMENTS, rows, ("lastTimeMs", "firstTime", "firstTimeMs", "file"))


def _snapshots(snapshots: list[SnapshotSurvey]) -> Rows:
    rows = []
    for survey in snapshots:
        facts = survey.facts
        rows.append(
            {
                "id": describe.snapshot_id(survey.file),
                "sizeBytes": survey.file.size,
                "complete": facts is not None,
                "records": facts.records if facts else None,
                "lastContainedTime": iso(facts.timestamp) if facts else None,
                "lastContainedTimeMs": epoch_ms(facts.timestamp) if facts else None,
                "damage": survey.damage.message if survey.damage else None,
                "endOffset": survey.file.end_offset,
                "epoch": survey.file.epoch,
                "file": os.path.basename(survey.file.path),
            }
        )
    return _table(_SNAPSHOTS, rows, ("endOffset", "epoch", "lastContainedTimeMs", "file"))


def _epochs(session: Session, listing: Listing, log: LogSurvey) -> Rows:
    """Each epoch's start by ``leader-epoch-checkpoint``, next to the first offset that the log has of it."""
    until = session.until
    checkpoint = {epoch: start for epoch, start in leader_epochs(listing) if until is None or start <= until}
    rows = [
        {"epoch": epoch, "startOffset": checkpoint.get(epoch), "firstRecordOffset": log.epochs.get(epoch)}
        for epoch in sorted(checkpoint.keys() | log.epochs.keys())
    ]
    return _table(("epoch", "startOffset", "firstRecordOffset"), rows)


def _commit(session: Session, snapshots: list[SnapshotSurvey], log: JsonObject) -> JsonObject:
    """Which offsets are known to be committed. The high watermark is not on disk; only a running quorum reports it.

    Kafka snapshots only committed records, and deletes the log only below a snapshot, so all below both is committed.
    """
    following = session.source.following()
    if following is not None:
        end = following.end_offset
        note = "everything that is shown is committed"
        return {"highWatermark": end + following.lag, "committedEndOffset": end, "logEndOffset": end, "note": note}
    ends = [survey.file.end_offset for survey in snapshots if survey.facts and survey.file.end_offset is not None]
    committed = max([*ends, log["startOffset"] or 0])
    end = max(log["endOffset"] or 0, committed)
    commit_note = f"offsets below {committed} are committed" if committed else "no offset is known to be committed"
    rest = f"{committed} to {end - 1}: commit status unknown" if end > committed else "nothing follows"
    return {
        "highWatermark": None,
        "committedEndOffset": committed,
        "logEndOffset": end,
        "note": f"{commit_note}; {rest} (the high watermark is not on disk)",
    }


COMMAND = Command(
    name="info",
    task=Task.LOG,
    summary="files, offsets, epochs, record counts, quorum and problems of the source",
    run=run,
    arguments=InfoArguments,
    args=(Arg("directory", "with --meta-properties: log directories", arity="*", complete=complete_file),),
    flags=(Flag(("--meta-properties",), "only meta.properties, of the source or of each directory, side by side"),),
    examples=(
        Example("info", "everything"),
        Example("info --meta-properties node-1 node-2 node-4", "whether directories belong together", 4),
        Example("info -o json | jq .records", "how many records of each type and version there are"),
    ),
    description=(
        "Reads the whole log and every snapshot, checks them, and counts. Records of unknown types and versions,"
        " unknown tags, skipped records and damage are listed under problems, and so is what a snapshot holds otherwise"
        " than the log before it (Kafka can keep the configs of a topic that was created and removed while the node was"
        " away). log.startOffset is where the log begins as far as Kafka is concerned; the first segment may hold older"
        " records, from log.firstOffset on. Works where no image can be made, and then says why.\n\n"
        "--meta-properties needs no source: one row per directory, with its cluster, node and directory id, keys that"
        " Kafka does not write, and what is inconsistent: another cluster, a node id or a directory id that is there"
        " twice (exit code 4). Several log directories of one node are fine: only one of them has the metadata log."
    ),
    needs_source=False,
)
