"""Records of the log as rows, with the paths that they touch: ``dump``, ``log`` and ``follow`` have the same rows.

Also record types as users name them, and which records cannot touch a path, so that most are not even decoded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.declaration import Flag
from kshell.engine.result import TIMESTAMP, Result, Row
from kshell.engine.walk import names_and_values
from kshell.errors import EXIT_DATA, CommandError, DataError, UsageError, did_you_mean
from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import EMPTY, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.names import decode_name
from kshell.metadata.partition_changes import PARTITION, PARTITION_CHANGE, TOPIC_ID
from kshell.metadata.readable import readable
from kshell.metadata.records import HEAD_SIZE, decode_value, record_types
from kshell.metadata.tracking import Tracker
from kshell.metadata.values import BatchPosition, Origin, plain
from kshell.protocol.batches import RawRecord
from kshell.protocol.control import CONTROL_TYPES, control_name
from kshell.protocol.primitives import Buffer, Uuid
from kshell.protocol.verify import USUAL
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.records import DecodedRecords, LogRecord, log_records
from kshell.sources.directory.source import snapshot_named
from kshell.tables.declaration import Field, columns
from kshell.tables.enumeration import Enumeration
from kshell.tree.globs import is_glob, unescape
from kshell.tree.image import iso
from kshell.tree.paths import Segments, is_under, join, paths, split

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.directory.records import Wanted

_HEAD = 3


def type_names() -> list[str]:
    """Every type's name as ``dump`` prints it, control records included."""
    return sorted([kind.name for kind in record_types().values()] + [kind.name for kind in CONTROL_TYPES.values()])


RECORD_TYPE = Enumeration(type_names, ("UNKNOWN", "UNKNOWN_{}", "UNKNOWN_CONTROL", "UNKNOWN_CONTROL_{}"))
"""The column type of a record's type; a type that is not known has a number for its name."""


def record_type(text: str) -> str:
    """The type that was meant: in any case, with or without ``_RECORD``. Raises UsageError, which proposes some."""
    name = text.upper().replace("-", "_")
    names = type_names()
    for candidate in (name, f"{name}_RECORD"):
        if candidate in names:
            return candidate
    if RECORD_TYPE.has(name):
        return name
    listed = "`help dump` says where the types are listed"
    within = [type_name for type_name in names if name in type_name][:3]
    if within:
        hint: str | None = f"did you mean {' or '.join(within)}?"
    else:
        hint = did_you_mean(name, names) or did_you_mean(f"{name}_RECORD", names, listed)
    raise UsageError(f"{text}: no record has that type", hint=hint)


def complete_record_type(session: Session, typed: str) -> Iterable[str]:
    """The types that begin like what was typed."""
    return [name for name in type_names() if name.startswith(typed.upper())]


def snapshot_to_read(listing: Listing, name: str | None) -> SnapshotFile | None:
    """The snapshot that a line names; the newest one where there is no log.

    Args:
        listing: what the source has.
        name: ``END_OFFSET-EPOCH``; ``None`` where the line names none.

    Returns:
        The snapshot, or ``None`` for the log.

    Raises:
        CommandError: there is no such snapshot.
    """
    if name is None:
        return None if listing.has_log else listing.snapshots[-1]
    found = snapshot_named(listing, name)
    if found is None:
        there = ", ".join(map(snapshot_id, listing.snapshots))
        raise CommandError(f"{name}: no such snapshot", hint=f"there is {there}" if there else "there are none")
    return found


def _complete_snapshot(session: Session, typed: str) -> Iterable[str]:
    return [name for name in map(snapshot_id, session.source.listing().snapshots) if name.startswith(typed)]


SNAPSHOT_FLAG = Flag(
    ("--snapshot",),
    "the records of a snapshot, END_OFFSET-EPOCH, and not of the log",
    metavar="ID",
    complete=_complete_snapshot,
)
TYPE_FLAG = Flag(
    ("--type",),
    "only records of that type; may be given several times",
    metavar="TYPE",
    convert=record_type,
    complete=complete_record_type,
    repeat=True,
)


class TypeNames:
    """The names of records' types, found by looking at no more than a record's head."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def of(self, raw: RawRecord, control: bool) -> str:
        """The type of a record."""
        if control:
            return control_name(raw.key)
        value = raw.value or b""
        name = self._names.get(value[:_HEAD])
        if name is None:
            name = decode_value(value).name
            if value[:_HEAD].isascii():  # three whole varints: the name hangs on nothing else
                self._names[value[:_HEAD]] = name
        return name


def only(names: frozenset[str]) -> Wanted:
    """A test for records of these types."""
    type_names = TypeNames()
    return lambda raw, control: type_names.of(raw, control) in names


TOPIC = 2
ONE_FAMILY = {
    PARTITION: TOPICS,
    4: "configs",
    PARTITION_CHANGE: TOPICS,
    11: "scram",
    14: "clientQuotas",
    15: "producerIds",
    17: "brokers",
    18: "acls",
    19: "acls",
    20: None,
    22: "scram",
}
"""Api keys of the types that a log can be full of -> the one family that they read and write; none for NoOps."""
_TOPICS: Segments = ("image", "topics")


class Concern:
    """Whether a record must be looked at to know what touches a place. Never says no without cause.

    Must be asked about each record before the ``tracker`` that the answers are for is given it.
    """

    def __init__(self, place: Segments) -> None:
        self._needless = {key for key, family in ONE_FAMILY.items() if not _is_near(family, place)}
        self._name: str | None = None
        self._id: bytes | None = None
        self.tracker: Tracker | None = None
        if place[:2] == _TOPICS and len(place) > 3:
            self._watch(place[2], place[3])

    def _watch(self, view: str, segment: str) -> None:
        """One topic alone, by id or by name."""
        if view == "byName":
            self._name = decode_name(segment)
        else:
            try:
                self._id = bytes(Uuid.parse(segment))
            except ValueError:
                self._id = b""  # no topic has it

    def __call__(self, raw: RawRecord, control: bool) -> bool:
        value = raw.value or b""
        if control or len(value) < HEAD_SIZE or value[0] != 1 or value[2] > 0x7F:
            return True
        if value[1] in self._needless:
            return False
        if value[1] not in (PARTITION, PARTITION_CHANGE):
            return True
        topic_id = value[TOPIC_ID]
        if self._id is not None:
            return topic_id == self._id
        return self._name is None or self.tracker is None or self.tracker.topic_name(topic_id) == self._name

    def select(self, region: Buffer, values: array[int]) -> Iterator[int]:
        """The records of a batch that must be looked at, found without making them.

        Args:
            region: the records, back to back.
            values: the first byte and the end of each value, in turn.

        Returns:
            The indexes of the values' first bytes.
        """
        needless, wanted_id, name, tracker = self._needless, self._id, self._name, self.tracker
        name_of = None if tracker is None else tracker.topic_name
        bounds = iter(values)
        for index, (at, end) in enumerate(zip(bounds, bounds, strict=True)):
            if end - at >= HEAD_SIZE and region[at] == 1 and region[at + 2] <= 0x7F:
                kind = region[at + 1]
                if kind in needless:
                    continue
                if kind in (PARTITION, PARTITION_CHANGE):
                    topic_id = region[at + TOPIC_ID.start : at + TOPIC_ID.stop]
                    if wanted_id is not None:
                        if topic_id != wanted_id:
                            continue
                    elif name is not None and name_of is not None and name_of(topic_id) not in (name, None):
                        continue
                elif kind == TOPIC:
                    name_of = None  # what follows may be of the topic that is made here
            yield 2 * index


def _is_near(family: str | None, place: Segments) -> bool:
    if family is None:
        return False
    return is_under(_TOPICS if family == TOPICS else ("image", *families()[family].path), place)


FIELDS = (
    Field("offset", "int64", "of the record"),
    Field("epoch", "int32", "the leader's, when it was written"),
    Field("timestampMs", "int64", "when, in milliseconds since 1970"),
    Field("type", RECORD_TYPE, "the record's"),
    Field("version", "int16", "of the record's type"),
    Field("data", "json", "the record's fields, as kafka-dump-log prints them"),
)
COLUMNS = columns(FIELDS)
TIME = Field("time", TIMESTAMP, "the same, ISO-8601 in UTC")
LOG_FIELDS = (*FIELDS[:3], TIME, *FIELDS[3:])
"""Those of `log`, which people read; `dump` and `follow` are for programs, and as short as can be."""
NO_OP = "NO_OP_RECORD"


def row_of(session: Session, record: LogRecord) -> Row:
    """A record as the row of an answer, secrets hidden."""
    decoded = record.decoded
    return {
        "offset": record.offset,
        "epoch": record.epoch,
        "timestampMs": record.timestamp,
        "type": decoded.name,
        "version": decoded.version,
        "data": session.redaction.record(decoded),
    }


class Touched(NamedTuple):
    """A place of the tree that a record touches, and the values there before and after it; ``None`` for nothing."""

    path: Segments
    touch: Touch
    old: Any = None
    new: Any = None


def row_at(session: Session, record: LogRecord, touched: Touched | None) -> Row:
    """The same with where the tree shows what the record touches and what changed there, for users."""
    row = {**row_of(session, record), "time": iso(record.timestamp)}
    if touched is None:
        return {**row, "path": None, "change": ""}
    return {**row, "path": join(touched.path), "change": _change(session, touched)}


def _change(session: Session, touched: Touched) -> str:
    """``1000 -> 2000``, or the fields that changed; nothing where only the record's own fields say all."""
    if touched.old == touched.new:
        return ""
    old, new = (_displayed(session, touched.touch, value) for value in (touched.old, touched.new))
    if touched.old is None:
        return "" if isinstance(new, dict | list) else f"set to {names_and_values(new)}"
    if touched.new is None:
        return f"removed, was {names_and_values(old)}"
    return ", ".join(changed_parts(old, new))


def _displayed(session: Session, touch: Touch, value: Any) -> Any:
    """A value as the tree shows it, secrets hidden."""
    family = families().get(touch.family)
    if value is None:
        return None
    if touch == Touch("features", (FEATURE,)):
        return version_name(value)
    if family is None:
        return plain(value)
    if family.config_key is not None:
        return session.redaction.config(*family.config_key(touch.keys), value)
    return session.redaction.fields(family.plain(value), family.secret)


def changed_parts(old: Any, new: Any) -> Iterator[str]:
    """``field old -> new`` for each field that differs; of a value without fields, ``old -> new``.

    Of a field that is an object on both sides only the keys that differ: ``supportedFeatures.metadata.version``. A time
    in milliseconds is left out beside its twin (``time``, ``timeMs``).
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        yield f"{_field(old)} -> {_field(new)}"
        return
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        twin = name.removesuffix("Ms")
        if before == after or (twin != name and twin in old and twin in new):
            continue
        if isinstance(before, dict) and isinstance(after, dict) and before and after:
            yield from (f"{name}.{part}" for part in changed_parts(before, after))
        else:
            yield f"{name} {_field(before)} -> {_field(after)}"


def _field(value: Any) -> str:
    """An object in braces: what follows it is not its own."""
    text = names_and_values(value)
    return f"{{{text}}}" if isinstance(value, dict) and value else text


def when(row: Row) -> str:
    """Return a row's time in readable form."""
    return str(iso(row["timestampMs"]) or row["timestampMs"])


def summary(row: Row) -> str:
    """Summarize a row for users: type, path, and what changed, else the record's fields with Kafka's names."""
    where = f" {row['path']}" if row["path"] else ""
    if row["change"]:
        return f"{row['type']}{where}: {row['change']}"
    return f"{row['type']}{where} {names_and_values(readable(row['type'], row['data']))}"


def place_of(session: Session, path: str | None, command: str, hint: str) -> Segments | None:
    """The one place of the tree that a command was asked about. Raises UsageError for a glob, with the hint."""
    if path is None:
        return None
    if is_glob(path):
        raise UsageError(f"{path}: {command} takes one path, without a glob", hint=hint)
    return split(unescape(path), session.cwd)


Found = Iterator[tuple[LogRecord, list[Touched]]]
"""Records with the places of the tree that each touches."""


def with_paths(
    session: Session, records: DecodedRecords, start: int, concern: Concern | None = None, *, values: bool = False
) -> Found:
    """Each record with the places of the tree that it touches, and (``values``) what stood there.

    Raises DataError where what came before is not known; without a ``concern``, places that only an image can tell are
    left out then.

    ``records`` must hold every record from ``start`` on, or every one that ``concern`` says yes to. Those before the
    oldest snapshot that the log joins are told by what that snapshot knows: their topics have names only if they are
    still there.
    """
    try:
        tracker, again_at = _tracker(session, start, values=values)
    except DataError:
        if concern is not None:
            raise
        tracker, again_at = Tracker(EMPTY, keeps_old=values), None
    if concern is not None:
        concern.tracker = tracker if again_at is None else None
    for record in records:
        if again_at is not None and record.offset >= again_at:
            tracker, again_at = _tracker(session, again_at, values=values)[0], None
            if concern is not None:
                concern.tracker = tracker
        yield record, touched_paths(tracker, record)


def touched_paths(tracker: Tracker, record: LogRecord) -> list[Touched]:
    """The places of the tree that the next record touches, the most relevant first."""
    decoded = record.decoded
    place = BatchPosition(record.file, record.position, record.epoch, False)
    touched = tracker.touched(decoded, Origin(record.offset, record.timestamp, decoded.name, decoded.version, place))
    values = ((touch, tracker.values(touch)) for touch in touched)
    return [Touched(path, touch, old, new) for touch, (old, new) in values for path in paths(touch)]


def _tracker(session: Session, start: int, *, values: bool) -> tuple[Tracker, int | None]:
    """A tracker for records from ``start`` on, and where it must be created from scratch."""
    listing = session.source.listing(full_log=True)
    first = listing.segments[0].base_offset or 0 if listing.segments else 0
    if max(start, first) <= listing.unseen:
        return Tracker(EMPTY, keeps_old=values), None
    joined = next((file.end_offset for file in listing.snapshots if file.end_offset and file.end_offset >= first), None)
    if joined is None and listing.directory is None:
        return Tracker(EMPTY, keeps_old=values), None  # a lone segment: names of what came before are not known
    begin = max(start, 0 if first <= listing.unseen else joined or first)
    before = session.reshape(point=str(begin - 1)).loaded
    tracker = Tracker(before.image, keeps_old=values)
    if before.open_transaction is not None:  # left out of the image, and yet what comes next builds on it
        for record in log_records(session.source, start=before.open_transaction, until=begin - 1):
            touched_paths(tracker, record)
    return tracker, begin if begin > max(start, first) else None


def conclude(session: Session, records: DecodedRecords, result: Result) -> None:
    """After the last record: notes for the user, and damage. Raises DataError for that."""
    session.remarks += end_notes(records)
    malformed = malformed_records(records)
    if malformed is not None:
        # Not raised: a format that prints only what it has whole would then show nothing.
        session.remarks.append(malformed.message)
        result.exit_code = EXIT_DATA
    if records.damage:
        raise _all_of(records.damage)


def end_notes(records: DecodedRecords) -> list[str]:
    """After the last record: what the user should know though nothing is wrong."""
    if records.torn is None:
        return records.notes
    path, torn = records.torn
    return [*records.notes, torn.note(path) + USUAL]


def malformed_records(records: DecodedRecords) -> DataError | None:
    """After the last record: those that break their declaration; ``None`` if there are none."""
    if records.first_malformed is None:
        return None
    more = f" (and {records.malformed - 1} more malformed)" if records.malformed > 1 else ""
    return DataError(records.first_malformed + more)


def _all_of(damage: list[DataError]) -> DataError:
    """One error for all damage that was met."""
    if len(damage) == 1:
        return damage[0]
    return DataError("\n".join(error.message for error in damage), hint=damage[0].hint)
