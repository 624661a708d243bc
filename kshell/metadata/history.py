"""The image at every offset: each value with the offset from which it held, so that nothing is replayed twice.

One pass over the log fills it. An image as of an offset is then a view: what is looked at is searched for, the rest
costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import EMPTY, Image, Table
from kshell.metadata.partitions import Topic
from kshell.metadata.recorded_topics import LogIndex, RecordedTopic
from kshell.metadata.replay import Problem, Replayer
from kshell.metadata.values import Entry, Place, Provenance
from kshell.metadata.versioned_cells import Cell, Cells
from kshell.protocol.batches import Batch, RawRecord


class History:
    """What a recorder has noted; ``base`` is the image before the log's first record."""

    def __init__(self, base: Image, start: int) -> None:
        self.base = base
        self.log = LogIndex(start)
        self.versions = Cells(self.log)
        self.problems: list[Problem] = []
        self.cells: dict[str, dict[Any, Cell]] = {}
        """Family -> key -> what it held."""
        self.inner_cells: dict[str, dict[Any, dict[Any, Cell]]] = {}
        """The same of families with two levels."""
        self._problems_at: list[int] = []
        self._transactions: list[tuple[int, int]] = []
        self._open: int | None = None

    def at(self, offset: int) -> Image:
        """The image with every record up to ``offset``, an open transaction left out."""
        return Image(_Tables(self, offset), self.provenance(offset))

    def provenance(self, offset: int) -> Provenance:
        """Of the last metadata record up to an offset that counts there."""
        begun = self.open_transaction(offset)
        last = (min(offset, self.log.end - 1) if begun is None else begun - 1) - self.log.start
        found = self.log.is_metadata.rfind(1, 0, last + 1) if last >= 0 else -1
        if found < 0:
            return self.base.provenance
        last = found + self.log.start
        return Provenance(last, self.log.place(last).epoch, self.log.timestamp(last))

    def open_transaction(self, offset: int) -> int | None:
        """Where the transaction begins that is open at an offset, if one is."""
        if self._open is not None and offset >= self._open:
            return self._open
        at = bisect_right(self._transactions, offset, key=lambda one: one[0]) - 1
        begun, ended = self._transactions[at] if at >= 0 else (0, 0)
        return begun if begun <= offset < ended else None

    def problems_at(self, offset: int) -> list[Problem]:
        """The records up to an offset that are not in its image."""
        return self.problems[: bisect_right(self._problems_at, offset)]

    def note_state(self, offset: int, begun: int | None, problems: list[Problem]) -> None:
        """After each record: the transaction that is open now, and the problems so far."""
        if self._open is not None and begun is None:
            self._transactions.append((self._open, offset))
        self._open = begun
        if len(problems) > len(self.problems):
            new = problems[len(self.problems) :]
            self.problems += new
            self._problems_at += [offset] * len(new)

    def note(self, family: str, key: Any, offset: int, value: Any) -> None:
        """A key holds a value from an offset on."""
        self._put(self.cells.setdefault(family, {}), key, offset, value, self.base[family].get(key))

    def note_inner(self, family: str, key: Any, name: Any, offset: int, value: Any) -> None:
        """The same in a family with two levels."""
        cells = self.inner_cells.setdefault(family, {}).setdefault(key, {})
        self._put(cells, name, offset, value, self.base[family].get(key, {}).get(name))

    def _put(self, cells: dict[Any, Cell], key: Any, offset: int, value: Any, base: Any) -> None:
        cell = cells.get(key)
        if cell is not None:
            self.versions.put(cell, offset, value)
        elif value is not base:
            cells[key] = Cell(offset, value)

    def note_end(self, family: str, key: Any, offset: int) -> None:
        """All that was below a key of a family with two levels is gone."""
        for name in {*self.base[family].get(key, {}), *self.inner_cells.get(family, {}).get(key, {})}:
            self.note_inner(family, key, name, offset, None)

    def table(self, family: str, offset: int) -> Table:
        """A family's table as of an offset."""
        base, cells, inner = self.base[family], self.cells.get(family), self.inner_cells.get(family)
        if inner is not None:
            return _two_levels(self.versions, base, inner, offset)
        if cells is None:
            return base
        if family == TOPICS:
            return TopicsAt(self.versions, base, cells, offset)
        table = CellsAt(self.versions, base, cells, offset)
        return table if family == NAMES else dict(table.items())

    def families(self) -> set[str]:
        """Every table that ever held something."""
        return {*self.base.tables, *self.cells, *self.inner_cells}


def _two_levels(versions: Cells, base: Table, inner: dict[Any, dict[Any, Cell]], offset: int) -> Table:
    table = dict(base)
    for key, cells in inner.items():
        held = CellsAt(versions, base.get(key, {}), cells, offset)
        if held.is_empty():
            table.pop(key, None)
        else:
            table[key] = held
    return table


class CellsAt(Mapping[Any, Any]):
    """A table as of an offset: cells over what was there before the log."""

    def __init__(self, versions: Cells, base: Table, cells: dict[Any, Cell], offset: int) -> None:
        self._versions = versions
        self._base = base
        self._cells = cells
        self._offset = offset
        self._keys: list[Any] | None = None

    def _held(self, key: Any) -> Any:
        cell = self._cells.get(key)
        held = None if cell is None else self._versions.at(cell, self._offset)
        return self._base.get(key) if held is None else held[1]

    def __getitem__(self, key: Any) -> Any:
        held = self._held(key)
        if held is None:
            raise KeyError(key)
        return held

    def __contains__(self, key: object) -> bool:
        cell = self._cells.get(key)
        holds = None if cell is None else self._versions.holds(cell, self._offset)
        return key in self._base if holds is None else holds

    def is_empty(self) -> bool:
        """Whether it holds nothing; found at the first key that it holds."""
        return not any(key in self for key in self._all())

    def __iter__(self) -> Iterator[Any]:
        if self._keys is None:
            self._keys = [key for key in self._all() if key in self]
        return iter(self._keys)

    def _all(self) -> Iterable[Any]:
        yield from self._base
        yield from (key for key in self._cells if key not in self._base)

    def __len__(self) -> int:
        if self._keys is None:
            iter(self)
        return len(self._keys or ())


class TopicsAt(CellsAt):
    """Topics by id as of an offset, each made when somebody asks for it, and once."""

    def __init__(self, versions: Cells, base: Table, cells: dict[Any, Cell], offset: int) -> None:
        super().__init__(versions, base, cells, offset)
        self._made: dict[Any, Topic] = {}

    def __getitem__(self, key: Any) -> Topic:
        made = self._made.get(key)
        if made is None:
            held: Topic = super().__getitem__(key)
            made = self._made[key] = held.at(self._offset) if isinstance(held, RecordedTopic) else held
        return made


class _Tables(Mapping[str, Table]):
    """An image's tables, each made when it is asked for."""

    def __init__(self, history: History, offset: int) -> None:
        self._history = history
        self._offset = offset
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._history.table(name, self._offset)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._history.families())

    def __len__(self) -> int:
        return len(self._history.families())


class Recorder(Replayer):
    """A replayer that keeps every state it went through."""

    def __init__(self, base: Image = EMPTY, start: int = 0) -> None:
        super().__init__(base)
        self.history = History(base, start)
        self._delta.touched = []

    def log_batch(self, batch: Batch, file: str, start: int = 0) -> None:
        """As a replayer does. Raises DecodeError before the first record."""
        log = self.history.log
        if log.last_batch is None:
            log.start = max(log.start, batch.base_offset)  # a live source gives nothing before its own start
        log.batch(batch, file)
        super().log_batch(batch, file, start)

    def _log_record(self, raw: RawRecord, place: Place) -> None:
        log = self.history.log
        log.effective = raw.offset
        log.record(raw.timestamp, is_metadata=True)
        super()._log_record(raw, place)
        self._note(raw.offset)

    def _control(self, raw: RawRecord, place: Place) -> None:
        self.history.log.effective = raw.offset
        self.history.log.record(raw.timestamp, is_metadata=False)
        super()._control(raw, place)
        self._note(raw.offset)

    def _note(self, offset: int) -> None:
        touched = self._delta.touched
        if touched:
            self._delta.touched = []
            for family, keys in touched:
                if family == TOPICS:
                    if len(keys) != 3 or not isinstance(self._delta.peek(TOPICS).get(keys[0]), RecordedTopic):
                        self._topic(keys, offset)
                else:
                    self._value(family, keys, offset)
        self.history.note_state(offset, self.open_transaction, self.problems)

    def _value(self, family: str, keys: tuple[Any, ...], offset: int) -> None:
        held = self._delta.peek(family).get(keys[0])
        if len(keys) == 2:
            self.history.note_inner(family, keys[0], keys[1], offset, (held or {}).get(keys[1]))
        elif isinstance(held, Entry) or family == NAMES:
            self.history.note(family, keys[0], offset, held)
        elif family in self.history.inner_cells or isinstance(self.history.base[family].get(keys[0]), Mapping):
            self.history.note_end(family, keys[0], offset)
        else:
            self.history.note(family, keys[0], offset, None)

    def _topic(self, keys: tuple[Any, ...], offset: int) -> None:
        """A topic that came, went, or is changed for the first time since the snapshot."""
        history, topic_id = self.history, keys[0]
        topic: Topic | None = self._delta.peek(TOPICS).get(topic_id)
        if topic is not None and not isinstance(topic, RecordedTopic):
            before: Topic | None = history.base[TOPICS].get(topic_id)
            if before is not None and before.origin is not topic.origin:
                before = None
            recorded = RecordedTopic(topic.name, topic.id, topic.origin, history.log, before)
            for number, entry in topic.changes():
                if before is None or before.partition(number) is not entry:
                    recorded.put(number, entry)
            self._delta.table(TOPICS)[topic_id] = topic = recorded
        history.note(TOPICS, topic_id, offset, topic)
        if len(keys) > 1:
            history.note(NAMES, keys[1], offset, self._delta.peek(NAMES).get(keys[1]))
