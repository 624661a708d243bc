"""``timeline``: who led partitions, and how large their ISR was, over time: drawn as text, or as rows of intervals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.commands.as_of import complete_point
from kshell.commands.why import since, until
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Drawing, Result, Row, Rows, typed
from kshell.errors import CommandError, UsageError
from kshell.history.plot import LeadershipSpan, PartitionLane, draw
from kshell.history.records import without_log
from kshell.history.story import Partitions, Revision, Story, complete_target, story_of, target
from kshell.metadata.names import sort_key
from kshell.metadata.partial import is_unreported, reported_ids, reported_or_none
from kshell.metadata.partitions import Partition
from kshell.sources.points import Since
from kshell.tree.image import iso

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.protocol.primitives import Uuid

COLUMNS = typed(
    "topic:string partition:int32 fromOffset:int64 fromTime:timestamp fromTimeMs:int64 toOffset:int64 toTime:timestamp"
    " toTimeMs:int64 leader:int32 isrSize:int32 isr:[int32] replicas:[int32]"
)
_MOST = 40
"""Partitions that are drawn at most; the rows have all."""
PartitionPast = tuple[str, int, Partitions]
"""(topic, partition number, its revisions, oldest first)."""


class TimelineArguments(Arguments):
    """Arguments and options of ``timeline``."""

    target: str | None
    all: bool
    since: str | None
    until: str | None
    ascii: bool


def run(session: Session, args: TimelineArguments) -> Result:
    """Return one row per interval without a change of leader, ISR or replicas; as text, a plot. Raises KshellError."""
    if args.all and args.target is not None:
        raise UsageError(
            "timeline: --all, or one topic or partition; not both", hint="`help timeline` shows how it is used"
        )
    session.source.require_log("timeline")
    then = until(session, args.until)
    story = story_of(then, "timeline")
    if story.chronicle is None:
        raise CommandError(
            f"there is no past to draw: {story.reach}", hint="`partitions` and `why` show the present state"
        )
    first = since(session, story, args.since)
    last = story.end()[0]

    def read_rows() -> Iterator[Row]:
        return (row for past in _chosen(then, story, args) for row in _rows(past, first, last))

    if args.target is not None:
        target(then, story, args.target)  # rows are read lazily: report an unknown topic before anything is printed
    result = Rows(COLUMNS, read_rows())
    result.readable = Drawing(
        lambda width: _plot(session, story, read_rows(), first, width, plain=args.ascii or _is_plain())
    )
    if (missing := without_log(session)) is not None:
        session.remarks.append(missing)
    if then is not session:
        session.remarks += then.problems()
        result.exit_code = then.exit_code() if then.is_loaded else 0
    return result


def _chosen(session: Session, story: Story, args: TimelineArguments) -> Iterator[PartitionPast]:
    """The partitions of the given topic, or the given one; without an argument, those whose leader or ISR changed."""
    if args.target is None:
        for name in sorted(story.names(), key=sort_key):
            yield from (past for past in _of(story, name) if args.all or _moved(past[2]))
        return
    chosen = target(session, story, args.target)
    yield from (past for past in _of(story, chosen.topic, chosen.topic_id) if chosen.partition in (None, past[1]))


def _of(story: Story, name: str, only: Uuid | None = None) -> Iterator[PartitionPast]:
    """The partitions of all topics that had the name, or of ``only`` one: those that were deleted first."""
    newest = story.topic_id(name)
    every: dict[int, Partitions] = {}
    for topic_id in (*story.older_ids(name), *(() if newest is None else (newest,))):
        if only not in (None, topic_id):
            continue
        for number, revisions in story.partitions(topic_id).items():
            every.setdefault(number, []).extend(_at_its_effect(story, revision) for revision in revisions)
    for number in sorted(every):
        yield name, number, every[number]


def _at_its_effect(story: Story, revision: Revision[Partition]) -> Revision[Partition]:
    """The revision at the point from which on it holds: that of a metadata transaction's end, for what is inside."""
    if revision.since <= revision.offset or story.chronicle is None:
        return revision
    return revision._replace(offset=revision.since, time=story.chronicle.time_of(revision.since))


def _moved(revisions: Partitions) -> bool:
    """Whether leader, ISR or replicas ever changed while a topic lasted; one that is created again is another."""
    before: Partition | None = None
    for revision in revisions:
        if before is not None and revision.value is not None and _shape(revision.value) != _shape(before):
            return True
        before = revision.value
    return False


def _shape(value: Partition | None) -> tuple[object, ...] | None:
    return None if value is None else (value.leader, tuple(sorted(reported_ids(value.isr))), value.replicas)


def _rows(past: PartitionPast, first: Since | None, last: int) -> Iterator[Row]:
    """The intervals of one partition from ``first`` on, oldest first; the last is open unless the topic was deleted."""
    topic, number, revisions = past
    start: Revision[Partition] | None = None
    for change in revisions:
        if start is not None and _shape(change.value) == _shape(start.value):
            continue
        if (
            start is not None
            and start.value is not None
            and (first is None or first.reaches(change.offset, change.time))
        ):
            yield _row(topic, number, start, start.value, change)
        start = change
    if (
        start is not None
        and start.value is not None
        and (first is None or first.offset <= last or first.time_ms is not None)
    ):
        yield _row(topic, number, start, start.value, None)


def _row(topic: str, number: int, start: Revision[Partition], value: Partition, end: Revision[Partition] | None) -> Row:
    return {
        "topic": topic,
        "partition": number,
        "fromOffset": start.offset,
        "fromTime": iso(start.time),
        "fromTimeMs": start.time,
        "toOffset": None if end is None else end.offset,
        "toTime": None if end is None else iso(end.time),
        "toTimeMs": None if end is None else end.time,
        "leader": reported_or_none(value.leader),
        "isrSize": None if is_unreported(value.isr) else len(value.isr),
        "isr": list(reported_ids(value.isr)),
        "replicas": list(value.replicas),
    }


def _plot(
    session: Session, story: Story, rows: Iterator[Row], first: Since | None, width: int, *, plain: bool
) -> list[list[str]]:
    assert story.chronicle is not None
    end = story.end()[1]
    lanes: dict[tuple[str, int], PartitionLane] = {}
    for row in rows:
        key = row["topic"], row["partition"]
        if key not in lanes and len(lanes) == _MOST:
            session.remarks.append(f"only the first {_MOST} partitions are drawn; `-o csv` has all")
            break
        to = max(end, row["fromTimeMs"]) if row["toTimeMs"] is None else row["toTimeMs"]
        span = LeadershipSpan(row["fromTimeMs"], to, row["leader"], row["isrSize"], len(row["replicas"]))
        lanes.setdefault(key, PartitionLane(f"{key[0]}-{key[1]}", [])).spans.append(span)
    if not lanes:
        return [["no leader or ISR changed in that time"]]
    if story.chronicle.starts_with_snapshot:
        session.remarks.append(story.reach)
    begin = min(span.start for lane in lanes.values() for span in lane.spans)
    if first is not None:
        begin = max(begin, story.chronicle.time_of(first.offset) if first.time_ms is None else first.time_ms)
    troubled_first = sorted(lanes.values(), key=lambda lane: all(span.leader != -1 for span in lane.spans))
    return draw(troubled_first, begin, max(begin, end), width, plain=plain)


def _is_plain() -> bool:
    """Whether the terminal can only show ASCII."""
    return os.environ.get("TERM") == "dumb"


COMMAND = Command(
    name="timeline",
    task=Task.PAST,
    summary="leadership and ISR size over time, drawn",
    run=run,
    arguments=TimelineArguments,
    args=(
        Arg("target", "TOPIC-PARTITION or a topic; without it, all that changed", arity="?", complete=complete_target),
    ),
    flags=(
        Flag(("--all",), "every partition of every topic, deleted ones as well"),
        Flag(("--since",), "from that point on", metavar="POINT", complete=complete_point, dashed=True),
        Flag(("--until",), "up to that point", metavar="POINT", complete=complete_point, dashed=True),
        Flag(("--ascii",), "draw with ASCII alone (also where TERM=dumb)"),
    ),
    examples=(
        Example("timeline legacy-import-0", "when a partition lost its leader"),
        Example("timeline orders --since 150", "all partitions of a topic, from a point on"),
        Example("timeline --all -o csv", "the same as rows, for a spreadsheet"),
    ),
    description=(
        "Two lines per partition: who led, and how many replicas were in sync. ✗ is time without a leader; partitions"
        " that had such a time come first. Brokers 0 to 9 are their digit, others a letter (the legend says which),"
        " each with a colour that everybody can distinguish. A column of the plot is a period of time; where several"
        " states fall into one, it shows the worst. Other formats have a row for each period in which leader, ISR and"
        " replicas stayed as they were: it begins with the record at fromOffset, and the record at toOffset ended it"
        " (null: it lasts); of what is in a metadata transaction, that is the record that ends the transaction."
        " Without a topic or partition, partitions whose leader or ISR never changed are left out."
        " The history starts where the log starts."
    ),
)
