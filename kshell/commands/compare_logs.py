"""``compare-logs``: whether copies of the metadata log from several nodes agree, and at which offset they diverge.

:mod:`kshell.sources.copies.agreement` compares the logs; this module adds snapshots, and advice which copy to keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine import tones
from kshell.engine.declaration import Arg, Command, Example, Task
from kshell.engine.local_files import complete_file, note_unread_source
from kshell.engine.result import Column, Report, Result, Row, Rows, Section
from kshell.engine.walk import names_and_values
from kshell.errors import (
    EXIT_DATA,
    EXIT_FINDING,
    EXIT_OK,
    EXIT_SOURCE,
    DataError,
    MissingCodecError,
    SourceError,
    SourceNotFoundError,
    UsageError,
)
from kshell.history.diff import PROVENANCE, changed_places
from kshell.history.records import RECORD_TYPE
from kshell.metadata.image import Image
from kshell.metadata.records import decode_record
from kshell.protocol.batches import RawRecord, iter_records
from kshell.protocol.primitives import DecodeError
from kshell.sources.copies.agreement import (
    BEHIND,
    CONSISTENT,
    DAMAGED,
    DIVERGED,
    NOT_COMPARED,
    OTHER_CLUSTER,
    REFERENCE,
    SAME,
    STATES,
    CopyComparison,
    CopyVerdict,
    Divergence,
    compare_copies,
    reason,
    which_to_keep,
    with_damage,
)
from kshell.sources.copies.histories import Contradiction, contradictions
from kshell.sources.copies.logs import Copy, UnreadCopy, open_copies, read_together, twins
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import Progress
from kshell.sources.directory.ranges import FileWindows
from kshell.sources.directory.source import DirectorySource, without_collector
from kshell.tables.declaration import Field, columns
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select, wanted
from kshell.tree.hash import image_hash
from kshell.tree.paths import Segments, join
from kshell.wording import first_of

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.redaction import Redaction
    from kshell.protocol.batches import Batch

_MOST_PATHS = 3
"""Paths that a sentence names at most; it counts the rest."""


class Snapshots(NamedTuple):
    """The result of comparing a copy's snapshots: the copy's state, and the first difference (``None``: none)."""

    state: str
    difference: str | None


def compare_snapshots(verdict: CopyVerdict, reference: Copy, progress: Progress | None) -> Snapshots:
    """Compare the snapshots of a copy with those of the copy that its log was compared to, else the reference.

    If they share neither offsets nor snapshots, a snapshot of one is compared with what the other's log yields there.
    Else the state stays that of the logs, unless snapshots differ. Raises SourceError for a file that cannot be read.
    """
    peer = verdict.peer or reference
    compared = False
    for mine, theirs in _shared(verdict.copy, peer):
        try:
            difference = _difference(mine, theirs, progress)
        except (FileNotFoundError, SourceNotFoundError):
            continue  # a running server deletes old snapshots at any time
        if difference is not None:
            return Snapshots(DIVERGED, f"{difference} {peer.path}")
        compared = True
    if verdict.state != NOT_COMPARED:
        return Snapshots(verdict.state, None)
    return _by_state(verdict.copy, peer, progress, compared=compared)


def _difference(mine: SnapshotFile, theirs: SnapshotFile, progress: Progress | None) -> str | None:
    """How two snapshots with the same end offset differ, as a phrase to which the caller adds the peer's path."""
    name = f"snapshot {mine.end_offset}-{mine.epoch}"
    if mine.epoch != theirs.epoch:
        return f"{name} is {theirs.end_offset}-{theirs.epoch} in"
    if _same_bytes(mine, theirs):
        return None
    paths = _differing(_image(mine, progress), _image(theirs, progress))
    return f"{name} holds other metadata ({_join_paths(paths)}) than that of" if paths else None


def _by_state(copy: Copy, peer: Copy, progress: Progress | None, *, compared: bool) -> Snapshots:
    """For copies without a common offset: compare a snapshot of one with the image of the other at that offset."""
    ahead_of_it = SAME if copy.end == peer.end else BEHIND
    if compared:
        return Snapshots(ahead_of_it, None)
    for file, holder in ((_newest(copy, peer.end), peer), (_newest(peer, copy.end), copy)):
        log_image = None if file is None else _image_at(holder, file, progress)
        if file is None or log_image is None:
            continue
        paths = _differing(_image(file, progress), log_image)
        if paths:
            name = f"snapshot {file.end_offset}-{file.epoch} of {(copy if holder is peer else peer).path}"
            return Snapshots(
                DIVERGED, f"{name} holds other metadata ({_join_paths(paths)}) than the log of {holder.path} makes"
            )
        return Snapshots(ahead_of_it, None)
    return Snapshots(NOT_COMPARED, None)


def _newest(copy: Copy, end: int | None) -> SnapshotFile | None:
    """The newest snapshot that does not end after an offset."""
    files = [file for file in copy.snapshots if file.end_offset and file.end_offset <= (end or 0)]
    return files[-1] if files else None


def _image_at(copy: Copy, file: SnapshotFile, progress: Progress | None) -> Image | None:
    """The image of a copy at the end of a snapshot; ``None`` if the copy does not reach there or is damaged."""
    assert file.end_offset is not None
    try:
        then = copy.source.load(until=file.end_offset - 1, progress=progress)
    except DataError:
        return None
    return None if then.damage or then.image.provenance.offset != file.end_offset - 1 else then.image


def _shared(copy: Copy, peer: Copy) -> Iterator[tuple[SnapshotFile, SnapshotFile]]:
    """Pairs of snapshots with the same end offset, oldest first, without those that formatting writes (offset 0)."""
    theirs = {file.end_offset: file for file in peer.snapshots if file.end_offset}
    for file in copy.snapshots:
        if file.end_offset in theirs:
            yield file, theirs[file.end_offset]


def _same_bytes(file: SnapshotFile, peer_file: SnapshotFile) -> bool:
    if file.size != peer_file.size:
        return False
    with FileWindows(file.path) as mine, FileWindows(peer_file.path) as theirs:
        position = 0
        while mine.size == theirs.size and position < mine.size:
            piece, its_piece = mine.window(position, 1), theirs.window(position, 1)
            if piece != its_piece:
                return False
            position = piece.end
        return mine.size == theirs.size


def _image(file: SnapshotFile, progress: Progress | None) -> Image:
    return DirectorySource(file.path).load(progress=progress).image


def _differing(image: Image, peer_image: Image) -> list[Segments]:
    return [path for path in changed_places(image, peer_image) if path != PROVENANCE]


def _join_paths(paths: list[Segments]) -> str:
    return first_of(list(map(join, paths)), _MOST_PATHS)


_RECORD = {
    "offset": "int64",
    "epoch": "int32",
    "timestampMs": "int64",
    "type": RECORD_TYPE,
    "version": "int16",
    "data": "json",
}


_FIELDS = (
    Field("copy", "string", "the directory or file, as given on the command line"),
    Field(
        "state",
        Enumeration((*STATES, DAMAGED)),
        "reference, same, behind, diverged, damaged, other-cluster or not-compared; see `man compare-logs`",
        tone=tones.state,
    ),
    Field("nodeId", "int32", "the node whose copy it is; null without meta.properties"),
    Field("startOffset", "int64", "of the log's first record; null where there is no log", spare=1),
    Field("endOffset", "int64", "after the last record, be it in the log or only in a snapshot"),
    Field("lastEpoch", "int32", "the epoch of the last record", spare=1),
    Field("snapshot", "string", "the newest snapshot that is whole"),
    Field("hash", "string", "of the metadata at hashOffset, the last offset that all compared copies have", True),
    Field("sameTo", "int64", "the log is the same up to here (exclusive); null where no offset is in both"),
    Field("divergesAt", "int64", "the first offset that differs"),
    Field("uncommittedFrom", "int64", "from here on, the copies do not prove that records are committed", True),
    Field("hashOffset", "int64", "the offset that hash is of", True),
    Field("reason", "string", "what differs, and what Raft's rules say of it", True),
    Field("damage", ["string"], "what is damaged or missing in the copy", True),
    Field("clusterId", "string", "the cluster; null if no file next to the log names it", True),
    Field("directoryId", "string", "the id of the log directory, where it has one", True),
    Field("comparedWith", "string", "the copy that it is compared with; null for the reference", True),
    Field("sameFrom", "int64", "the first offset that both have", True),
    Field("records", [_RECORD], "of the first batch that differs: what is here", True),
    Field("otherRecords", [_RECORD], "of the first batch that differs: what the other copy has", True),
)
_MOST = 20
"""Records of either copy in a row at most: a batch may have thousands."""
_PEOPLE = 4
"""Records of either copy in text output at most."""
_PARTING = tuple(Column(name) for name in ("copy", "offset", "epoch", "type", "data"))


class CompareLogsArguments(RowArguments):
    """Arguments and options of ``compare-logs``."""

    copy: list[str]


def run(session: Session, args: CompareLogsArguments) -> Result:
    """Compare the copies, and return one row per copy. Raises UsageError; SourceError if fewer than two can be read.

    Exit code 1 if a copy diverges, is of another cluster or cannot be compared; 3 if one cannot be read, 4 if one is
    damaged.
    """
    if args.as_of is not None:
        raise UsageError(
            "compare-logs: copies are compared from end to end",
            hint="leave out --as-of; `hash --as-of OFFSET` on each copy compares the states at an offset",
        )
    if len(args.copy) < 2:
        raise UsageError("compare-logs: one copy alone", hint="give two or more: compare-logs DIR DIR …")
    copies, unread = open_copies(args.copy, least=2)
    with without_collector():
        pairs = read_together(copies, session.progress)
        comparison = compare_copies(copies, pairs)
    verdicts, differences = [], []
    for verdict in comparison.verdicts:
        snapshots = Snapshots(verdict.state, None)
        if verdict.state not in (REFERENCE, OTHER_CLUSTER):
            snapshots = compare_snapshots(verdict, comparison.reference, session.progress)
        state = with_damage(snapshots.state, is_damaged=bool(verdict.copy.damage))
        verdicts.append(verdict._replace(state=state))
        differences.append(snapshots.difference)
    offset = _shared_offset(verdicts)
    contradicting = contradictions(comparison, pairs)
    rows = [
        _row(verdict, _why(verdict, comparison.reference, difference, contradicting), session.redaction)
        | {"hash": _hash_at(verdict, offset, args, session.progress), "hashOffset": offset}
        for verdict, difference in zip(verdicts, differences, strict=True)
    ]
    rows += [_not_read(copy) for copy in unread]
    code = EXIT_OK if all(row["state"] in CONSISTENT for row in rows) else EXIT_FINDING
    code = EXIT_SOURCE if unread else code
    code = EXIT_DATA if any(verdict.copy.damage for verdict in verdicts) else code
    _remark(session, copies)
    note_unread_source(session, args.copy)
    result = select(_FIELDS, rows, args, exit_code=code)
    if not has_row_options(args):
        advice = which_to_keep(comparison, [verdict.state for verdict in verdicts])
        if contradicting:
            advice = (
                "these copies have two histories (see Findings): decide which is the right one, and keep all of them"
            )
        result.readable = _page(rows, comparison, advice)
    return result


def _shared_offset(verdicts: list[CopyVerdict]) -> int | None:
    """The greatest offset that every compared copy has; ``None`` if there is none."""
    ends = [verdict.copy.end or 0 for verdict in verdicts if verdict.state not in (OTHER_CLUSTER, NOT_COMPARED)]
    shared = min(ends, default=0)
    return shared - 1 if shared else None


def _hash_at(
    verdict: CopyVerdict, offset: int | None, args: CompareLogsArguments, progress: Progress | None
) -> str | None:
    """The hash of a copy's image at an offset; ``None`` if the column is not wanted or the image cannot be made."""
    wanted_columns = wanted(_FIELDS, args)
    is_unwanted = wanted_columns is not None and "hash" not in wanted_columns
    if offset is None or verdict.state in (OTHER_CLUSTER, NOT_COMPARED) or is_unwanted:
        return None
    try:
        then = verdict.copy.source.load(until=offset, progress=progress)
    except (DataError, SourceError):
        return None  # other columns of the row report the damage, or a log that starts after the offset
    return None if then.damage else image_hash(then.image)


def _why(
    verdict: CopyVerdict, reference: Copy, difference: str | None, contradicting: list[Contradiction]
) -> str | None:
    """Why a copy is not the same as the others: what shows that it is of another history, else Raft's rules."""
    copy = verdict.copy
    texts: list[str | None] = [contradiction.text for contradiction in contradicting if contradiction.copy is copy]
    texts = texts or [reason(verdict, reference)]
    left_out = "what is damaged was not compared" if copy.damage else None
    return "; ".join(dict.fromkeys(text for text in [*texts, difference, left_out] if text is not None)) or None


def _row(verdict: CopyVerdict, why: str | None, redaction: Redaction) -> JsonObject:
    copy, parted, newest = verdict.copy, verdict.divergence, verdict.copy.newest
    return {
        "copy": copy.path,
        "state": verdict.state,
        "nodeId": copy.node_id,
        "startOffset": copy.start,
        "endOffset": copy.end,
        "lastEpoch": copy.last_epoch if copy.end is not None else None,
        "snapshot": snapshot_id(newest) if newest else None,
        "sameTo": verdict.to,
        "divergesAt": parted.offset if parted else None,
        "uncommittedFrom": verdict.uncommitted,
        "reason": why,
        "damage": [error.message for error in copy.damage],
        "clusterId": copy.cluster_id,
        "directoryId": copy.directory_id,
        "comparedWith": verdict.peer.path if verdict.peer else None,
        "sameFrom": verdict.since,
        "records": list(_records(parted, redaction)) if parted else [],
        "otherRecords": list(_records(parted, redaction, from_peer=True)) if parted else [],
    }


def _not_read(copy: UnreadCopy) -> JsonObject:
    """The row of a copy that cannot be read."""
    row: JsonObject = {field.name: None for field in _FIELDS}
    lists: JsonObject = {name: [] for name in ("damage", "records", "otherRecords")}
    return row | lists | {"copy": copy.path, "state": NOT_COMPARED, "reason": copy.reason}


def _records(parted: Divergence, redaction: Redaction, *, from_peer: bool = False) -> Iterator[Row]:
    """The records of the batch at which two logs diverge, from the first differing one on; of the peer if asked."""
    mine, theirs = _raw(parted.batch), _raw(parted.other_batch)
    skipped = 0
    if parted.batch.epoch == parted.other_batch.epoch:
        skipped = next((n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    batch, raws = (parted.other_batch, theirs) if from_peer else (parted.batch, mine)
    for raw in islice(raws, skipped, skipped + _MOST):
        decoded = decode_record(raw, control=batch.is_control)
        yield {
            "offset": raw.offset,
            "epoch": batch.epoch,
            "timestampMs": raw.timestamp,
            "type": decoded.name,
            "version": decoded.version,
            "data": redaction.record(decoded),
        }


def _raw(batch: Batch) -> list[RawRecord]:
    """The records of a batch; none if it is malformed, or compressed with a codec that is not installed."""
    try:
        return list(iter_records(batch))
    except (DecodeError, MissingCodecError):
        return []


def _remark(session: Session, copies: list[Copy]) -> None:
    """Add remarks that are no findings: copies of one node, torn tails, empty logs."""
    session.remarks += twins(copies)
    for copy in copies:
        session.remarks += copy.notes
        if copy.torn is not None:
            path, torn = copy.torn
            session.remarks.append(torn.note(path) + ("" if copy.damage else "; normal while it is written"))
        if copy.end is None:
            session.remarks.append(f"{copy.path}: the metadata log is empty")


def _format_row(row: JsonObject) -> Row:
    """A row for text output, which shows both states of a reference that is damaged."""
    is_damaged_reference = row["state"] == REFERENCE and row["damage"]
    return row | {"state": f"{REFERENCE}, {DAMAGED}"} if is_damaged_reference else row


def _page(rows: list[JsonObject], comparison: CopyComparison, advice: str) -> Report:
    """The text output: the table, which copy to keep, then reasons, differing records and damage in full."""
    end = comparison.reference.end or 0
    committed = f"below offset {comparison.committed}, as far as these copies prove it"
    committed = committed if comparison.committed < end else "every record that these copies have"
    summary = {
        "reference": comparison.reference.path,
        "committed": committed if comparison.committed else "not known",
        "advice": advice,
    }
    sections = [
        Section("copies", "", Rows(columns(_FIELDS), [_format_row(row) for row in rows])),
        Section("summary", "All copies together", summary),
    ]
    reasons = {row["copy"]: row["reason"] for row in rows if row["reason"]}
    if reasons:
        sections.append(Section("findings", "Findings", reasons))
    parted: list[Row] = []
    for row in rows:
        sides = ((row["records"], row["copy"]), (row["otherRecords"], row["comparedWith"]))
        parted += [
            {**record, "copy": path, "data": names_and_values(record["data"])}
            for side, path in sides
            for record in side[:_PEOPLE]
        ]
    if parted:
        sections.append(Section("records", "First records that differ", Rows(_PARTING, parted)))
    damage = {row["copy"]: row["damage"] for row in rows if row["damage"]}
    if damage:
        sections.append(Section("damage", "Damage", damage))
    return Report(sections)


COMMAND = Command(
    name="compare-logs",
    task=Task.LOG,
    summary="whether copies of the metadata log from several nodes agree, and where they diverge",
    run=run,
    arguments=CompareLogsArguments,
    args=(
        Arg("copy", "two or more: directories, or single .log or .checkpoint files", arity="+", complete=complete_file),
    ),
    flags=row_flags(_FIELDS),
    examples=(
        Example("compare-logs node-1 node-2 node-3", "one of them lags, which is no fault"),
        Example("compare-logs node-1 node-4", "a node kept what another leader has replaced", 1),
        Example("compare-logs node-1 node-4 -o json --columns copy,state,divergesAt,reason", "for a script", 1),
        Example(
            "compare-logs node-1 node-2 node-3 --where 'state == behind' --columns copy,endOffset", "who lags behind"
        ),
    ),
    description=(
        "Reads the copies as they are now, and needs no source. Each is a __cluster_metadata-0 directory, the log"
        " directory around it, or one file. States: reference (its last record has the highest epoch, and of those it"
        " is the longest: it wins an election), same (ends where the reference ends), behind (all that it has is in the"
        " reference), diverged (a batch or a snapshot of the same id is not the same, or a log contradicts a snapshot),"
        " other-cluster (by meta.properties; it is not compared further), not-compared (no offset and no snapshot in"
        " common), damaged (it agrees as far as it can be read, and damage says where it cannot). A log that begins"
        " before the reference's is compared with the others that reach as far.\n\n"
        "Batches must be the same byte for byte: followers take them over as they are. Snapshots of one id must hold"
        " the same metadata. Where logs diverge, the one whose last record has the higher epoch wins, whichever epochs"
        " are at that offset; the node of the other log truncates its tail when it follows a leader. This is reported"
        " only where elections can explain it: two logs that diverge and both have later records of one epoch are"
        " damaged, or not of one cluster. Records are known to be committed below a snapshot's end, and where copies of"
        " most voters have them and nobody knows a later epoch; later ones may be committed as well.\n\n"
        "hash is that of the metadata (as the command `hash` has it) at hashOffset, the greatest offset that all"
        " compared copies reach. Where copies of one history differ in it, a node's snapshot is not what its log says."
        " Text says below the table which copy to keep, and why; or, where the copies cannot be of one history, that"
        " somebody has to decide."
    ),
    needs_source=False,
    exit_1_when="the copies are not of one history (4 where one is damaged)",
)
