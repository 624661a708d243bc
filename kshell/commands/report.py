"""``report``: write one HTML page on what is wrong and what happened, to attach to a ticket.

Each chapter is the answer of another command, cut to some rows; :mod:`kshell.report.page` renders them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.commands.as_of import complete_point
from kshell.engine import plain, registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Arguments, Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Rows, typed
from kshell.engine.staging import require_new_file
from kshell.errors import CommandError, KshellError, UsageError
from kshell.own_files import replacing
from kshell.sources.points import Since, oldest_before_now
from kshell.tree.image import iso
from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.directory.files import Listing

_COLUMNS = typed("section:string title:string rows:int64 error:string")
_BEFORE = "end-1h"
"""The point where a report begins if ``--since`` is not given: one hour before the last record."""
_HOUR_MS = 3_600_000
_MOST_ROWS = 200
_STORIES = 5
"""Partitions in trouble that get a chapter of their own, at most."""


class Chapter(NamedTuple):
    """A section of the page: the answer of a command.

    Attributes:
        name: the HTML anchor of the section.
        lead: a sentence that explains it to a reader who was not involved.
        command_line: its words; ``SINCE`` stands for the offset at which the report begins, ``BEFORE`` for that of the
            state before it, ``END`` for the point in time that is shown.
    """

    name: str
    title: str
    lead: str
    command_line: tuple[str, ...]


class Answered(NamedTuple):
    """A chapter with the result of its command, or with the error that the command raised."""

    chapter: Chapter
    result: Result | None
    error: KshellError | None
    left_out: int = 0
    """The number of rows that the page leaves out."""

    @property
    def rows(self) -> int | None:
        """The number of rows in the page; ``None`` if the result is not rows."""
        return len(list(self.result.rows)) if isinstance(self.result, Rows) else None


CHAPTERS = (
    Chapter("health", "What is wrong", "Findings at the end of the report's time, the worst first.", ("health",)),
    Chapter("status", "The cluster", "What there is, and how much of it is in trouble.", ("status",)),
    Chapter(
        "timeline",
        "Leaders and in-sync replicas over time",
        "Partitions whose leader or ISR changed.",
        ("timeline", "--since", "SINCE"),
    ),
    Chapter(
        "changes",
        "What changed",
        "What is different at the end from how it was where the report begins.",
        ("diff", "BEFORE", "END"),
    ),
    Chapter(
        "records",
        "Record by record",
        "What was written to the metadata log, the newest first.",
        ("log", "--since", "SINCE", "--newest-first"),
    ),
    Chapter("quorum", "The controllers", "Leader, voters and observers of the metadata quorum.", ("quorum",)),
    Chapter("hash", "Hash", "The same on every node of the cluster at this offset.", ("hash",)),
    Chapter("source", "The source", "Files, offsets and epochs that all of this was read from.", ("info",)),
)


class ReportArguments(Arguments):
    """Arguments and options of ``report``."""

    to: str | None
    since: str | None
    force: bool


def run(session: Session, args: ReportArguments) -> Result:
    """Write the page.

    Returns:
        One row per section; ``error`` says why an answer is missing.

    Raises:
        CommandError: the file exists, or cannot be written.
        UsageError: no file is named, or ``--show-secrets`` is given: a report is made to be passed on.
    """
    if session.redaction.show_secrets:
        raise UsageError("report: never holds secrets", hint="leave out --show-secrets")
    if not args.to:
        raise UsageError("report: --to FILE is missing", hint="report --to incident.html")
    target = require_new_file(session, args.to, force=args.force, example="report --to incident.html")
    begin = _begin(session, args.since)
    answers = [_answer(session, chapter, begin) for chapter in _chapters(session)]
    # Late and by name: commands may not import rendering, which front ends do, but here the file is the result.
    pages = importlib.import_module("kshell.report.page")
    with replacing(target, args.to) as file:
        for line in pages.page(_title(session), _facts(session, begin), _notes(session), answers):
            file.write((line + "\n").encode())
    return Rows(
        _COLUMNS,
        [
            {
                "section": each.chapter.name,
                "title": each.chapter.title,
                "rows": each.rows,
                "error": each.error.message if each.error else None,
            }
            for each in answers
        ],
    )


def _begin(session: Session, point: str | None) -> Since:
    """Where the report begins: the given point, else one hour before the end, or the log's start if it is shorter.

    Raises UsageError for a point after the one that is shown.
    """
    end = session.image.provenance
    default = _BEFORE
    if session.until is not None:  # the hour before the point that is shown, not before the last record
        default = iso(max(end.timestamp - _HOUR_MS, 0)) or "0"
    try:
        begin = session.since(default if point is None else point) or Since(0)
    except CommandError:
        if point is not None:
            raise
        return Since(0)
    last = session.loaded.last_offset
    if point is not None and session.until is not None and begin.offset > max(last, 0):
        raise UsageError(
            f"report: --since {point} is after the point in time that is shown, offset {last}",
            hint="give an earlier --since",
        )
    return begin


def _answer(session: Session, chapter: Chapter, begin: Since) -> Answered:
    session.remarks.clear()
    tokens = [_replaced(session, token, begin.offset) for token in chapter.command_line]
    chapter = chapter._replace(command_line=tuple(tokens))
    command = registry.get(tokens[0])
    try:
        return _bounded(chapter, command.run(session, parse(command, tokens[1:])))
    except KshellError as error:
        return Answered(chapter, None, error)


def _replaced(session: Session, word: str, begin: int) -> str:
    """A word of a chapter's command line, or the offset that it stands for."""
    if word == "END":
        return "now" if session.until is None else str(session.until)
    if word == "SINCE":
        return str(begin)
    return str(_state_before(session, begin)) if word == "BEFORE" else word


def _state_before(session: Session, begin: int) -> int:
    """The offset of the state before record ``begin``; where that cannot be shown, of the oldest that can."""

    def oldest(listing: Listing) -> int | None:
        return oldest_before_now(listing) if listing.has_log else None

    return max(begin - 1, session.source.read_listed(oldest) or 0)


def _bounded(chapter: Chapter, result: Result) -> Answered:
    """Cut a result to the rows of a page. Rows that are made lazily are read here, so their errors are raised here."""
    if isinstance(result, Report):
        for section in result.sections:
            _keep(section.body)
        return Answered(chapter, result, None)
    return Answered(chapter, result, None, _keep(result))


def _keep(part: object) -> int:
    """Keep the first rows of a part, in place, and return how many were left out; 0 if it is not rows."""
    if not isinstance(part, Rows):
        return 0
    part.rows, left_out, _ = plain.first_rows(part.rows, _MOST_ROWS)
    return left_out


def _chapters(session: Session) -> Iterator[Chapter]:
    """All chapters; those on single partitions come after the timeline."""
    for chapter in CHAPTERS:
        yield chapter
        if chapter.name == "timeline":
            yield from _stories(session)


def _stories(session: Session) -> Iterator[Chapter]:
    """One chapter with the answer of ``why`` for each of some partitions in trouble, offline ones first."""
    command = registry.get("partitions")
    try:
        rows = command.run(session, parse(command, ["--offline", "--under-min-isr", "--limit", "1000"]))
        partitions = sorted(rows, key=lambda row: row["state"] != "offline") if isinstance(rows, Rows) else []
    except KshellError:
        return
    for number, row in enumerate(partitions[:_STORIES]):
        name = f"{row['topic']}-{row['partition']}"
        yield Chapter(
            f"story-{number}",
            f"The story of {name}",
            f"How the partition came to where it is ({row['state']}).",
            ("why", row["topic"], str(row["partition"])),
        )


def _title(session: Session) -> str:
    source = session.source
    return f"Kafka metadata report: {source.name or source.path or source.kind}"


def _facts(session: Session, begin: Since) -> list[str]:
    image = session.image.provenance
    return [
        f"from offset {begin.offset} to {image.offset}",
        f"last record {iso(image.timestamp)}",
        f"made {iso(int(time.time() * 1000))} by kshell {__version__}",
        "secrets are redacted",
    ]


def _notes(session: Session) -> list[str]:
    return [*session.problems(), *session.notes()]


COMMAND = Command(
    name="report",
    task=Task.PROBLEMS,
    summary="what is wrong and what happened, as one HTML page to attach to a ticket",
    run=run,
    arguments=ReportArguments,
    extra_words_for="--to",
    flags=(
        Flag(("--to",), "where the page goes", metavar="FILE.html", required=True),
        Flag(
            ("--since",),
            f"where the report begins ({_BEFORE}, or the log's beginning)",
            metavar="POINT",
            complete=complete_point,
        ),
        Flag(("--force",), "replace the file if it exists"),
    ),
    examples=(
        Example("report --to incident.html", "the last hour of the log"),
        Example("report --since 100 --to since-100.html", "from an offset on"),
    ),
    description=(
        "One file without scripts: findings, the cluster, leaders and in-sync replicas over time, the stories of"
        f" partitions in trouble (at most {_STORIES}), what changed, the records, the controllers, a hash and the"
        f" source. Tables have {_MOST_ROWS} rows at the most, and say how many are left out. Pictures need the extra"
        " notebook; without it they are drawn in characters. Secrets are redacted, names are not: read it before you"
        " pass it on. The file is readable by its owner only."
    ),
)
