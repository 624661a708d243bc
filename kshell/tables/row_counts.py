"""How many rows of a table fulfil a condition at every offset of a log, without making the table at every offset.

The history of the log knows the offsets at which each value changes. A table declares what its rows are made of
(:attr:`.Table.counts`); whatever did not change is not looked at again. Each way of counting yields *steps*: an offset,
and by how much the number of rows changes there. What is true before the log's first record is a step at
:attr:`.History.first`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
"""Values of a key that are remembered: brokers are fenced and unfenced, and are the same two again and again."""


class Question(NamedTuple):
    """Which rows of a table are to be counted. ``until`` is the last offset that matters."""

    session: Session
    table: Table
    where: Predicate
    history: History
    until: int
    min_isr_default: int | None = None
    """``min.insync.replicas`` where the log has none."""

    def matches(self, session: Session, image: Image) -> int:
        """How many of the rows that an image gives fulfil the condition."""
        where = self.where
        return sum(1 for row in self.table.rows(session, image, asked_for(self.table.fields, where)) if where(row))

    def with_progress(self, items: Iterable[T], what: str = "looked at") -> Iterator[T]:
        """The items, with progress while they are gone through."""
        progress = self.session.progress
        for number, item in enumerate(items):
            if progress is not None and number % _PROGRESS_EVERY == 0:
                progress(0, 0, f"{self.table.name}: {number:,} {what}")
            yield item


Step = tuple[int, int]
"""An offset, and by how much the number of rows changes there."""
Counts = Callable[[Question], Iterator[Step]]


class Stretch(NamedTuple):
    """A stretch of the log in which at least one row fulfilled the condition."""

    start: int
    """The first offset with such a row."""
    end: int | None
    """The first offset without one; ``None`` while there is one."""
    rows: int
    """The most rows at one offset."""


def stretches(question: Question) -> Iterator[Stretch]:
    """The stretches that a table's steps add up to, oldest first."""
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
            yield Stretch(start, offset, most)
        most = max(most, count)
    if count:
        yield Stretch(start, None, most)


def each_key(family: str) -> Counts:
    """Of a table whose rows are each made of one value of one family."""

    def counts(question: Question) -> Iterator[Step]:
        history = question.history
        for keys in question.with_progress(history.every_key(family, question.until), "keys"):
            before = 0
            recent: deque[tuple[Any, int]] = deque(maxlen=_MOST_RECENT)
            for offset, value in history.timeline(family, keys, question.until):
                count = 0 if value is None else next((count for seen, count in recent if seen == value), None)
                if count is None:
                    table = {keys[0]: value if len(keys) == 1 else {keys[1]: value}}
                    count = question.matches(question.session, Image({family: table}, EMPTY.provenance))
                    recent.appendleft((value, count))
                if count != before:
                    yield offset, count - before
                before = count

    return counts


def of_quorum(*families: str) -> Counts:
    """Of a small table that all values of some families, and the leader epoch, decide on together.

    It is made whole wherever any of them changes.
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
                count = 0  # nothing says what was before a log without a snapshot
            yield offset, count - before
            before = count

    return counts
