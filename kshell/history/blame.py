"""``blame``: for each value of the image, and each field of a value, the log record that last changed it.

Like ``git blame``, it names the last *change*: a record that sets a value to what it already was is passed over. A
value that comes from the oldest snapshot was set before the log begins: instead of an offset, its row has
``notLaterThan``, the last offset that the snapshot covers. A history comes in; rows (:data:`FIELDS`) go out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.result import TIMESTAMP, Row
from kshell.engine.walk import walk
from kshell.history.diff import ADDED, CHANGE, CHANGED, PROVENANCE, REMOVED
from kshell.history.records import RECORD_TYPE, displayed
from kshell.metadata.checkpoint import ONLY_LOG, Disagreement
from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.history import History
from kshell.metadata.image import Family, Image, Keys, families
from kshell.metadata.names import decode_name
from kshell.metadata.partitions import Topic
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Entry, Origin, Provenance, plain
from kshell.protocol.primitives import Uuid
from kshell.sources.directory.describe import snapshot_named_by
from kshell.sources.directory.records import LogRecord
from kshell.tables.declaration import Field
from kshell.tree.image import image_directory, iso
from kshell.tree.node import Directory, Leaf, StaticDirectory
from kshell.tree.paths import Segments, is_under, join, paths, resolve
from kshell.tree.paths import walk as node_at

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

FIELDS = (
    Field("path", "string", "of the leaf"),
    Field("field", "string", "of the leaf's value; null for a value without fields"),
    Field("value", "json", "what it is"),
    Field("offset", "int64", "of the record that last set it; null where only a snapshot has it"),
    Field("epoch", "int32", "of that record"),
    Field("timestampMs", "int64", "of that record, in milliseconds since 1970"),
    Field("time", TIMESTAMP, "the same, ISO-8601 in UTC"),
    Field("type", RECORD_TYPE, "of that record"),
    Field("version", "int16", "of that record's type"),
    Field("effectiveOffset", "int64", "from where on it holds: later than offset in a metadata transaction"),
    Field("notLaterThan", "int64", "where only a snapshot has it: the last offset that the snapshot covers"),
    Field("snapshot", "string", "that snapshot"),
    Field("change", CHANGE, "added, changed or removed, by that record; null where only a snapshot has it"),
    Field("old", "json", "what the value was before; null if it was not there"),
)
_NAMES = tuple(field.name for field in FIELDS)
_TOPIC_FACTS = ("id", "name")
Version = tuple[int, Any, Origin]
"""A version of a value: the offset at which it took effect (-1: before the log), the plain value with its secrets,
and the origin of the record that wrote it."""


class _Setter(NamedTuple):
    """The version that last changed a value (``effective`` -1: before the log), and the value that it replaced."""

    effective: int
    origin: Origin
    old: object = None
    was_there: bool = False
    """Whether there was a value before the change. A field of such a value may itself be null, so ``old`` does not
    show it."""


class Removed(NamedTuple):
    """A removed entry: its path, the offset at which the removal took effect, and its last value, with secrets hidden.

    ``snapshot`` is the file of the snapshot without the entry, if no record removed it.
    """

    path: Segments
    effective: int
    old: object
    snapshot: str | None


class Blame:
    """Finds the records that last changed the leaves of the image at offset ``until``.

    Of a leaf (:meth:`leaf`), ask for its :meth:`fields`; of a directory, for its :meth:`leaves` and the
    :meth:`leaf_row` of each. :meth:`removed` lists what is no longer there.
    """

    def __init__(self, history: History, until: int, redaction: Redaction) -> None:
        self._history = history
        self._until = until
        self._redaction = redaction
        self._image: Image = history.at(until)
        self._places: dict[str, dict[Segments, Keys]] = {}

    def _root(self) -> Directory:
        return StaticDirectory({"image": lambda: image_directory(self._image, self._redaction)})

    def exists(self, place: Segments) -> bool:
        """Whether the tree has a node at the path."""
        return node_at(self._root(), place) is not None

    def leaf(self, place: Segments) -> Leaf | None:
        """Return the leaf at a path; ``None`` if a directory or nothing is there."""
        node = node_at(self._root(), place)
        return node if isinstance(node, Leaf) else None

    def leaves(self, place: Segments) -> Iterator[tuple[Segments, Leaf]]:
        """Return the leaves at a path or below it, each with its own path. Raises NoSuchPathError."""
        nodes = walk(place, resolve(self._root(), place))
        return ((path, leaf) for path, leaf in nodes if isinstance(leaf, Leaf))

    def fields(self, path: Segments, leaf: Leaf) -> Iterator[Row]:
        """Yield one row per field of a leaf, or a single row if the leaf's value has no fields."""
        content = leaf.value()
        if not isinstance(content, dict):
            yield self.leaf_row(path, leaf)
        elif path == PROVENANCE:
            yield from (self._provenance(name, value) for name, value in content.items())
        else:
            versions = list(self._versions(path))
            for name, value in content.items():
                setter = _last_change([(at, fields.get(name), origin) for at, fields, origin in versions])
                yield self._row(path, name, value, setter)

    def leaf_row(self, path: Segments, leaf: Leaf) -> Row:
        """Return one row for a leaf as a whole, with the record that last changed any part of its value."""
        if path == PROVENANCE:
            return {**self._provenance("offset", leaf.value()["offset"]), "field": None, "value": leaf.value()}
        return self._row(path, None, leaf.value(), _last_change(self._versions(path)))

    # --- versions ------------------------------------------------------------------------------------------------

    def _versions(self, path: Segments) -> Iterator[Version]:
        """Yield the versions of a leaf, newest first, back to its creation or to the state before the log."""
        if path[:2] == ("image", "topics"):
            yield from self._topic_versions(*path[2:5])
            return
        family, keys = self._entry(path)
        if family is not None:
            yield from self._entry_versions(family, keys)

    def _entry(self, path: Segments) -> tuple[Family | None, Keys]:
        """Return the family and the keys of the entry at a path; ``(None, ())`` for a path of no family."""
        for family in families().values():
            if path[: 1 + len(family.path)] == ("image", *family.path):
                keys = self._keys(family).get(path)
                if keys is not None:
                    return family, keys
        return None, ()

    # --- removed entries -----------------------------------------------------------------------------------------

    def removed(self, place: Segments) -> list[Removed]:
        """Return the entries at a path or below it that were removed, in the order of their removal.

        Topics are not entries of a family and are left out: `log` shows their removal.
        """
        removals: list[Removed] = []
        for family in families().values():
            if not is_under(("image", *family.path), place):
                continue
            present = self._keys(family).values()
            removed_keys = self._history.keys(family.name, self._until).difference(present)
            for keys in removed_keys:
                (path, *_) = paths(Touch(family.name, keys)) or [()]
                if path[: len(place)] == place:
                    removals += self._removal(family, keys, path)
        return sorted(removals, key=lambda entry: (entry.effective, entry.path))

    def _removal(self, family: Family, keys: Keys, path: Segments) -> Iterator[Removed]:
        """Yield the removal of the entry at some keys, if its newest version is one and an earlier value is known."""
        versions = self._history.versions(family.name, keys, self._until)
        effective, present = next(versions, (-1, None))
        if effective < 0 or present is not None:
            return
        base = self._history.base.entry(family.name, keys)
        old = next((entry for _, entry in versions), base)
        if old is not None:
            snapshot = self._passed(Touch(family.name, keys), effective)
            value = displayed(self._redaction, family, keys, family.plain(old.value))
            yield Removed(path, effective, value, snapshot)

    def _passed(self, touch: Touch, offset: int) -> str | None:
        """Return the file of the snapshot that ends at ``offset`` without a value that the log before has, if any."""
        missing = Disagreement(touch, ONLY_LOG)
        checkpoints = (checkpoint for checkpoint in self._history.checkpoints if checkpoint.provenance.offset == offset)
        return next((checkpoint.file for checkpoint in checkpoints if missing in checkpoint.disagreements), None)

    def row_of_removal(self, removed: Removed, record: LogRecord | None) -> Row:
        """Return the row of a removed entry; ``record`` is the log record at the offset of the removal, if any."""
        row = dict.fromkeys(_NAMES) | {"path": join(removed.path), "change": REMOVED, "old": removed.old}
        if removed.snapshot is not None:
            return row | {"notLaterThan": removed.effective, "snapshot": snapshot_named_by(removed.snapshot)}
        log = self._history.log
        time_ms = log.timestamp(removed.effective)
        return row | {
            "offset": removed.effective,
            "epoch": log.place(removed.effective).epoch,
            "timestampMs": time_ms,
            "time": iso(time_ms),
            "type": None if record is None else record.decoded.name,
            "version": None if record is None else record.decoded.version,
            "effectiveOffset": removed.effective,
        }

    def _keys(self, family: Family) -> dict[Segments, Keys]:
        """Return path -> keys of every entry that a family has in the image. Kept for the next call."""
        if family.name not in self._places:
            keys_by_path: dict[Segments, Keys] = {}
            for key, entries in self._image[family.name].items():
                below = [(key,)] if isinstance(entries, Entry) else [(key, name) for name in entries]
                keys_by_path |= {path: keys for keys in below for path in paths(Touch(family.name, keys))}
            self._places[family.name] = keys_by_path
        return self._places[family.name]

    def _entry_versions(self, family: Family, keys: Keys) -> Iterator[Version]:
        base = self._history.base.entry(family.name, keys)
        for since, entry in self._history.versions(family.name, keys, self._until):
            if entry is None:
                return
            yield since, family.plain(entry.value), entry.origin
        if base is not None:
            yield -1, family.plain(base.value), base.origin

    def _topic_versions(self, view: str, name: str, leaf: str) -> Iterator[Version]:
        """Yield the versions of a topic's leaf: ``leaf`` is ``id``, ``name`` or a partition's number."""
        topic_id = self._image[NAMES][decode_name(name)] if view == "byName" else Uuid.parse(name)
        topic: Topic = self._image[TOPICS][topic_id]
        if leaf in _TOPIC_FACTS:
            since = self._effective(topic_id, topic.origin)
            yield since, topic.name if leaf == "name" else str(topic.id), topic.origin
            return
        recorded = self._recorded(topic_id)
        number = int(leaf)
        if recorded is not None:
            for effective, entry in recorded.versions(number, self._until):
                yield effective, plain(entry.value), entry.origin
        first = topic.partition(number) if recorded is None else recorded.first(number)
        if first is not None:
            yield -1, plain(first.value), first.origin

    def _effective(self, topic_id: Uuid, origin: Origin) -> int:
        """Return the offset of a topic's creation; -1 if the oldest snapshot already has the topic."""
        return -1 if origin.place.in_snapshot else self._newest(topic_id)[0]

    def _newest(self, topic_id: Uuid) -> tuple[int, Topic | None]:
        """Return offset and value of a topic's newest version; ``(-1, None)`` if the log has no record of it."""
        return next(self._history.versions(TOPICS, (topic_id,), self._until), (-1, None))

    def _recorded(self, topic_id: Uuid) -> RecordedTopic | None:
        newest = self._newest(topic_id)[1]
        return newest if isinstance(newest, RecordedTopic) else None

    # --- rows ----------------------------------------------------------------------------------------------------

    def _row(self, path: Segments, field: str | None, value: object, setter: _Setter | None) -> Row:
        row: JsonObject = dict.fromkeys(_NAMES) | {"path": join(path), "field": field, "value": value}
        if setter is None:
            return row
        origin = setter.origin
        row |= {"type": origin.record_type, "version": origin.version}
        if origin.place.in_snapshot:
            snapshot = self._history.snapshot_provenance(origin.place.file)
            return row | {
                "notLaterThan": snapshot.offset if snapshot.offset >= 0 else None,
                "snapshot": snapshot_named_by(origin.place.file),
            }
        return row | {
            "offset": origin.offset,
            "epoch": origin.place.epoch,
            "timestampMs": origin.timestamp,
            "time": iso(origin.timestamp),
            "effectiveOffset": setter.effective,
            "change": CHANGED if setter.was_there else ADDED,
            "old": self._redacted(path, field, setter.old),
        }

    def _redacted(self, path: Segments, field: str | None, old: object) -> Any:
        """Return the value before a change with its secrets hidden."""
        family, keys = self._entry(path)
        if family is None or old is None:
            return old
        if field is not None:
            return self._redaction.fields({field: old}, family.secret)[field]
        return displayed(self._redaction, family, keys, old)

    def _provenance(self, field: str, value: int) -> Row:
        """Return the row of a field of the provenance, with the first offset that gave it its present value."""
        row = dict.fromkeys(_NAMES) | {"path": join(PROVENANCE), "field": field, "value": value}
        log, at = self._history.log, self._history.provenance
        first = min(self._until, log.end - 1)
        if field == "epoch":  # leader epochs never decrease along the log: a binary search finds the first offset
            base = self._history.base.provenance
            if base.epoch == value and base.offset >= 0:
                return row | {"notLaterThan": base.offset}
            first = bisect_left(range(first + 1), value, lo=log.start, key=lambda offset: at(offset).epoch)
        else:
            number = Provenance._fields.index("offset" if field == "offset" else "timestamp")
            while first > log.start and at(first - 1)[number] == at(first)[number]:
                first -= 1
        last = at(first)
        if last.offset < log.start:
            return row | {"notLaterThan": last.offset} if last.offset >= 0 else row
        return row | {
            "offset": last.offset,
            "epoch": last.epoch,
            "timestampMs": last.timestamp,
            "time": iso(last.timestamp),
            "effectiveOffset": first,
        }


def _last_change(versions: Iterator[Version] | list[Version]) -> _Setter | None:
    """Return the last change of a value, given its versions, newest first; ``None`` if there are none.

    Equal versions in a row count as one, from the oldest of them on. Versions that took effect at the same offset
    belong to one metadata transaction and count by their result: a value that the transaction sets and sets back is
    unchanged.
    """
    setter: _Setter | None = None
    present: object = None
    set_back = False
    for effective, value, origin in versions:
        together = setter is not None and effective == setter.effective
        if setter is None or (value == present and not (together and set_back)):
            setter, present, set_back = _Setter(effective, origin), value, False
        elif together:
            set_back = set_back or value != present
        else:
            return setter._replace(old=value, was_there=True) if setter is not None else None
    return setter
