"""Options that verbs share: the directory of a warehouse, the sources of its tables, points in time."""

from __future__ import annotations

from kshell.engine.declaration import Arguments, Flag
from kshell.errors import UsageError
from kshell.sources.points import Point, duration_ms, parse_point
from kshell.sources.remote import plain
from kshell.spark.tables.delta import LOG_HOURS, RETAINED_HOURS
from kshell.spark.verbs import SparkArguments

OUT = Flag(("--out",), "the directory of the tables, local or a URI", "DIR")


class OutArguments(Arguments):
    """The parsed value of :data:`OUT`."""

    out: str | None


class WarehouseArguments(OutArguments, SparkArguments):
    """The parsed values of :data:`OUT` and the options of Spark, for verbs that need a session."""


def _hours(text: str) -> int:
    hours, rest = divmod(duration_ms(text), 3_600_000)
    if rest:
        raise ValueError("a duration of whole hours: 0h, 48h, 7d")
    if hours > LOG_HOURS:
        raise ValueError(f"at most {LOG_HOURS // 24}d: the logs of the tables do not go back further")
    return hours


RETAIN = Flag(
    ("--retain",),
    f"how far back steps can be read and restored ({RETAINED_HOURS}h; at most {LOG_HOURS // 24}d)",
    "TIME",
    convert=_hours,
    default=RETAINED_HOURS,
)


def utf8(text: str) -> str:
    """Return text of the command line, if it can be written into tables and pages.

    Raises:
        ValueError: its bytes are not UTF-8 (Python has surrogates in their place).
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text in UTF-8; write a cluster's id as `tables` has it") from None
    return text


SOURCE_FLAGS = (
    Flag(("--source",), "metadata directories, log directories or files: a path or a glob", "GLOB", repeat=True),
    Flag(
        ("--cluster",),
        "the cluster of copies without meta.properties (default: each is a cluster of its own)",
        "ID",
        convert=utf8,
    ),
)


class SourcesArguments(WarehouseArguments):
    """The parsed values of :data:`SOURCE_FLAGS` and :data:`SINCE`; ``more`` has the sources given without an option."""

    source: list[str] | None
    more: list[str]
    cluster: str | None
    since: Point | None


def point(text: str) -> Point:
    """Parse a point in the logs of many clusters. Raises UsageError, also for marks: they belong to one source."""
    try:
        return parse_point(text)
    except UsageError as error:
        hint = "a point is an offset (1234), a time (2026-01-31T12:00:00Z), a while ago (-15m, -2h, -1d), or now"
        raise UsageError(error.message, hint=hint) from None


SINCE = Flag(
    ("--since",),
    "begin a cluster at the newest snapshot at or before that point: an offset, a time, -30d (default: all there is)",
    "POINT",
    convert=point,
    dashed=True,
)


def sources_of(args: SourcesArguments) -> list[str]:
    """Return the sources of a command line. Raises UsageError without any, without ``--out``, or for a key in a URI."""
    sources = [plain(source) for source in (*(args.source or ()), *args.more)]  # first: later messages show them
    if not sources or not all(sources):
        raise UsageError("no --source", hint="--source '/fleet/*/*/__cluster_metadata-0'")
    out_of(args)
    return sources


def out_of(args: OutArguments) -> str:
    """Return the value of ``--out``. Raises UsageError if it is not given."""
    if not args.out:
        raise UsageError("no --out", hint="--out DIR is where the tables are")
    return args.out
