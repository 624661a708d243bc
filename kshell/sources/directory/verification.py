"""Verify every file of a metadata directory: is it whole, where is its first bad byte, and how certain is the verdict?

A batch's checksum does not cover its offset, length, epoch and magic. The next batch confirms offset, length and magic;
an epoch can only be compared with neighbours and other files. So each verdict has a certainty, and names the second
witness that confirms it, or says that there is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import (
    CorruptDataError,
    DataError,
    IncompleteLogError,
    MissingCodecError,
    SourceError,
    SourcePermissionError,
)
from kshell.protocol.verify import SNAPSHOT_IN_LOG, USUAL
from kshell.sources.directory import sidecar_files
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import META, Listing, Segment, SnapshotFile, is_remote, open_read
from kshell.sources.directory.log import Progress
from kshell.sources.directory.snapshot import DISAGREE, disagreement, ends_inside
from kshell.sources.directory.source import missing_end
from kshell.sources.directory.survey import (
    LogSurvey,
    SegmentSurvey,
    SnapshotSurvey,
    Types,
    survey_log,
    survey_snapshot,
)
from kshell.sources.source import Source

WHOLE, TORN, DAMAGED, INCOMPLETE, SLIP = "whole", "torn", "damaged", "incomplete", "slip"
NOT_READ, NOT_CHECKED = "not-read", "not-checked"
VERDICTS = (WHOLE, TORN, SLIP, DAMAGED, INCOMPLETE, NOT_READ, NOT_CHECKED)
"""``torn``: cut inside the log's last batch. ``incomplete``: records are missing. ``slip``: a known fault of Kafka."""
FINDINGS = frozenset((DAMAGED, INCOMPLETE))
"""Verdicts that count as a fault. A torn end does not, as it is normal while a server writes; a slip is Kafka's own."""

CONFIRMED, CONSISTENT, UNCONFIRMED = "confirmed", "consistent", "unconfirmed"
CERTAINTIES = (CONFIRMED, CONSISTENT, UNCONFIRMED)
"""``confirmed``: a second witness agrees. ``consistent``: nothing contradicts. ``unconfirmed``: all other cases."""

SEGMENT, SNAPSHOT, BOOTSTRAP, OTHER = "segment", "snapshot", "bootstrap", "other"
KINDS = (SEGMENT, SNAPSHOT, BOOTSTRAP, "text", OTHER)
_BATCHES = "checksums, offsets, lengths and epochs of all batches"
_DECODED = f"{_BATCHES}; all records decoded"


class FileCheck(NamedTuple):
    """The outcome of checking one file. ``checked``: what was checked; ``witness``: what confirms the verdict, or why
    nothing does; ``position``: the first bad byte.
    """

    file: str
    kind: str
    verdict: str
    certainty: str | None
    size: int | None
    checked: str
    witness: str
    batches: int | None = None
    records: int | None = None
    position: int | None = None
    reason: str | None = None
    failure: DataError | SourceError | None = None
    """Why the file could not be read, or not all of it."""


class Verification(NamedTuple):
    """The checks of all files, segments first, and the counts of records by type, if they were decoded."""

    checks: list[FileCheck]
    types: Types


def verify_files(source: Source, progress: Progress | None = None, *, decode: bool = False) -> Verification:
    """Check every file of a source.

    Args:
        source: a directory, a lone file, or what an observer has fetched.
        progress: called with the bytes that were read.
        decode: whether to decode every record, too.

    Raises:
        SourceError: the log cannot be read.
    """
    listing = source.listing(full_log=True)
    ends = [file.end_offset for file in listing.snapshots if file.end_offset]
    log = survey_log(source, None, progress, decode=decode, ends=ends)
    checks = [_segment(listing, segment, log, decode=decode) for segment in listing.segments]
    checks[:1] = [_with_start(listing, check) for check in checks[:1]]
    snapshots = [survey_snapshot(listing, file, decode=decode, progress=progress) for file in listing.snapshots]
    checks[-1:] = [_with_end(source, listing, log, snapshots, check) for check in checks[-1:]]
    checks += [_snapshot(survey, log, decode=decode) for survey in snapshots if survey is not None]
    checks += _bootstrap(listing, decode=decode)
    checks += _text_files(listing, log)
    checks += _unreadable(listing)
    checks += _other_files(listing, {check.file for check in checks})
    return Verification(checks, log.types)


# --- the log ---------------------------------------------------------------------------------------------------------


def _segment(listing: Listing, segment: Segment, log: LogSurvey, *, decode: bool) -> FileCheck:
    """The check of one segment, from the survey of the whole log."""
    name = os.path.basename(segment.path)
    survey = next((segment_survey for segment_survey in log.segments if segment_survey.file == name), None)
    certainty, witness = _certainty_of_epochs(listing, segment, survey, log)
    check = FileCheck(
        name,
        SEGMENT,
        WHOLE,
        certainty,
        segment.size,
        _DECODED if decode else _BATCHES,
        witness,
        survey.batches if survey else 0,
        survey.records if survey else 0,
    )
    if log.torn is not None and log.torn[0] == segment.path:
        torn = log.torn[1]
        reason = torn.reason + USUAL
        check = check._replace(verdict=TORN, position=torn.position, reason=reason)
    damage = [error for error in log.damage if error.message.startswith(f"{segment.path}: ")]
    check = _with_damage(check, segment.path, damage)
    return check if survey is None else _with_malformed(check, log.types, survey.base_offset, survey.end_offset)


def _certainty_of_epochs(
    listing: Listing, segment: Segment, survey: SegmentSurvey | None, log: LogSurvey
) -> tuple[str, str]:
    """The certainty of a segment's epochs, and the witness.

    Neighbours reveal a wrong epoch in one batch, unless it is the only batch of its epoch; only another file reveals
    the same wrong epoch in all batches of an epoch.
    """
    if survey is None:
        return UNCONFIRMED, "no batch could be read"
    if segment.base_offset is None and survey.batches == 1:
        return UNCONFIRMED, "the file's name says no offset, and there is no other batch: none confirms the offset"
    checkpoint_epochs = {epoch for epoch, _ in sidecar_files.leader_epochs(listing)}
    named = {file.epoch for file in listing.snapshots if file.end_offset and log.ends.get(file.end_offset)}
    witnesses = [
        name
        for name, epochs in ((sidecar_files.EPOCHS, checkpoint_epochs), ("the names of snapshots", named))
        if any(epoch in epochs for epoch in survey.epochs)
    ]
    rest = [epoch for epoch in survey.epochs if epoch not in checkpoint_epochs | named]
    if not rest:
        return CONFIRMED, f"epochs: {' and '.join(witnesses)}; offsets: neighbours and the file's name"
    lone = [epoch for epoch in rest if log.batches_by_epoch[epoch] == 1]
    missing = "" if checkpoint_epochs else f"there is no {sidecar_files.EPOCHS}: "
    if lone:
        return UNCONFIRMED, f"{missing}nothing confirms epoch {_listed(lone)}, which one batch alone has"
    return CONSISTENT, f"{missing}only neighbouring batches confirm epoch {_listed(rest)}: no second witness"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _with_start(listing: Listing, check: FileCheck) -> FileCheck:
    """The first segment's check, incomplete if no snapshot covers the offsets before the segment."""
    base = listing.segments[0].base_offset
    if base is None or listing.directory is None or base <= listing.first_needed_offset:
        return check
    if any((file.end_offset or 0) >= base for file in listing.snapshots):
        return check
    reason = f"the log starts at offset {base}, and no snapshot reaches it"
    verdict = DAMAGED if check.verdict == DAMAGED else INCOMPLETE
    return check._replace(verdict=verdict, reason="; ".join(filter(None, (check.reason, reason))))


def _with_end(
    source: Source, listing: Listing, log: LogSurvey, snapshots: list[SnapshotSurvey | None], check: FileCheck
) -> FileCheck:
    """The last segment's check, incomplete if a complete snapshot ends after the log."""
    readable = [survey.file for survey in snapshots if survey is not None and survey.facts is not None]
    newest = max(readable, key=lambda file: file.end_offset or 0, default=None)
    log_end = log.segments[-1].end_offset if log.segments else None
    reason = None if check.verdict in FINDINGS else missing_end(source, listing, log_end, newest)
    if reason is None:
        return check
    torn = f"{log.torn[1].reason}; " if check.verdict == TORN and log.torn is not None else ""
    return check._replace(verdict=INCOMPLETE, reason=torn + reason)


def _with_damage(check: FileCheck, path: str, damage: list[DataError]) -> FileCheck:
    """The check with its damage: the first error decides the verdict, and the reason names the number of the rest."""
    if not damage:
        return check
    first = damage[0]
    more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
    reason = first.message.removeprefix(f"{path}: ") + more
    if all(isinstance(error, MissingCodecError) for error in damage):
        return check._replace(verdict=NOT_READ, certainty=None, reason=reason, failure=first)
    if isinstance(first, IncompleteLogError):
        return check._replace(verdict=INCOMPLETE, reason=reason)
    position = first.position if isinstance(first, CorruptDataError) else None
    if position is not None:
        reason = reason.removeprefix(f"byte {position}: ")
    certainty, witness = check.certainty, check.witness
    if "CRC" in reason:
        certainty, witness = CONFIRMED, "the checksum is the second witness of the damage"
    elif reason.startswith(SNAPSHOT_IN_LOG):
        certainty, witness = CONFIRMED, "the batch's checksum: it is what was written"
    elif sidecar_files.EPOCHS in reason:
        certainty = UNCONFIRMED
        witness = f"the batch and {sidecar_files.EPOCHS} disagree: either of them may be wrong"
    return check._replace(verdict=DAMAGED, certainty=certainty, witness=witness, position=position, reason=reason)


def _with_malformed(check: FileCheck, types: Types, start: int, end: int) -> FileCheck:
    """The check, damaged if records break their declaration; a type counts here if its first such record is here."""
    reasons = [
        f"{name} v{version}: records that break their declaration: {survey.malformed}, from offset {first} on"
        for (name, version), survey in sorted(types.items())
        if survey.malformed and (first := survey.first_undecoded) is not None and start <= first < end
    ]
    if not reasons:
        return check
    return check._replace(verdict=DAMAGED, reason="; ".join(filter(None, (check.reason, *reasons))))


# --- snapshots -------------------------------------------------------------------------------------------------------


def _snapshot(survey: SnapshotSurvey, log: LogSurvey, *, decode: bool) -> FileCheck:
    """The check of one snapshot, compared with the log if it is complete."""
    file = survey.file
    check = FileCheck(
        os.path.basename(file.path),
        SNAPSHOT,
        WHOLE,
        None,
        file.size,
        _DECODED if decode else _BATCHES,
        "",
        survey.batches,
        survey.records,
    )
    if survey.damage is not None:
        if isinstance(survey.damage, DataError):
            check = check._replace(certainty=CONSISTENT, witness="the rules that every snapshot follows")
            return _with_damage(check, file.path, [survey.damage])
        reason = survey.damage.message.removeprefix(f"{file.path}: ")
        return check._replace(verdict=NOT_READ, reason=reason, failure=survey.damage)
    return _with_malformed(_compared_with_log(check, survey, log), survey.types, 0, survey.records)


def _compared_with_log(check: FileCheck, survey: SnapshotSurvey, log: LogSurvey) -> FileCheck:
    """The check of a complete snapshot: its name and header are compared with the log's batch that ends there."""
    file, facts = survey.file, survey.facts
    assert facts is not None
    if file.end_offset is None:
        return check._replace(
            certainty=CONSISTENT, witness="the file's name is not its id: only its batches confirm it"
        )
    if facts.note is not None:
        note = facts.note.removeprefix(f"{file.path}: ")
        return check._replace(certainty=CONSISTENT, witness="its batches", reason=f"{note}: a tool wrote it")
    if file.is_bootstrap:
        return check._replace(certainty=CONFIRMED, witness="epoch: the file's name; it stands before the log")
    end = log.ends.get(file.end_offset)
    if end is None:
        around = () if log.damage else log.segments
        if any(part.base_offset < file.end_offset < part.end_offset for part in around):
            reason = ends_inside(file)
            return check._replace(verdict=DAMAGED, certainty=UNCONFIRMED, witness=DISAGREE, reason=reason)
        witness = "epoch: the file's name; the log has no batch that ends there: nothing confirms the offset"
        return check._replace(certainty=CONSISTENT, witness=witness)
    differing = disagreement(file, facts.timestamp, end.epoch, end.timestamp)
    if differing is not None:
        return check._replace(verdict=DAMAGED, certainty=UNCONFIRMED, witness=DISAGREE, reason=differing)
    late = 0 if facts.timestamp == -1 else facts.timestamp - end.timestamp
    if late:
        witness = (
            f"the log's batch that ends there has the same epoch; the snapshot says a time that is {late} ms later"
        )
        return check._replace(certainty=CONSISTENT, witness=witness)
    return check._replace(certainty=CONFIRMED, witness="the log's batch that ends there has the same epoch and time")


def _bootstrap(listing: Listing, *, decode: bool) -> Iterator[FileCheck]:
    path = sidecar_files.bootstrap_file(listing)
    if path is None or is_remote(path):
        return
    file = SnapshotFile(path, None, None, os.path.getsize(path), 0)
    survey = survey_snapshot(listing, file, decode=decode)
    if survey is not None:
        check = _snapshot(survey, LogSurvey(), decode=decode)
        witness = "its batches" if check.verdict == WHOLE else check.witness
        yield check._replace(kind=BOOTSTRAP, witness=witness)


# --- small text files ------------------------------------------------------------------------------------------------


def _text_files(listing: Listing, log: LogSurvey) -> Iterator[FileCheck]:
    """The checks of the sidecar files that exist."""
    if listing.sidecar_texts is not None:
        return  # a live source has no such files, only their values
    last = max(log.epochs, default=-1)
    end = log.segments[-1].end_offset if log.segments else 0
    notes: list[str] = []
    history = sidecar_files.leader_epochs(listing, notes)
    yield from _text_file(listing, sidecar_files.EPOCHS, notes, *_about_epochs(history, log, end))
    state = sidecar_files.quorum_state(listing, notes)
    yield from _text_file(listing, sidecar_files.STATE, notes, *_about_state(state.get("leaderEpoch"), last))
    sidecar_files.partition_metadata(listing, notes)
    same = "the metadata topic's id is the same in every cluster"
    yield from _text_file(listing, sidecar_files.PARTITION, notes, CONFIRMED, same, None)
    properties = sidecar_files.meta_properties(listing, notes)
    for name in (os.path.join(os.pardir, META), META):
        yield from _text_file(listing, name, notes, *_about_properties(properties, state.get("clusterId")))


def _about_epochs(history: list[tuple[int, int]], log: LogSurvey, end: int) -> tuple[str, str, str | None]:
    """(certainty, witness, what is suspicious) of ``leader-epoch-checkpoint``, compared with the log."""
    late = [epoch for epoch, start in history if log.segments and start >= end and epoch not in log.epochs]
    if late:
        reason = (
            f"epoch {late[0]} begins behind the log's end ({end}): records are missing at the end, or the copy was"
            " taken while the node wrote"
        )
        return UNCONFIRMED, "the log has no record of that epoch", reason
    confirmed = [epoch for epoch, start in history if log.epochs.get(epoch) == start]
    if history and len(confirmed) == len(history):
        return CONFIRMED, "the log's first record of each epoch", None
    before = "" if not confirmed else f"the log's first records of {len(confirmed)} of {len(history)} epochs; "
    return CONSISTENT, f"{before}the file has no checksum, and the log does not begin that early", None


def _about_state(epoch: int | None, last: int) -> tuple[str, str, str | None]:
    """As :func:`_about_epochs`, of ``quorum-state``; ``last`` is the epoch of the log's last record."""
    if epoch is not None and 0 <= epoch < last:
        reason = f"leaderEpoch is {epoch}, the log has records of epoch {last}: an older copy of the file"
        return UNCONFIRMED, "the log's last epoch", reason
    if epoch is not None and epoch == last:
        return (
            CONSISTENT,
            "leaderEpoch: the log's last epoch; nothing confirms the rest: the file has no checksum",
            None,
        )
    return UNCONFIRMED, "no second witness: the file has no checksum", None


def _about_properties(properties: dict[str, str], cluster_id: str | None) -> tuple[str, str, str | None]:
    """As :func:`_about_epochs`, of ``meta.properties``."""
    missing = [key for key in ("version", "cluster.id", "node.id") if key not in properties]
    if missing and properties:
        return UNCONFIRMED, "no second witness", f"has no {' and no '.join(missing)}"
    if cluster_id and properties.get("cluster.id") not in (None, cluster_id):
        return UNCONFIRMED, "quorum-state disagrees", f"cluster.id is not {cluster_id}, which quorum-state says"
    if cluster_id:
        return CONSISTENT, "cluster.id: quorum-state; nothing confirms the rest: the file has no checksum", None
    return UNCONFIRMED, "no second witness: the file has no checksum", None


def _text_file(
    listing: Listing, name: str, notes: list[str], certainty: str, witness: str, reason: str | None
) -> Iterator[FileCheck]:
    """The check of one sidecar file, if it exists."""
    path = sidecar_files.sidecar_path(listing, name)
    size = _size_of(path)
    if size is None:
        return
    file_name = os.path.basename(name)
    check = FileCheck(file_name, "text", WHOLE, certainty, size, "its form, and its values against the log", witness)
    faults = [note.removeprefix(f"{path}: ") for note in notes if note.startswith(f"{path}: ")]
    if (refused := _refusal(path)) is not None:
        yield check._replace(verdict=NOT_READ, certainty=None, witness="", reason="permission denied", failure=refused)
    elif faults:
        yield check._replace(verdict=DAMAGED, certainty=CONFIRMED, witness="Kafka's form of it", reason=faults[0])
    else:
        yield check._replace(reason=reason)


def _refusal(path: str) -> SourcePermissionError | None:
    """The error if this user may not read a file, else ``None``."""
    try:
        os.close(open_read(path))
    except SourcePermissionError as error:
        return error
    except (SourceError, FileNotFoundError):
        pass
    return None


def _size_of(path: str) -> int | None:
    """The size in bytes of a sidecar file; ``None`` if there is no such file, or if it is in an object store."""
    try:
        return None if is_remote(path) else os.path.getsize(path)
    except OSError:
        return None


# --- the rest --------------------------------------------------------------------------------------------------------


def _unreadable(listing: Listing) -> Iterator[FileCheck]:
    for sentence in listing.unreadable:
        path, _, reason = sentence.partition(": ")
        failure = SourceError(sentence)
        yield FileCheck(os.path.basename(path), OTHER, NOT_READ, None, None, "", "", reason=reason, failure=failure)


def _other_files(listing: Listing, checked: set[str]) -> Iterator[FileCheck]:
    """Entries for the files that are not checked, because Kafka rebuilds them (indexes) or does not use them."""
    if listing.directory is None or listing.sidecar_texts is not None or is_remote(listing.directory):
        return
    with os.scandir(listing.directory) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    for name in names:
        if name in checked:
            continue
        size = _size_of(os.path.join(listing.directory, name))
        yield FileCheck(name, OTHER, NOT_CHECKED, None, size, "", "", reason=_why_not(name))


def _why_not(name: str) -> str:
    if name.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
        return "Kafka makes it again from the log"
    if name.endswith((".part", ".deleted")):
        return "Kafka does not use it any more, or not yet"
    return "not a file of the metadata log that kshell knows"


def compared_by_replay(check: FileCheck, file: SnapshotFile, differing: list[str], kafkas: list[str]) -> FileCheck:
    """Add the result of replaying the log before a snapshot to the snapshot's check.

    Args:
        check: the check of the snapshot, which is complete.
        file: the snapshot.
        differing: one sentence for each difference between snapshot and replay.
        kafkas: as ``differing``, for the differences that a known fault of Kafka explains.
    """
    checked = f"{check.checked}; its values against a replay of the log before it"
    name = snapshot_id(file)
    if differing:
        reason = f"{name} and the log before it disagree: {'; '.join([*differing, *kafkas])}"
        witness = "the snapshot and the log disagree: either of them may be wrong"
        return check._replace(verdict=DAMAGED, certainty=UNCONFIRMED, checked=checked, witness=witness, reason=reason)
    if kafkas:
        reason = f"Kafka's own slip: {'; '.join(kafkas)}"
        return check._replace(verdict=SLIP, checked=checked, reason=reason)
    return check._replace(certainty=CONFIRMED, checked=checked, witness="a replay of the log gives the same values")
