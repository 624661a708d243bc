"""``report``: what happened, as one page to attach to a ticket."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.commands.as_of import complete_point
from kshell.engine import plain, registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Rows, typed
from kshell.engine.staging import demand_new_file
from kshell.errors import CommandError, KshellError, UsageError
from kshell.own_files import replacing
from kshell.sources.points import Since
from kshell.tree.image import iso
from kshell.version import __version__

if TYPE_CHECKING:
    from kshell.engine.session import Session

_COLUMNS = typed("section:string title:string rows:int64 error:string")
_BEFORE = "end-1h"
"""Where a report begins if nobody says so."""
_MOST_ROWS = 200
_STORIES = 5
"""Partitions whose story is told."""


class Chapter(NamedTuple):
    """A section of the page: the answer of a command.

    Attributes:
        name: its anchor.
        lead: what a reader who was not there should know of it.
        words: the command line; ``SINCE`` stands for where the report begins.
    """

    name: str
    title: str
    lead: str
    words: tuple[str, ...]


class Answered(NamedTuple):
    """A chapter with its answer, or with why there is none."""

    chapter: Chapter
    result: Result | None
    error: KshellError | None
    left_out: int = 0
    """Rows beyond those that the page has."""

    @property
    def rows(self) -> int | None:
        """Rows in the page, where the answer is rows."""
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
        ("diff", "SINCE", "now"),
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


def run(session: Session, args: Any) -> Result:
    """Write the page.

    Returns:
        One row per section; ``error`` says why an answer is missing.

    Raises:
        CommandError: the file exists, or cannot be written.
        UsageError: with ``--show-secrets``: a report is made to be passed on.
    """
    if session.redaction.show_secrets:
        raise UsageError("report: never holds secrets", hint="leave out --show-secrets")
    if not args.to:
        raise UsageError("report: where shall the page go?", hint="report --to incident.html")
    target = demand_new_file(session, args.to, force=args.force, example="report --to incident.html")
    begin = _begin(session, args.since)
    answers = [_answer(session, chapter, begin) for chapter in _chapters(session)]
    # Rendering is above commands: what a command gives is rendered by whoever asked, but here a file is the answer.
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
    """Where the report begins. The default is the log's beginning where the log is shorter."""
    try:
        found = session.since(_BEFORE if point is None else point)
    except CommandError:
        if point is not None:
            raise
        found = None
    return found or Since(0)


def _answer(session: Session, chapter: Chapter, begin: Since) -> Answered:
    session.remarks.clear()
    words = [str(begin.offset) if word == "SINCE" else word for word in chapter.words]
    chapter = chapter._replace(words=tuple(words))
    command = registry.get(words[0])
    try:
        return _bounded(chapter, command.run(session, parse(command, words[1:])))
    except KshellError as error:
        return Answered(chapter, None, error)


def _bounded(chapter: Chapter, result: Result) -> Answered:
    """The answer with so many rows as a page should have: they are read now, and what they raise is an error here."""
    if isinstance(result, Report):
        for section in result.sections:
            _keep(section.body)
        return Answered(chapter, result, None)
    return Answered(chapter, result, None, _keep(result))


def _keep(part: Any) -> int:
    """Read the rows of a part, and keep the first; the number of others."""
    if not isinstance(part, Rows):
        return 0
    part.rows, left_out, _ = plain.first_rows(part.rows, _MOST_ROWS)
    return left_out


def _chapters(session: Session) -> Iterator[Chapter]:
    """All chapters, the stories behind the timeline."""
    for chapter in CHAPTERS:
        yield chapter
        if chapter.name == "timeline":
            yield from _stories(session)


def _stories(session: Session) -> Iterator[Chapter]:
    """Why partitions in trouble are: those without a leader first."""
    command = registry.get("partitions")
    try:
        rows = command.run(session, parse(command, ["--offline", "--under-min-isr", "--limit", "1000"]))
        found = sorted(rows, key=lambda row: row["state"] != "offline") if isinstance(rows, Rows) else []
    except KshellError:
        return
    for number, row in enumerate(found[:_STORIES]):
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
    meant="--to",
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
