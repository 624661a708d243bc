"""Who wrote what stands there: for each value, and each field of one, the record that last changed it.

The last *change*, as in ``git blame``: a record that sets what was set already is not it. What the oldest snapshot
holds was there before the log begins: then only an offset is known that it is not later than.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from kshell.commands.base.record_types import RECORD_TYPE
from kshell.commands.base.result import Row
from kshell.commands.base.tables import Field
from kshell.commands.base.walk import walk
from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.history import History
from kshell.metadata.image import Family, Image, families
from kshell.metadata.names import decode_name
from kshell.metadata.partitions import Topic
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import Entry, Origin, Provenance, plain
from kshell.protocol.primitives import Uuid
from kshell.sources.describe import snapshot_named_by
from kshell.sources.snapshot import SnapshotFacts
from kshell.tree.difference import PROVENANCE
from kshell.tree.image import image_directory, iso
from kshell.tree.node import Leaf, StaticDirectory
from kshell.tree.paths import Segments, join, resolve
from kshell.tree.touched import paths

FIELDS = (
    Field("path", "string", "of the leaf"),
    Field("field", "string", "of the leaf's value; null for a value without fields"),
    Field("value", "json", "what it is"),
    Field("offset", "int64", "of the record that last set it; null where only a snapshot has it"),
    Field("epoch", "int32", "of that record"),
    Field("timestampMs", "int64", "of that record, in milliseconds since 1970"),
    Field("time", "string", "the same, ISO-8601 in UTC"),
    Field("type", RECORD_TYPE, "of that record"),
    Field("version", "int16", "of that record's type"),
    Field("effectiveOffset", "int64", "from where on it holds: later than offset in a metadata transaction"),
    Field("notLaterThan", "int64", "where only a snapshot has it: the last offset that the snapshot covers"),
    Field("snapshot", "string", "that snapshot"),
)
_NAMES = tuple(field.name for field in FIELDS)
_TOPIC_FACTS = ("id", "name")
Version = tuple[int, Any, Origin]
"""The offset from which it holds, the plain value (not redacted), the record that wrote it."""


class _Setter(NamedTuple):
    """The oldest version of a run of equal ones."""

    effective: int
    origin: Origin


class Blame:
    """Finds the records behind the leaves of one image."""

    def __init__(self, history: History, facts: SnapshotFacts | None, until: int, redaction: Redaction) -> None:
        self._history = history
        self._facts = facts
        self._until = until
        self._redaction = redaction
        self._image: Image = history.at(until)
        self._places: dict[str, dict[Segments, tuple[Any, ...]]] = {}

    def leaves(self, place: Segments) -> Iterator[tuple[Segments, Leaf]]:
        """The leaves at a place or below it. Raises NoSuchPathError."""
        root = StaticDirectory({"image": lambda: image_directory(self._image, self._redaction)})
        found = walk(place, resolve(root, place))
        return ((path, leaf) for path, leaf in found if isinstance(leaf, Leaf))

    def fields(self, path: Segments, leaf: Leaf) -> Iterator[Row]:
        """A row a field of a leaf; of a value without fields, one."""
        shown = leaf.value()
        if not isinstance(shown, dict):
            yield self.whole(path, leaf)
        elif path == PROVENANCE:
            yield from (self._provenance(name, value) for name, value in shown.items())
        else:
            versions = list(self._versions(path))
            for name, value in shown.items():
                setter = _last_change([(at, held.get(name), origin) for at, held, origin in versions])
                yield self._row(path, name, value, setter)

    def whole(self, path: Segments, leaf: Leaf) -> Row:
        """One row: the record that last changed anything in a leaf."""
        if path == PROVENANCE:
            return {**self._provenance("offset", leaf.value()["offset"]), "field": None, "value": leaf.value()}
        return self._row(path, None, leaf.value(), _last_change(self._versions(path)))

    # --- versions ------------------------------------------------------------------------------------------------

    def _versions(self, path: Segments) -> Iterator[Version]:
        """What a leaf held, newest first, back to where it was not there."""
        if path[:2] == ("image", "topics"):
            yield from self._topic_versions(*path[2:5])
            return
        for family in families().values():
            if path[: 1 + len(family.path)] == ("image", *family.path):
                keys = self._keys(family).get(path)
                if keys is not None:
                    yield from self._entry_versions(family, keys)

    def _keys(self, family: Family) -> dict[Segments, tuple[Any, ...]]:
        if family.name not in self._places:
            found: dict[Segments, tuple[Any, ...]] = {}
            for key, held in self._image[family.name].items():
                below = [(key,)] if isinstance(held, Entry) else [(key, name) for name in held]
                found |= {path: keys for keys in below for path in paths(Touch(family.name, keys))}
            self._places[family.name] = found
        return self._places[family.name]

    def _entry_versions(self, family: Family, keys: tuple[Any, ...]) -> Iterator[Version]:
        base: Any = self._history.base[family.name]
        for key in keys:
            base = (base or {}).get(key)
        for since, entry in self._history.versions(family.name, keys, self._until):
            if entry is None:
                return
            yield since, family.plain(entry.value), entry.origin
        if base is not None:
            yield -1, family.plain(base.value), base.origin

    def _topic_versions(self, view: str, name: str, leaf: str) -> Iterator[Version]:
        topic_id = self._image[NAMES][decode_name(name)] if view == "byName" else Uuid.parse(name)
        held: Topic = self._image[TOPICS][topic_id]
        if leaf in _TOPIC_FACTS:
            made = self._effective(topic_id, held.origin)
            yield made, held.name if leaf == "name" else str(held.id), held.origin
            return
        recorded = self._recorded(topic_id)
        number = int(leaf)
        if recorded is not None:
            for effective, entry in recorded.versions(number, self._until):
                yield effective, plain(entry.value), entry.origin
        first = held.partition(number) if recorded is None else recorded.first(number)
        if first is not None:
            yield -1, plain(first.value), first.origin

    def _effective(self, topic_id: Uuid, origin: Origin) -> int:
        """Since when a topic is there: of one of the snapshot, nothing was noted until it was changed."""
        return -1 if origin.place.in_snapshot else self._newest(topic_id)[0]

    def _newest(self, topic_id: Uuid) -> tuple[int, Topic | None]:
        return next(self._history.versions(TOPICS, (topic_id,), self._until), (-1, None))

    def _recorded(self, topic_id: Uuid) -> RecordedTopic | None:
        held = self._newest(topic_id)[1]
        return held if isinstance(held, RecordedTopic) else None

    # --- rows ----------------------------------------------------------------------------------------------------

    def _row(self, path: Segments, field: str | None, value: Any, setter: _Setter | None) -> Row:
        row: dict[str, Any] = dict.fromkeys(_NAMES) | {"path": join(path), "field": field, "value": value}
        if setter is None:
            return row
        origin = setter.origin
        row |= {"type": origin.record_type, "version": origin.version}
        if origin.place.in_snapshot:
            facts = self._facts
            return row | {
                "notLaterThan": facts.end_offset - 1 if facts is not None else None,
                "snapshot": snapshot_named_by(origin.place.file),
            }
        return row | {
            "offset": origin.offset,
            "epoch": origin.place.epoch,
            "timestampMs": origin.timestamp,
            "time": iso(origin.timestamp),
            "effectiveOffset": setter.effective,
        }

    def _provenance(self, field: str, value: Any) -> Row:
        """The first offset from where on the field of the provenance is what it is."""
        row = dict.fromkeys(_NAMES) | {"path": join(PROVENANCE), "field": field, "value": value}
        log, at = self._history.log, self._history.provenance
        first = min(self._until, log.end - 1)
        if field == "epoch":  # it never falls
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
    """The oldest of the newest versions that are equal.

    Versions that take effect together, of one metadata transaction, count by what they come to: a value that is set
    and set back in it never changed.
    """
    found: _Setter | None = None
    present: Any = None
    set_back = False
    for effective, value, origin in versions:
        together = found is not None and effective == found.effective
        if found is None or (value == present and not (together and set_back)):
            found, present, set_back = _Setter(effective, origin), value, False
        elif together:
            set_back = set_back or value != present
        else:
            break
    return found
