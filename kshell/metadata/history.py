"""The log index: every version of every value, with the offset at which it took effect (docs/decisions/0014).

A :class:`Recorder` replays the log once and fills a :class:`History`. An image as of any offset (:meth:`History.at`) is
then a view: only values that are asked for are searched for, and nothing is replayed again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.metadata.checkpoint import LogCheckpoint, PassedCheckpoint
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import EMPTY, Image, Keys, Table, families
from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.partitions import Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.replay import Problem, Problems, Replayer
from kshell.metadata.values import Entry, Provenance
from kshell.metadata.versions import Cells, PackedValues, Tombstones, Version


class ProvenanceRun(NamedTuple):
    """The provenances of the images at the offsets from ``start`` up to ``end`` (exclusive).

    Attributes:
        provenance: the provenance at the last of these offsets.
        advances: whether the provenance at each offset is the record there; else it is the same at all of them.
    """

    start: int
    end: int
    provenance: Provenance
    advances: bool


class History:
    """The versions of all values, as a recorder noted them; ``base`` is the image before the log's first record."""

    def __init__(self, base: Image, log: RecordLog, changes: PartitionChanges) -> None:
        self.base = base
        self.log = log
        self.changes = changes
        self.problems: list[Problem] = []
        self.checkpoints: list[PassedCheckpoint] = []
        """The snapshots inside the log that were passed, in order; from its end on, a snapshot's values apply."""
        self._all_problems = Problems()
        self._values = PackedValues(self.log, changes)
        self._cells: dict[str, Cells] = {}
        """Family -> the versions of its keys."""
        self._inner: dict[str, dict[object, Cells]] = {}
        """For families with two levels: family -> key of a table -> the versions of the table's keys."""
        self._tombstones: dict[str, Tombstones] = {}
        self._problems_at: list[int] = []
        """For each of :attr:`problems`, the offset at which it was noted; ascending."""

    def at(self, offset: int) -> Image:
        """Return the image with every record up to ``offset`` (inclusive), without those of an open transaction."""
        return Image(_Tables(self, offset), self.provenance(offset))

    @property
    def first(self) -> int:
        """The first offset with an image: that before the log's first record, which is the base; at least 0."""
        return max(self.log.start - 1, 0)

    def provenance(self, offset: int) -> Provenance:
        """Return the provenance of the image at an offset: the last metadata record in effect there."""
        transaction_start = self.log.open_transaction(offset)
        last = self.log.last_metadata(
            min(offset, self.log.end - 1) if transaction_start is None else transaction_start - 1
        )
        if last is None:
            return self.base.provenance
        return Provenance(last, self.log.place(last).epoch, self.log.timestamp(last))

    def provenances(self, until: int) -> Iterator[ProvenanceRun]:
        """As :meth:`provenance`, for every offset from :attr:`first` to ``until`` (inclusive), in runs."""
        current = self.base.provenance
        if self.first < self.log.start:
            yield ProvenanceRun(self.first, self.log.start, current, False)
        for start, end, epoch, timestamp, is_metadata, is_open in self.log.runs(until):
            advances = is_metadata and not is_open
            if advances:
                current = Provenance(end - 1, epoch, timestamp)
            yield ProvenanceRun(start, end, current, advances)

    def problems_between(self, start: int, until: int) -> Problems:
        """Return the records from offset ``start`` to ``until`` (both inclusive) that were not applied to the image."""
        listed = self.problems[bisect_left(self._problems_at, start) : bisect_right(self._problems_at, until)]
        return Problems(listed, self._all_problems.unlisted_between(start, until))

    def snapshot_provenance(self, file: str) -> Provenance:
        """Return the last record in a snapshot, given its file's name: one that was passed, else the base."""
        passed = (checkpoint.provenance for checkpoint in self.checkpoints if checkpoint.file == file)
        return next(passed, self.base.provenance)

    def note_problems(self, offset: int, problems: Problems) -> None:
        """Note the problems that are new since the last call; ``problems`` are all those up to ``offset``."""
        self._all_problems = problems
        if len(problems) > len(self.problems):
            new = problems[len(self.problems) :]
            self.problems += new
            self._problems_at += [offset] * len(new)

    def note(self, family: str, key: object, offset: int, value: object) -> None:
        """Note that a key has a value (``None``: is removed) from an offset on."""
        if family not in self._cells:
            self._cells[family] = Cells(self._values, self._tombstones.setdefault(family, Tombstones(self._values)))
        self._cells[family].put(key, offset, value, self.base[family].get(key))

    def note_inner(self, family: str, key: object, name: object, offset: int, value: object) -> None:
        """As :meth:`note`, for ``name`` in the table of ``key``, in a family with two levels."""
        if family not in self._inner:
            self._inner[family] = {}
            self._tombstones.setdefault(family, Tombstones(self._values))
        cells = self._inner[family].get(key)
        if cells is None:
            cells = self._inner[family][key] = Cells(self._values, self._tombstones[family], (key,))
        cells.put(name, offset, value, self.base[family].get(key, {}).get(name))
        if not cells:
            del self._inner[family][key]

    def note_end(self, family: str, key: object, offset: int) -> None:
        """Note that the whole table of a key was removed at an offset, in a family with two levels."""
        for name in {*self.base[family].get(key, {}), *self._inner.get(family, {}).get(key, ())}:
            self.note_inner(family, key, name, offset, None)

    def has_two_keys(self, family: str) -> bool:
        """Whether values of the family were noted with two keys."""
        return family in self._inner

    def keys(self, family: str, until: int) -> set[Keys]:
        """Return the keys of every value that the log wrote or removed up to an offset."""
        below = self._inner.get(family, {}).items()
        written: set[Keys] = {(key, name) for key, cells in below for name in cells.keys_created_until(until)}
        if family in self._cells:
            written |= {(key,) for key in self._cells[family].keys_created_until(until)}
        return written.union(self._tombstones[family].keys(until) if family in self._tombstones else ())

    def versions(self, family: str, keys: Keys, until: int) -> Iterator[Version]:
        """Return the versions of a value that the log wrote up to an offset, newest first, removals included."""
        above, key = keys[:-1], keys[-1]
        cells = self._inner.get(family, {}).get(above[0]) if above else self._cells.get(family)
        if cells is None and family in self._tombstones:
            cells = Cells(self._values, self._tombstones[family], above)
        return iter(()) if cells is None else cells.versions(key, until)

    def every_key(self, family: str, until: int) -> set[Keys]:
        """As :meth:`keys`, together with the keys that existed before the log."""
        base = self.base[family]
        declared = families().get(family)
        if declared is not None and len(declared.levels) == 2:
            return self.keys(family, until).union((key, name) for key, below in base.items() for name in below)
        return self.keys(family, until).union((key,) for key in base)

    def timeline(self, family: str, keys: Keys, until: int) -> list[Version]:
        """Return all versions of a value up to an offset, oldest first; one from before the log is at :attr:`first`."""
        base = self.base.entry(family, keys)
        versions = [] if base is None else [(self.first, base)]
        return versions + list(self.versions(family, keys, until))[::-1]

    def table(self, family: str, offset: int) -> Table:
        """Return a family's table as of an offset."""
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
        """As :meth:`table`, for a family whose values were noted with two keys."""
        base, inner = self.base[family], self._inner[family]
        revived: dict[object, dict[object, Sequence[int]]] = {}
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
        """Return the names of all families that ever had a value."""
        return {*self.base.tables, *self._cells, *self._inner}


class CellsAt(Mapping[Any, Any]):
    """A table as of an offset, as a view of three sources, in this order: ``cells``; ``revived``, which are keys that
    were removed after the offset -> positions of their packed versions; and ``base``, the table before the log.
    """

    def __init__(self, base: Table, cells: Cells, revived: Mapping[object, Sequence[int]], offset: int) -> None:
        self._base = base
        self._cells = cells
        self._revived = revived
        self._offset = offset
        self._keys: list[object] | None = None

    def _value_of(self, key: object) -> Any:
        version = self._cells.at(key, self._offset)
        if version is not None:
            return version[1]
        older = self._revived.get(key)
        return self._base.get(key) if older is None else self._cells.packed(older, self._offset)

    def __getitem__(self, key: object) -> Any:
        value = self._value_of(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        holds = self._cells.holds(key, self._offset)
        return key in self._revived or key in self._base if holds is None else holds

    def is_empty(self) -> bool:
        """Whether the table has no keys; faster than its length."""
        return not any(key in self for key in self._all())

    def __iter__(self) -> Iterator[object]:
        if self._keys is None:
            self._keys = [key for key in self._all() if key in self]
        return iter(self._keys)

    def _all(self) -> Iterable[object]:
        """Yield every key once that may be in the table."""
        yield from self._base
        yield from (key for key in self._cells if key not in self._base)
        yield from (key for key in self._revived if key not in self._cells)

    def __len__(self) -> int:
        if self._keys is None:
            iter(self)
        return len(self._keys or ())


class TopicsAt(CellsAt):
    """The table of topics by id as of an offset; a topic is made when it is first asked for."""

    def __init__(self, base: Table, cells: Cells, revived: Mapping[object, Sequence[int]], offset: int) -> None:
        super().__init__(base, cells, revived, offset)
        self._cached: dict[object, Topic] = {}

    def __getitem__(self, key: object) -> Topic:
        topic = self._cached.get(key)
        if topic is None:
            recorded: Topic = super().__getitem__(key)
            topic = self._cached[key] = recorded.at(self._offset) if isinstance(recorded, RecordedTopic) else recorded
        return topic


class _Tables(Mapping[str, Table]):
    """The tables of an image as of an offset, each made when it is first asked for."""

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
    """A replayer of the log that notes in its :attr:`history` what each record changed."""

    needs_every_state = True

    def __init__(self, base: Image = EMPTY, start: int = 0) -> None:
        super().__init__(base, start=start)
        self.history = History(base, self.log, self.changes)
        self.history.checkpoints = self.checkpoints
        self._delta.touched = []

    def pass_checkpoint(self, checkpoint: LogCheckpoint, snapshot: Image) -> None:
        """As :meth:`Replayer.pass_checkpoint`; values that the snapshot changed are noted at its last offset."""
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
            touched.clear()  # including what noting itself touched
        self.history.note_problems(offset, self.problems)

    def _value(self, family: str, keys: Keys, offset: int) -> None:
        """Note the current value of a touch, or the removal of a value or of a whole table."""
        current = self._delta.peek(family).get(keys[0])
        if len(keys) == 2:
            self.history.note_inner(family, keys[0], keys[1], offset, (current or {}).get(keys[1]))
        elif isinstance(current, Entry) or family == NAMES:
            self.history.note(family, keys[0], offset, current)
        elif self.history.has_two_keys(family) or isinstance(self.history.base[family].get(keys[0]), Mapping):
            self.history.note_end(family, keys[0], offset)
        else:
            self.history.note(family, keys[0], offset, None)

    def _note_topic(self, keys: Keys, offset: int) -> None:
        """Note a topic that was created, removed, or changed for the first time since the snapshot."""
        history, topic_id = self.history, keys[0]
        is_there = topic_id in self._delta.peek(TOPICS)
        history.note(TOPICS, topic_id, offset, self._recorded(topic_id) if is_there else None)
        if len(keys) > 1:
            history.note(NAMES, keys[1], offset, self._delta.peek(NAMES).get(keys[1]))
