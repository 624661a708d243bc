"""Log records as rows, with the paths of the tree that they touch: shared by ``dump``, ``log`` and ``follow``.

Decoded records come in; rows with the columns :data:`FIELDS` go out. The module also has the names of record
types as users type them, and :class:`PathRecordFilter`, which finds records that cannot touch a path, so that most of a
log need not be decoded.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kshell.engine.declaration import Flag
from kshell.engine.result import TIMESTAMP, Result, Row
from kshell.engine.walk import names_and_values
from kshell.errors import EXIT_DATA, CommandError, DataError, OutOfReachError, UsageError, did_you_mean
from kshell.metadata.delta import Touch
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import EMPTY, Family, Keys, families
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.names import decode_name
from kshell.metadata.partition_changes import PARTITION, PARTITION_CHANGE, TOPIC_ID
from kshell.metadata.readable import readable
from kshell.metadata.records import HEAD_SIZE, decode_value, record_types
from kshell.metadata.redaction import Redaction
from kshell.metadata.tracking import Tracker
from kshell.metadata.values import BatchPosition, Origin, plain
from kshell.protocol.batches import RawRecord
from kshell.protocol.control import CONTROL_TYPES, control_name
from kshell.protocol.primitives import Buffer, Uuid
from kshell.protocol.verify import USUAL
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.records import DecodedRecords, LogRecord, log_records
from kshell.sources.directory.source import ATTEMPTS, snapshot_named
from kshell.tables.declaration import Field, columns
from kshell.tables.enumeration import Enumeration
from kshell.tree.image import iso
from kshell.tree.paths import Segments, is_under, join, paths

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.sources.directory.records import Wanted

T = TypeVar("T")
_TYPE_BYTES = 3


def type_names() -> list[str]:
    """Return the name of every record type as ``dump`` prints it, control records included, sorted."""
    return sorted([kind.name for kind in record_types().values()] + [kind.name for kind in CONTROL_TYPES.values()])


RECORD_TYPE = Enumeration(type_names, ("UNKNOWN", "UNKNOWN_{}", "UNKNOWN_CONTROL", "UNKNOWN_CONTROL_{}"))
"""The column type of record types. A type that kshell does not know is named by its number."""


def record_type(text: str) -> str:
    """Return the type that a user typed, in any case, with or without ``_RECORD``. Raises UsageError."""
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
    """Complete a record type."""
    return [name for name in type_names() if name.startswith(typed.upper())]


def snapshot_to_read(listing: Listing, name: str | None) -> SnapshotFile | None:
    """Return the snapshot whose records a command shows, or ``None`` if it shows those of the log.

    Without a name that is the log if there is one, else the newest snapshot.

    Args:
        listing: the snapshots and segments of the source.
        name: ``END_OFFSET-EPOCH`` as typed; ``None`` if none was typed.

    Raises:
        CommandError: there is no such snapshot.
    """
    if name is None:
        return None if listing.has_log else listing.snapshots[-1]
    snapshot = snapshot_named(listing, name)
    if snapshot is None:
        there = ", ".join(map(snapshot_id, listing.snapshots))
        raise CommandError(
            f"{name}: no such snapshot", hint=f"the snapshots are {there}" if there else "there are none"
        )
    return snapshot


def without_log(session: Session) -> str | None:
    """A sentence for a source that is a snapshot alone, so that it has no history; ``None`` if there is a log."""
    listing = session.source.listing()
    if listing.has_log:
        return None
    return f"there is no log here, only snapshot {snapshot_id(listing.snapshots[-1])}: `dump` shows its records"


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
    """Names the types of records by their first bytes alone, without decoding them. Names are remembered."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def of(self, raw: RawRecord, control: bool) -> str:
        """Return the name of a record's type; ``control``: whether it is a control record."""
        if control:
            return control_name(raw.key)
        value = raw.value or b""
        name = self._names.get(value[:_TYPE_BYTES])
        if name is None:
            name = decode_value(value).name
            if value[:_TYPE_BYTES].isascii():  # three varints of one byte each: the name depends on nothing else
                self._names[value[:_TYPE_BYTES]] = name
        return name


def only(names: frozenset[str]) -> Wanted:
    """Return a test that is true for records of these types."""
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
"""API key -> the one family that its records read and write, for types that a log can be full of; none for NoOps."""
_TOPICS: Segments = ("image", "topics")


class PathRecordFilter:
    """Decides whether a record must be decoded to know if it touches a path. If in doubt, the answer is yes.

    Ask about each record before the :attr:`tracker` is given it: the tracker's topic names must be those before the
    record. Call it for a single record, or :meth:`select` for all records of a batch.
    """

    def __init__(self, place: Segments) -> None:
        """Prepare for records that touch ``place``, paths below it or paths above it."""
        self._needless = {key for key, family in ONE_FAMILY.items() if not _is_near(family, place)}
        self._name: str | None = None
        self._id: bytes | None = None
        self.tracker: Tracker | None = None
        if place[:2] == _TOPICS and len(place) > 3:
            self._watch(place[2], place[3])

    def _watch(self, view: str, segment: str) -> None:
        """Only records of one topic matter: the one with this id, or with this name."""
        if view == "byName":
            self._name = decode_name(segment)
        else:
            try:
                self._id = bytes(Uuid.parse(segment))
            except ValueError:
                self._id = b""  # matches no topic

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
        """Yield which records of a batch must be decoded, without creating an object for each record.

        Args:
            region: the records of the batch, one after another.
            values: start and end of each record's value in ``region``, alternating.

        Yields:
            The index in ``values`` of the start of each such value.
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
                    name_of = None  # later records of the batch may belong to the topic that this record creates
            yield 2 * index


def _is_near(family: str | None, place: Segments) -> bool:
    """Whether the part of the tree that a family has is at, below or above a path."""
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
"""The columns of `log`, for users. ``dump`` and ``follow`` are for programs: their rows have only :data:`FIELDS`."""
NO_OP = "NO_OP_RECORD"


def record_row(session: Session, record: LogRecord) -> Row:
    """Return the row of a record, with secrets hidden."""
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
    """A path of the tree that a record touches, and the values before and after it; ``None`` for no value."""

    path: Segments
    touch: Touch
    old: object = None
    new: object = None


def record_row_with_path(session: Session, record: LogRecord, touched: Touched | None) -> Row:
    """Return the row of a record for users, with the touched path and what changed there."""
    row = {**record_row(session, record), "time": iso(record.timestamp)}
    if touched is None:
        return {**row, "path": None, "change": ""}
    return {**row, "path": join(touched.path), "change": _change(session, touched)}


def _change(session: Session, touched: Touched) -> str:
    """Describe a change: ``1000 -> 2000``, or fields that changed; empty if the record's own fields say it all."""
    if touched.old == touched.new:
        return ""
    old, new = (_as_in_tree(session, touched.touch, value) for value in (touched.old, touched.new))
    if touched.old is None:
        return "" if isinstance(new, dict | list) else f"set to {names_and_values(new)}"
    if touched.new is None:
        return f"removed, was {names_and_values(old)}"
    return ", ".join(changed_parts(old, new))


def _as_in_tree(session: Session, touch: Touch, value: Any) -> Any:
    """Return a value as the tree shows it; ``None`` for none."""
    family = families().get(touch.family)
    if value is None or family is None:
        return plain(value)
    return displayed(session.redaction, family, touch.keys, family.plain(value))


def displayed(redaction: Redaction, family: Family, keys: Keys, value: Any) -> Any:
    """Return a plain value of a family as the tree shows it, with its secrets hidden."""
    if (family.name, keys) == ("features", (FEATURE,)):
        return version_name(value)
    if family.config_key is not None:
        return redaction.config(*family.config_key(keys), value)
    return redaction.fields(value, family.secret)


def changed_parts(old: object, new: object) -> Iterator[str]:
    """Yield ``field old -> new`` for each field that differs; for a value without fields, ``old -> new``.

    If a field is an object on both sides, only its keys that differ are named: ``supportedFeatures.metadata.version``.
    A time in milliseconds is left out if the same time is there in readable form (``timeMs`` next to ``time``).
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


def _field(value: object) -> str:
    """Write a field's value; an object stands in braces, to separate its fields from those that follow."""
    text = names_and_values(value)
    return f"{{{text}}}" if isinstance(value, dict) and value else text


def when(row: Row) -> str:
    """Return the time of a row as ISO-8601, or as the number if it is no valid time."""
    return str(iso(row["timestampMs"]) or row["timestampMs"])


def summary(row: Row) -> str:
    """Summarize a row for users: type, path and change; else the record's fields with Kafka's names for values."""
    where = f" {row['path']}" if row["path"] else ""
    if row["change"]:
        return f"{row['type']}{where}: {row['change']}"
    return f"{row['type']}{where} {names_and_values(readable(row['type'], row['data']))}"


def place_of(session: Session, path: str | None, command: str, hint: str) -> Segments | None:
    """Return the one path that a command was asked about. Raises UsageError with ``hint`` for a glob."""
    if path is None:
        return None
    place = session.place(path)
    if place is None:
        raise UsageError(f"{path}: {command} takes one path, without a glob", hint=hint)
    return place


RecordsWithPaths = Iterator[tuple[LogRecord, list[Touched]]]
"""Records, each with the paths of the tree that it touches."""


def with_paths(
    session: Session,
    records: DecodedRecords,
    start: int,
    record_filter: PathRecordFilter | None = None,
    *,
    values: bool = False,
) -> RecordsWithPaths:
    """Yield each record with the paths that it touches and, if ``values`` is set, the values there before and after it.

    ``records`` must hold every record from ``start`` on, or every one for which ``record_filter`` is true. Those before
    the oldest snapshot inside the log are named by that snapshot: their topics have names only if they exist in it.

    Raises DataError where the image before ``start`` is not known; without a ``record_filter``, paths that need it are
    left out.
    """
    paths = TouchedPaths(session, start, values=values, is_needed=record_filter is not None)
    if record_filter is not None:
        record_filter.tracker = paths.tracker if paths.restart is None else None
    for record in records:
        if paths.restart_if_due(record.offset) and record_filter is not None:
            record_filter.tracker = paths.tracker
        yield record, touched_paths(paths.tracker, record)


class TouchedPaths:
    """Finds what the records of a log touch. ``tracker`` must get every record from ``start`` on, in order.

    Before each record, call :meth:`restart_if_due`.

    Where the image before ``start`` is not known, the tracker starts from nothing; if it ``is_needed``, that raises
    DataError. ``restart`` is the offset, if any, at which another one must replace it: the end of a snapshot.
    """

    def __init__(self, session: Session, start: int, *, values: bool = False, is_needed: bool = False) -> None:
        self._session = session
        self._values = values
        self.tracker, self.restart = self._first(start, is_needed=is_needed)

    def restart_if_due(self, offset: int) -> bool:
        """Replace the tracker if the record at an offset is the first for which it must be; return whether it was."""
        if self.restart is None or offset < self.restart:
            return False
        self.tracker, self.restart = self._first(self.restart, is_needed=True)[0], None
        return True

    def _first(self, start: int, *, is_needed: bool) -> tuple[Tracker, int | None]:
        session, values = self._session, self._values
        try:
            return with_listing(session, lambda listing: _tracker_of(session, listing, start, values=values))
        except DataError:
            if is_needed:
                raise
            return Tracker(EMPTY, keeps_old=values), None


def touched_paths(tracker: Tracker, record: LogRecord) -> list[Touched]:
    """Return the paths that a record touches, the most relevant first. The tracker must get every record in order."""
    decoded = record.decoded
    place = BatchPosition(record.file, record.position, record.epoch, False)
    touched = tracker.touched(decoded, Origin(record.offset, record.timestamp, decoded.name, decoded.version, place))
    values = ((touch, tracker.values(touch)) for touch in touched)
    return [Touched(path, touch, old, new) for touch, (old, new) in values for path in paths(touch)]


def with_listing(session: Session, answer: Callable[[Listing], T]) -> T:
    """Answer from a listing of the source; again if a server has removed meanwhile what the answer starts from.

    ``answer`` makes images of past states. Raises OutOfReachError if even a new listing does not reach back to them.
    """
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(OutOfReachError):
            return session.source.read_listed(answer)
    return session.source.read_listed(answer)


def log_start(listing: Listing) -> int:
    """The first offset of the log; 0 where that is not known, or there is no log."""
    return listing.segments[0].base_offset or 0 if listing.segments else 0


def first_snapshot_end(listing: Listing) -> int | None:
    """The end offset of the oldest snapshot inside the log, or at its start; ``None`` if there is none."""
    start = log_start(listing)
    return next((file.end_offset for file in listing.snapshots if file.end_offset and file.end_offset >= start), None)


def _tracker_of(session: Session, listing: Listing, start: int, *, values: bool) -> tuple[Tracker, int | None]:
    first = log_start(listing)
    if max(start, first) <= listing.first_needed_offset:
        return Tracker(EMPTY, keeps_old=values), None
    has_beginning, snapshot_end = first <= listing.first_needed_offset, first_snapshot_end(listing)
    if not has_beginning and snapshot_end is None and listing.directory is None:
        return Tracker(EMPTY, keeps_old=values), None  # a single segment file: the image before it is not known
    begin = max(start, 0 if has_beginning else snapshot_end or first)
    before = session.reshape(point=str(begin - 1)).loaded
    tracker = Tracker(before.image, keeps_old=values)
    if before.open_transaction is not None:  # the image leaves its records out, but the next records build on them
        for record in log_records(session.source, start=before.open_transaction, until=begin - 1):
            touched_paths(tracker, record)
    return tracker, begin if begin > max(start, first) else None


def conclude(session: Session, records: DecodedRecords, result: Result) -> None:
    """Finish a result after its last record: note damage, and what else the user should know.

    Damage is not raised: what is readable is the answer, and formats such as JSON print only complete results.
    """
    session.remarks += end_notes(records)
    malformed = malformed_records(records)
    session.note_damage(records.damage if malformed is None else [malformed, *records.damage])
    if session.found_damage:
        result.exit_code = EXIT_DATA


def end_notes(records: DecodedRecords) -> list[str]:
    """Return what the user should know after the last record although nothing is wrong, such as a torn end."""
    if records.torn is None:
        return records.notes
    path, torn = records.torn
    return [*records.notes, torn.note(path) + USUAL]


def before_log(session: Session, until: int | None) -> str | None:
    """A sentence for an end before the log's start: what was there is deleted, not "nothing happened"."""
    if until is None or until >= (start := with_listing(session, log_start)):
        return None
    return f"the log starts at offset {start}, after offset {until}: the records before it are deleted"


def notes_on_start(records: DecodedRecords, start: str) -> list[str]:
    """Say where the log ends if it ends before the asked offset; ``start`` names that. Ask after the last record."""
    last = records.end_before_start
    return [] if last is None else [f"the log ends with offset {last}, before {start}"]


def malformed_records(records: DecodedRecords) -> DataError | None:
    """Return the error for records that do not match their schema, if there are any. Ask after the last record."""
    if records.first_malformed is None:
        return None
    more = f" (and {records.malformed - 1} more malformed)" if records.malformed > 1 else ""
    return DataError(records.first_malformed + more)
