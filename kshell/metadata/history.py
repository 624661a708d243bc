"""The image at every offset: each value with the offset from which it was in effect, so that nothing is replayed twice.

One pass over the log fills it. An image as of an offset is then a view: what is looked at is searched for, the rest
costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.metadata.checkpoint import LogCheckpoint, PassedCheckpoint
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import EMPTY, Image, Table, families
from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.partitions import Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.replay import Problem, Problems, Replayer
from kshell.metadata.values import Entry, Provenance
from kshell.metadata.versions import Cells, Keys, PackedValues, Tombstones, Version


class ProvenanceRun(NamedTuple):
    """The provenance at each offset from ``start`` up to ``end`` (exclusive).

    Attributes:
        provenance: that at the last of these offsets.
        rises: whether the provenance's own offset is each of them; else it is the same at all of them.
    """

    start: int
    end: int
    provenance: Provenance
    rises: bool


class History:
    """What a recorder has noted; ``base`` is the image before the log's first record."""

    def __init__(self, base: Image, log: RecordLog, changes: PartitionChanges) -> None:
        self.base = base
        self.log = log
        self.changes = changes
        self.problems: list[Problem] = []
        self.checkpoints: list[PassedCheckpoint] = []
        """The snapshots whose log was replayed, in order; from its end on, each is what holds."""
        self._all_problems = Problems()
        self._values = PackedValues(self.log, changes)
        self._cells: dict[str, Cells] = {}
        """Family -> the versions of its keys."""
        self._inner: dict[str, dict[Any, Cells]] = {}
        """The same of families with two levels."""
        self._tombstones: dict[str, Tombstones] = {}
        self._problems_at: list[int] = []

    def at(self, offset: int) -> Image:
        """The image with every record up to ``offset``, an open transaction left out."""
        return Image(_Tables(self, offset), self.provenance(offset))

    @property
    def first(self) -> int:
        """The first offset that there is an image of: what was before the log's first record, if there were others."""
        return max(self.log.start - 1, 0)

    def provenance(self, offset: int) -> Provenance:
        """Of the last metadata record up to an offset that counts there."""
        transaction_start = self.log.open_transaction(offset)
        last = self.log.last_metadata(
            min(offset, self.log.end - 1) if transaction_start is None else transaction_start - 1
        )
        if last is None:
            return self.base.provenance
        return Provenance(last, self.log.place(last).epoch, self.log.timestamp(last))

    def provenances(self, until: int) -> Iterator[ProvenanceRun]:
        """As :meth:`provenance`, of every offset from :attr:`first` up to one."""
        current = self.base.provenance
        if self.first < self.log.start:
            yield ProvenanceRun(self.first, self.log.start, current, False)
        for start, end, epoch, timestamp, is_metadata, is_open in self.log.runs(until):
            rises = is_metadata and not is_open
            if rises:
                current = Provenance(end - 1, epoch, timestamp)
            yield ProvenanceRun(start, end, current, rises)

    def problems_between(self, start: int, until: int) -> Problems:
        """The records from one offset up to another that are not in the image of the latter."""
        listed = self.problems[bisect_left(self._problems_at, start) : bisect_right(self._problems_at, until)]
        return Problems(listed, self._all_problems.unlisted_between(start, until))

    def snapshot_provenance(self, file: str) -> Provenance:
        """Where a snapshot of that name ends: one that was passed, or the one that the log begins with."""
        passed = (checkpoint.provenance for checkpoint in self.checkpoints if checkpoint.file == file)
        return next(passed, self.base.provenance)

    def note_problems(self, offset: int, problems: Problems) -> None:
        """After a record: the problems so far."""
        self._all_problems = problems
        if len(problems) > len(self.problems):
            new = problems[len(self.problems) :]
            self.problems += new
            self._problems_at += [offset] * len(new)

    def note(self, family: str, key: Any, offset: int, value: Any) -> None:
        """A key holds a value from an offset on."""
        if family not in self._cells:
            self._cells[family] = Cells(self._values, self._tombstones.setdefault(family, Tombstones(self._values)))
        self._cells[family].put(key, offset, value, self.base[family].get(key))

    def note_inner(self, family: str, key: Any, name: Any, offset: int, value: Any) -> None:
        """The same in a family with two levels."""
        if family not in self._inner:
            self._inner[family] = {}
            self._tombstones.setdefault(family, Tombstones(self._values))
        cells = self._inner[family].get(key)
        if cells is None:
            cells = self._inner[family][key] = Cells(self._values, self._tombstones[family], (key,))
        cells.put(name, offset, value, self.base[family].get(key, {}).get(name))
        if not cells:
            del self._inner[family][key]

    def note_end(self, family: str, key: Any, offset: int) -> None:
        """Note that everything below a key of a family with two levels was removed."""
        for name in {*self.base[family].get(key, {}), *self._inner.get(family, {}).get(key, ())}:
            self.note_inner(family, key, name, offset, None)

    def has_levels(self, family: str) -> bool:
        """Whether values of two levels were noted."""
        return family in self._inner

    def keys(self, family: str, until: int) -> set[Keys]:
        """The keys of every value that was noted up to an offset."""
        below = self._inner.get(family, {}).items()
        written: set[Keys] = {(key, name) for key, cells in below for name in cells.came(until)}
        if family in self._cells:
            written |= {(key,) for key in self._cells[family].came(until)}
        return written.union(self._tombstones[family].keys(until) if family in self._tombstones else ())

    def versions(self, family: str, keys: Keys, until: int) -> Iterator[Version]:
        """(since when, value or ``None``) of all that was noted of a value up to an offset, newest first."""
        above, key = keys[:-1], keys[-1]
        cells = self._inner.get(family, {}).get(above[0]) if above else self._cells.get(family)
        if cells is None and family in self._tombstones:
            cells = Cells(self._values, self._tombstones[family], above)
        return iter(()) if cells is None else cells.versions(key, until)

    def every_key(self, family: str, until: int) -> set[Keys]:
        """As :meth:`keys`, and those of what was there before the log."""
        base = self.base[family]
        declared = families().get(family)
        if declared is not None and len(declared.levels) == 2:
            return self.keys(family, until).union((key, name) for key, below in base.items() for name in below)
        return self.keys(family, until).union((key,) for key in base)

    def timeline(self, family: str, keys: Keys, until: int) -> list[Version]:
        """What a value was up to an offset, oldest first, from :attr:`first` on."""
        base: Any = self.base[family]
        for key in keys:
            base = None if base is None else base.get(key)
        versions = [] if base is None else [(self.first, base)]
        return versions + list(self.versions(family, keys, until))[::-1]

    def table(self, family: str, offset: int) -> Table:
        """A family's table as of an offset."""
        base, cells = self.base[family], self._cells.get(family)
        if family in self._inner:
            return self._two_levels(family, offset)
        if cells is None:
            return base
        revived = {keys[0]: older for keys, older in self._tombstones[family].there(offset).items()}
        if family == TOPICS:
            return TopicsAt(base, cells, revived, offset)
        table = CellsAt(base, cells, revived, offset)
        return table if family == NAMES else dict(table.items())

    def _two_levels(self, family: str, offset: int) -> Table:
        base, inner = self.base[family], self._inner[family]
        revived: dict[Any, dict[Any, Sequence[int]]] = {}
        for (key, name), older in self._tombstones[family].there(offset).items():
            revived.setdefault(key, {})[name] = older
        table = dict(base)
        for key in {**inner, **revived}:
            cells = inner.get(key) or Cells(self._values, self._tombstones[family])
            cells_at = CellsAt(base.get(key, {}), cells, revived.get(key, {}), offset)
            if cells_at.is_empty():
                table.pop(key, None)
            else:
                table[key] = cells_at
        return table

    def families(self) -> set[str]:
        """The families of all tables that ever had a value."""
        return {*self.base.tables, *self._cells, *self._inner}


class CellsAt(Mapping[Any, Any]):
    """A table as of an offset: cells, and the keys that are removed by now, over the table before the log."""

    def __init__(self, base: Table, cells: Cells, revived: Mapping[Any, Sequence[int]], offset: int) -> None:
        self._base = base
        self._cells = cells
        self._revived = revived
        self._offset = offset
        self._keys: list[Any] | None = None

    def _value_of(self, key: Any) -> Any:
        version = self._cells.at(key, self._offset)
        if version is not None:
            return version[1]
        older = self._revived.get(key)
        return self._base.get(key) if older is None else self._cells.packed(older, self._offset)

    def __getitem__(self, key: Any) -> Any:
        value = self._value_of(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        holds = self._cells.holds(key, self._offset)
        return key in self._revived or key in self._base if holds is None else holds

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
        yield from (key for key in self._revived if key not in self._cells)

    def __len__(self) -> int:
        if self._keys is None:
            iter(self)
        return len(self._keys or ())


class TopicsAt(CellsAt):
    """Topics by id as of an offset, each made when somebody asks for it, and once."""

    def __init__(self, base: Table, cells: Cells, revived: Mapping[Any, Sequence[int]], offset: int) -> None:
        super().__init__(base, cells, revived, offset)
        self._cached: dict[Any, Topic] = {}

    def __getitem__(self, key: Any) -> Topic:
        topic = self._cached.get(key)
        if topic is None:
            recorded: Topic = super().__getitem__(key)
            topic = self._cached[key] = recorded.at(self._offset) if isinstance(recorded, RecordedTopic) else recorded
        return topic


class _Tables(Mapping[str, Table]):
    """An image's tables, each made when it is asked for."""

    def __init__(self, history: History, offset: int) -> None:
        self._history = history
        self._offset = offset
        self._cached: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        table = self._cached.get(name)
        if table is None:
            table = self._cached[name] = self._history.table(name, self._offset)
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._history.families())

    def __len__(self) -> int:
        return len(self._history.families())


class Recorder(Replayer):
    """A replayer that keeps every state it went through."""

    needs_every_state = True

    def __init__(self, base: Image = EMPTY, start: int = 0) -> None:
        super().__init__(base, start=start)
        self.history = History(base, self.log, self.changes)
        self.history.checkpoints = self.checkpoints
        self._delta.touched = []

    def pass_checkpoint(self, checkpoint: LogCheckpoint, snapshot: Image) -> None:
        """As a replayer does; what the snapshot holds otherwise holds from its last offset on."""
        super().pass_checkpoint(checkpoint, snapshot)
        self._after(checkpoint.end_offset - 1)

    def _after(self, offset: int) -> None:
        touched = self._delta.touched
        if touched:
            for family, keys in list(touched):
                if family == TOPICS:
                    self._note_topic(keys, offset)
                else:
                    self._value(family, keys, offset)
            touched.clear()  # with what noting itself touched
        self.history.note_problems(offset, self.problems)

    def _value(self, family: str, keys: tuple[Any, ...], offset: int) -> None:
        current = self._delta.peek(family).get(keys[0])
        if len(keys) == 2:
            self.history.note_inner(family, keys[0], keys[1], offset, (current or {}).get(keys[1]))
        elif isinstance(current, Entry) or family == NAMES:
            self.history.note(family, keys[0], offset, current)
        elif self.history.has_levels(family) or isinstance(self.history.base[family].get(keys[0]), Mapping):
            self.history.note_end(family, keys[0], offset)
        else:
            self.history.note(family, keys[0], offset, None)

    def _note_topic(self, keys: tuple[Any, ...], offset: int) -> None:
        """A topic that came, went, or is changed for the first time since the snapshot."""
        history, topic_id = self.history, keys[0]
        is_there = topic_id in self._delta.peek(TOPICS)
        history.note(TOPICS, topic_id, offset, self._recorded(topic_id) if is_there else None)
        if len(keys) > 1:
            history.note(NAMES, keys[1], offset, self._delta.peek(NAMES).get(keys[1]))
