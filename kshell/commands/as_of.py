"""``as-of``: move the session to another point in time, so that every later command answers as of that point."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.result import Report, Result, Section, Text
from kshell.engine.session import Session
from kshell.tree.image import iso, provenance


class AsOfArguments(Arguments):
    """Arguments and options of ``as-of``."""

    point: list[str]


def run(session: Session, args: AsOfArguments) -> Result:
    """Move to a point, or say at which point the session is if none is given."""
    then = session
    if args.point:
        front = session.front
        then = front.reshape(point=" ".join(args.point), zone=session.settings.get("timezone"))
        _ = then.loaded  # load first: if the point cannot be shown, the session stays where it is
        front.travel(then)
    last = then.image.provenance
    facts = provenance(then.image)
    result = Report([Section("", "", {"asOf": "now" if then.until is None else then.until} | facts)])
    point = "now" if then.until is None else f"as of offset {then.until}"
    effect = f"the last record is {last.offset}, of {iso(last.timestamp) or 'no time known'}"
    result.readable = Text(f"{point}: {effect if last.offset >= 0 else 'no record has taken effect yet'}")
    return result


def complete_point(session: Session, typed: str) -> Iterable[str]:
    """Complete a point in time: ``now``, durations before now, and marks."""
    marks = [f"@{mark.name}" for mark in session.marks.all()]
    return [point for point in ("now", "-15m", "-1h", "-1d", *marks) if point.startswith(typed)]


COMMAND = Command(
    name="as-of",
    task=Task.PAST,
    summary="show every later answer as of an offset or a time; as-of now ends it",
    run=run,
    arguments=AsOfArguments,
    args=(
        Arg(
            "point",
            "an offset, a time, -15m and the like, @NAME (see mark), or now; without one: where the shell is",
            arity="*",
            complete=complete_point,
        ),
    ),
    examples=(
        Example("as-of 160", "the state after the record at offset 160: every later command shows that"),
        Example("as-of now", "back to the newest state"),
        Example("as-of -o json", "where the shell is"),
    ),
    description=(
        "`as-of N` applies every record with an offset of N or less, even in the middle of a batch; a metadata"
        " transaction that is still open at N is left out. A time stands for the last record written by then; a time"
        " without a zone is UTC. The prompt shows the offset. --as-of POINT does the same for one command. The first"
        " point reads the log once, from its start; every later point is shown at once. Points before the log's start"
        " can be shown only where there are snapshots: otherwise the error names the points that can be shown."
    ),
)
