"""``when``: how many rows of a table fulfil a condition at every offset of a log, without making the table for each.

The log's history knows the offsets at which each value changes, and a table declares what its rows are made of
(:attr:`.Table.counts`), so only what changed is evaluated again. Each way of counting yields *steps*: an offset, and by
how much the number of rows changes there. Rows that exist before the log's first record are a step at
:attr:`.History.first`. :func:`match_ranges` adds the steps up.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kshell.errors import DataError
from kshell.metadata.image import EMPTY, Image
from kshell.tables.selection import asked_for

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.metadata.history import History
    from kshell.tables.declaration import Table
    from kshell.tables.where import Predicate

T = TypeVar("T")

_PROGRESS_EVERY = 1000
_MOST_RECENT = 4
"""Values of a key whose counts are cached: a broker that is fenced and unfenced has two values again and again."""


class Question(NamedTuple):
    """Which rows of a table to count: those that fulfil ``where``, at every offset up to ``until``."""

    session: Session
    table: Table
    where: Predicate
    history: History
    until: int
    min_isr_default: int | None = None
    """The brokers' ``min.insync.replicas`` if the log does not have it."""

    def matches(self, session: Session, image: Image) -> int:
        """Return how many rows of an image fulfil the condition."""
        where = self.where
        return sum(1 for row in self.table.rows(session, image, asked_for(self.table.fields, where)) if where(row))

    def with_progress(self, items: Iterable[T], unit: str = "examined") -> Iterator[T]:
        """Yield the items and report progress; ``unit`` describes the number of items so far."""
        progress = self.session.progress
        for number, item in enumerate(items):
            if progress is not None and number % _PROGRESS_EVERY == 0:
                progress(0, 0, f"{self.table.name}: {number:,} {unit}")
            yield item


Step = tuple[int, int]
"""An offset, and by how much the number of rows changes there."""
Counts = Callable[[Question], Iterator[Step]]


class MatchRange(NamedTuple):
    """A range of offsets in which at least one row fulfilled the condition."""

    start: int
    """The first offset with such a row."""
    end: int | None
    """The first offset without such a row; ``None`` if there still is one."""
    rows: int
    """The highest number of such rows at one offset."""


def match_ranges(question: Question) -> Iterator[MatchRange]:
    """Yield the ranges of offsets with at least one row that fulfils the condition, oldest first."""
    changes: defaultdict[int, int] = defaultdict(int)
    counts = question.table.counts
    assert counts is not None  # every declared table of state has them
    for offset, change in counts(question):
        if offset <= question.until:
            changes[offset] += change
    count = most = start = 0
    for offset, change in sorted(changes.items()):
        before, count = count, count + change
        if not before and count:
            start, most = offset, count
        elif before and not count:
            yield MatchRange(start, offset, most)
        most = max(most, count)
    if count:
        yield MatchRange(start, None, most)


def each_key(family: str) -> Counts:
    """Count for a table whose rows are each made of one value of ``family``."""

    def counts(question: Question) -> Iterator[Step]:
        history = question.history
        for keys in question.with_progress(history.every_key(family, question.until), "keys"):
            before = 0
            recent: deque[tuple[object, int]] = deque(maxlen=_MOST_RECENT)
            for offset, value in history.timeline(family, keys, question.until):
                count = 0 if value is None else next((count for past, count in recent if past == value), None)
                if count is None:
                    table = {keys[0]: value if len(keys) == 1 else {keys[1]: value}}
                    count = question.matches(question.session, Image({family: table}, EMPTY.provenance))
                    recent.appendleft((value, count))
                if count != before:
                    yield offset, count - before
                before = count

    return counts


def of_quorum(*families: str) -> Counts:
    """Count for a small table whose rows depend on all values of some families, and on the leader epoch.

    The whole table is made at every offset where any of these changes.
    """

    def counts(question: Question) -> Iterator[Step]:
        history, until, log = question.history, question.until, question.history.log
        offsets = {history.first}
        for family in families:
            for keys in history.every_key(family, until):
                offsets.update(offset for offset, _ in history.timeline(family, keys, until))
        for offset in (log.start, *log.epoch_starts()):
            end = log.transaction_end(offset)
            offsets |= {offset} if end is None else {offset, end}
        before = 0
        for offset in sorted(offset for offset in offsets if offset <= until):
            then = question.session.reshape(point=str(offset))
            try:
                count = question.matches(then, then.image)
            except DataError:
                if offset >= log.start:
                    raise
                count = 0  # the state before a log without a snapshot is not known
            yield offset, count - before
            before = count

    return counts
