"""``verify``: check every file of the source, and say whether it is whole and how certain that is.

:mod:`kshell.sources.directory.verification` checks; ``--deep`` compares snapshots with a replay of the log, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.cluster.snapshot_slips import Slip, kafkas_own, slips_of_listing
from kshell.engine import tones
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Row, Rows, Section
from kshell.errors import EXIT_FINDING, EXIT_OK, DataError
from kshell.sources.directory import checkpoints
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.verification import (
    CERTAINTIES,
    FINDINGS,
    KINDS,
    SNAPSHOT,
    VERDICTS,
    WHOLE,
    FileCheck,
    compared_by_replay,
    verify_files,
)
from kshell.tables.declaration import Field, columns
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, has_row_options, row_flags, select
from kshell.tree.paths import join

if TYPE_CHECKING:
    from kshell.engine.session import Session

_MOST_PATHS = 20
"""Differing paths of a snapshot that are named at most."""

_FIELDS = (
    Field("file", "string", "the file's name", spare=-1),
    Field("kind", Enumeration(KINDS), "segment, snapshot, bootstrap, text or other", True),
    Field(
        "verdict",
        Enumeration(VERDICTS),
        "whole, torn, slip, damaged, incomplete, not-read or not-checked",
        tone=tones.state,
    ),
    Field(
        "certainty", Enumeration(CERTAINTIES), "how sure the verdict is: confirmed, consistent or unconfirmed", spare=1
    ),
    Field("sizeBytes", "int64", "the file's size", spare=2),
    Field("batches", "int64", "batches that are whole", spare=2),
    Field("records", "int64", "records in them", spare=2),
    Field("firstBadByte", "int64", "where what is wrong begins, or a torn end", spare=1),
    Field("checked", "string", "what was checked", True, prose=True),
    Field("witness", "string", "what confirms the verdict, or that nothing does", True, prose=True),
    Field("reason", "string", "what is wrong or unusual", True, prose=True),
)


class VerifyArguments(RowArguments):
    """Arguments and options of ``verify``."""

    deep: bool


def run(session: Session, args: VerifyArguments) -> Result:
    """Check every file; one row per file.

    Returns:
        The rows. Exit code 1 if a file is damaged or records are missing; else 3 or 4 if a file could not be read, so
        that its state is unknown.

    Raises:
        SourceError: the source is brokers, which have no files, or the log cannot be read.
    """
    session.source.require_log("verify")
    source = session.source
    if session.until is not None:
        session.remarks.append(f"files are checked as they are now, also behind offset {session.until}")
    checks, types = verify_files(source, session.progress, decode=args.deep)
    if args.deep:
        listing = source.listing(full_log=True)
        names = frozenset(name for name, _ in types)
        checks = list(_replayed(session, listing, checks, names))
    rows = [_row(check) for check in checks]
    result = select(_FIELDS, rows, args, exit_code=_exit_code(checks))
    result.overrides_exit_code = True
    if not has_row_options(args):
        result.readable = _page(rows)
    return result


def _exit_code(checks: list[FileCheck]) -> int:
    if any(check.verdict in FINDINGS for check in checks):
        return EXIT_FINDING
    return max((check.failure.exit_code for check in checks if check.failure is not None), default=EXIT_OK)


def _replayed(
    session: Session, listing: Listing, checks: list[FileCheck], names: frozenset[str]
) -> Iterator[FileCheck]:
    """The checks; to those of whole snapshots is added whether a replay of the log before them gives the same."""
    try:
        compared = slips_of_listing(listing, session.progress) if checkpoints.log_before(listing) else {}
    except DataError:
        compared = {}  # the log cannot be replayed; the row of the damaged segment says why
    files = {file.path.rpartition("/")[2]: file for file in listing.snapshots}
    for check in checks:
        if check.kind != SNAPSHOT or check.verdict != WHOLE or check.file not in files:
            yield check
        elif check.file in compared:
            try:
                yield _with_slips(check, files[check.file], compared[check.file], names)
            except FileNotFoundError:
                yield check  # a running server has deleted the snapshot meanwhile, so its slips cannot be explained
        elif files[check.file].is_bootstrap:
            yield check
        else:
            witness = f"{check.witness}; no replay: the log before it is not here, or not whole"
            yield check._replace(witness=witness)


def _with_slips(check: FileCheck, file: SnapshotFile, slips: list[Slip], names: frozenset[str]) -> FileCheck:
    differing: list[str] = []
    kafkas: list[str] = []
    image = checkpoints.image_of(file) if slips else None
    for slip in slips[:_MOST_PATHS]:
        cause = None if image is None else kafkas_own(slip, image, names)
        sentence = f"{join(slip.path)} ({slip.difference})"
        if cause is None:
            differing.append(sentence)
        else:
            kafkas.append(f"{sentence}: {cause}")
    if len(slips) > _MOST_PATHS:
        differing.append(f"{len(slips) - _MOST_PATHS} more")
    return compared_by_replay(check, file, differing, kafkas)


def _row(check: FileCheck) -> Row:
    return {
        "file": check.file,
        "kind": check.kind,
        "verdict": check.verdict,
        "certainty": check.certainty,
        "sizeBytes": check.size,
        "batches": check.batches,
        "records": check.records,
        "firstBadByte": check.position,
        "checked": check.checked or None,
        "witness": check.witness or None,
        "reason": check.reason,
    }


def _page(rows: list[Row]) -> Report:
    """The text output: findings first, then the table, then what is missing to confirm verdicts, in full."""
    sections = [Section("files", "", Rows(columns(_FIELDS), rows))]
    findings = {row["file"]: row["reason"] for row in rows if row["reason"] and row["certainty"] is not None}
    if findings:
        sections = [Section("findings", "Findings", findings), Section("files", "Files", sections[0].body)]
    weak = {row["file"]: row["witness"] for row in rows if row["certainty"] in CERTAINTIES[1:]}
    if weak:
        sections.append(Section("witnesses", "Not confirmed by a second witness, or not all of it", weak))
    return Report(sections, is_answer_first=bool(findings))


COMMAND = Command(
    name="verify",
    task=Task.LOG,
    summary="whether every file of the source is whole, and how sure that is",
    run=run,
    arguments=VerifyArguments,
    flags=(
        Flag(("--deep",), "decode every record, and replay the log up to each snapshot"),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("verify", "one row per file"),
        Example(
            "verify --deep --where 'kind == snapshot' --columns file,verdict,checked,witness", "snapshots by replay"
        ),
        Example("verify --fail-if-any --where 'certainty == unconfirmed'", "exit code 1 where a witness is missing", 1),
    ),
    description=(
        "Checks each batch of each segment and snapshot (checksum, length, offsets without gaps, epochs), the small"
        " files next to them, and names against contents. Verdicts: whole, torn (cut at the end: normal while a server"
        " writes), damaged (firstBadByte says where), incomplete (records are missing), not-read (not known),"
        " slip (with --deep: a snapshot has what Kafka itself gets wrong), not-checked (no file of the log).\n\n"
        "A batch's checksum does not cover its epoch, so certainty says how sure the answer is: confirmed (a second"
        " file agrees: leader-epoch-checkpoint, or the log and a snapshot's name), consistent (only neighbouring"
        " batches agree: a change of all of them alike would not show), unconfirmed (nothing confirms the file, or two"
        " files disagree). witness names what was compared. Text files have no checksum.\n\n"
        "--deep also decodes every record, and compares each snapshot with what a replay of the log before it gives;"
        " paths that differ are named, and what is a known slip of Kafka is called so."
    ),
    exit_1_when="a file is damaged or incomplete (3 or 4 where one could not be read)",
)
