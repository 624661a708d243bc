"""The bytes of a record batch, each with its field: what ``explain`` prints, like the byte pane of Wireshark.

A batch comes in; :class:`ByteRange` objects go out, in order and without gaps or overlaps. Bytes that cannot be decoded
are a range, too, with the reason as its note. Positions count from the start of the file, but those of a compressed
batch's records from the start of the decompressed data.

The generated decoders (:mod:`kshell.protocol.decoder`) decide what is well formed. The code here walks along a
message's schema only to find where each field is (docs/decisions/0043).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kshell.errors import MissingCodecError
from kshell.metadata.records import Decoded, decode_record
from kshell.metadata.redaction import REDACTED, Redaction, record_plain
from kshell.protocol.batches import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    CRC_START,
    LENGTH_END,
    Batch,
    RawRecord,
    crc_of,
)
from kshell.protocol.compression import NAMES as CODECS
from kshell.protocol.control import CONTROL_TYPES, control_number
from kshell.protocol.decoder import FIXED, UNKNOWN_TAGS, Message
from kshell.protocol.primitives import Buffer, DecodeError, Uuid, read_uvarint, read_varint, read_varlong
from kshell.protocol.schema import Field, Schema
from kshell.tree.image import iso

_TRANSACTIONAL_BIT, _DELETE_HORIZON_BIT = 0x10, 0x40
_HEADER = (
    ("baseOffset", "int64", ">q"),
    ("batchLength", "int32", ">i"),
    ("partitionLeaderEpoch", "int32", ">i"),
    ("magic", "int8", ">b"),
    ("crc", "uint32", ">I"),
    ("attributes", "int16", ">h"),
    ("lastOffsetDelta", "int32", ">i"),
    ("baseTimestamp", "int64", ">q"),
    ("maxTimestamp", "int64", ">q"),
    ("producerId", "int64", ">q"),
    ("producerEpoch", "int16", ">h"),
    ("baseSequence", "int32", ">i"),
    ("recordsCount", "int32", ">i"),
)
"""Fields of a batch's header (``org.apache.kafka.common.record.DefaultRecordBatch``)."""
_BYTES = "bytes"
TYPES = (*FIXED, "bool", "uuid", "string", _BYTES, "varint", "varlong", "uvarint")
"""Every value that :attr:`ByteRange.type` can have: how the bytes of a range are encoded."""
_Read = Callable[[Buffer, int], tuple[int, int]]
_MAY_BE_SECRET = "not understood, and it may hold secrets: --show-secrets"


class ByteRange(NamedTuple):
    """Neighbouring bytes that encode one value: from ``start`` up to ``end`` (exclusive).

    ``value`` is ``None`` for null and for undecoded bytes; ``note`` is for users. ``raw`` has secrets: show
    :attr:`hex`.
    """

    start: int
    end: int
    field: str
    """A dotted path: ``baseOffset``, ``records[0].value.endPoints[1].host``."""
    type: str
    value: object = None
    note: str | None = None
    hidden: bool = False
    """Whether the bytes and the value are secret and must not be shown."""
    is_decompressed: bool = False
    """Whether ``start`` and ``end`` count within the decompressed records of the batch."""
    raw: bytes = b""

    @property
    def hex(self) -> str:
        """The bytes as hexadecimal digits; ``[redacted]`` if they are hidden."""
        return REDACTED if self.hidden else self.raw.hex(" ")

    @property
    def visible_value(self) -> object:
        """The value; ``[redacted]`` if it is hidden."""
        return REDACTED if self.hidden and self.value is not None else self.value


class _Cursor:
    """Reads a buffer value by value, and adds a :class:`ByteRange` to ``pieces`` for each value it passes."""

    def __init__(self, buf: Buffer, position: int, end: int, origin: int, *, is_decompressed: bool = False) -> None:
        """``position`` and ``end`` count in ``buf``; adding ``origin`` gives the position that is reported."""
        self.buf = buf
        self.position = position
        self.end = end
        self.pieces: list[ByteRange] = []
        self.is_hidden = False
        """Whether the ranges added from now on are hidden."""
        self._origin = origin
        self._is_decompressed = is_decompressed

    def take(self, end: int, field: str, kind: str, value: object = None, note: str | None = None) -> None:
        """Add a range from the present position up to ``end``. Raises DecodeError if the buffer ends before."""
        if end > self.end:
            raise DecodeError(f"{field} runs past the end", self.position)
        raw = bytes(self.buf[self.position : end])
        at, until = self.position + self._origin, end + self._origin
        self.pieces.append(ByteRange(at, until, field, kind, value, note, self.is_hidden, self._is_decompressed, raw))
        self.position = end

    def rest(self, end: int, field: str, note: str, *, hidden: bool) -> None:
        """Add a range for the undecoded bytes up to ``end``, if any; ``note`` says why they are not decoded."""
        if self.position < end:
            was_hidden, self.is_hidden = self.is_hidden, self.is_hidden or hidden
            self.take(end, field, _BYTES, None, note)
            self.is_hidden = was_hidden

    def number(self, field: str, kind: str, code: str, note: Callable[[int], str | None] | None = None) -> int:
        """Read a number of fixed size; ``code`` is its :mod:`struct` format, ``note`` makes the note on a value."""
        size = struct.calcsize(code)
        if self.position + size > self.end:
            raise DecodeError(f"{field} runs past the end", self.position)
        (value,) = struct.unpack_from(code, self.buf, self.position)
        self.take(self.position + size, field, kind, value, note(value) if note else None)
        return int(value)

    def varint(self, field: str, read: _Read = read_varint, note: str | None = None) -> int:
        """Read a number of variable size with one of the ``read_…`` functions of :mod:`kshell.protocol.primitives`."""
        value, end = read(self.buf, self.position)
        self.take(end, field, read.__name__.removeprefix("read_"), value, note)
        return value

    def blob(self, field: str, kind: str, size: int, value: Callable[[bytes], object]) -> bytes:
        """Read ``size`` bytes; ``value`` turns them into the value that is shown. No bytes, no range."""
        end = self.position + size
        if size < 0 or end > self.end:
            raise DecodeError(f"{field}: {size} bytes run past the end", self.position)
        raw = bytes(self.buf[self.position : end])
        if size:
            self.take(end, field, kind, value(raw))
        return raw


def batch_pieces(batch: Batch, redaction: Redaction, *, end: int | None = None) -> Iterator[ByteRange]:
    """Yield all bytes of a batch as ranges, header first.

    Args:
        batch: one whose header is complete; the records need not be.
        redaction: which values are hidden. If the checksum of the batch is wrong, all values of its records are hidden
            unless secrets are shown: which bytes are secret depends on bytes that may be wrong.
        end: where in ``batch.buf`` the bytes of the batch end, if that is not where its length field says.
    """
    until = batch.after if end is None else end
    cursor = _Cursor(batch.buf, batch.at, until, batch.start)
    is_right = batch.after == until and batch.crc_is_good()
    for name, kind, code in _HEADER:
        cursor.number(name, kind, code, partial(_header_note, batch, until, name))
    yield from cursor.pieces
    yield from _records(batch, redaction, cursor.position, until, is_right=is_right)


def record_pieces(batch: Batch, offset: int, redaction: Redaction) -> Iterator[ByteRange]:
    """Yield the ranges of one record of a complete batch."""
    prefix = f"{_name(offset - batch.base_offset)}."
    for piece in batch_pieces(batch, redaction):
        if piece.field.startswith(prefix):
            yield piece


def unreadable_pieces(raw: Buffer, start: int, redaction: Redaction) -> Iterator[ByteRange]:
    """Yield bytes of a file that are not a batch as one range; ``start`` is their position in the file."""
    cursor = _Cursor(raw, 0, len(raw), start)
    cursor.rest(len(raw), "rest", "too few bytes for a batch's header", hidden=not redaction.show_secrets)
    yield from cursor.pieces


def _name(index: int) -> str:
    return f"records[{index}]"


def _header_note(batch: Batch, until: int, name: str, value: int) -> str | None:
    """Return the note on a field of the batch header; ``until`` is where the bytes of the batch end in its buffer."""
    if name == "batchLength" and batch.after != until:
        return f"wrong: {until - batch.at - LENGTH_END} bytes follow"
    if name == "crc":
        actual = crc_of(batch.buf, batch.at + CRC_START, until)
        return "right" if actual == value else f"wrong: the bytes have {actual}"
    if name == "attributes":
        return ", ".join(_attributes(value))
    if name in ("baseTimestamp", "maxTimestamp"):
        return iso(value)
    if name == "lastOffsetDelta":
        return f"the last offset is {batch.base_offset + value}"
    return None


def _attributes(value: int) -> Iterator[str]:
    codec = value & 7
    yield f"compression {CODECS[codec] if codec < len(CODECS) else f'{codec}, which Kafka does not define'}"
    yield "LogAppendTime" if value & APPEND_TIME_BIT else "CreateTime"
    yield "transactional" if value & _TRANSACTIONAL_BIT else "not transactional"
    yield "control" if value & CONTROL_BIT else "not control"
    if value & _DELETE_HORIZON_BIT:
        yield "delete horizon"


# --- records ---------------------------------------------------------------------------------------------------------


def _records(batch: Batch, redaction: Redaction, start: int, until: int, *, is_right: bool) -> Iterator[ByteRange]:
    if batch.codec == 0:
        cursor = _Cursor(batch.buf, start, until, batch.start)
        yield from _each_record(batch, cursor, redaction, is_right=is_right)
        return
    packed = _Cursor(batch.buf, start, until, batch.start)
    try:
        region, begin, end = batch._replace(size=until - batch.at).region()
    except (DecodeError, MissingCodecError) as error:
        reason = error.reason if isinstance(error, DecodeError) else error.message
        packed.rest(until, "records", reason, hidden=not redaction.show_secrets)
        yield from packed.pieces
        return
    cursor = _Cursor(region, begin, end, 0, is_decompressed=True)
    pieces = list(_each_record(batch, cursor, redaction, is_right=is_right))
    packed.is_hidden = any(piece.hidden for piece in pieces)
    codec = CODECS[batch.codec]
    packed.rest(until, "records", f"{codec}: {end - begin} bytes when decompressed, explained below", hidden=False)
    yield from packed.pieces
    yield from pieces


def _each_record(batch: Batch, cursor: _Cursor, redaction: Redaction, *, is_right: bool) -> Iterator[ByteRange]:
    """Yield the ranges of every record. If a record cannot be decoded, the rest of the batch is one range."""
    yielded = 0
    for index in range(max(batch.records, 0)):
        try:
            _record(batch, index, cursor, redaction, is_right=is_right)
        except (DecodeError, IndexError) as error:
            reason = error.reason if isinstance(error, DecodeError) else "the record ends too early"
            note = f"stops here: {reason}"
            cursor.is_hidden = False
            cursor.rest(cursor.end, f"{_name(index)}.rest", note, hidden=not redaction.show_secrets)
            yield from cursor.pieces[yielded:]
            return
        yield from cursor.pieces[yielded:]
        yielded = len(cursor.pieces)
    note = "bytes too many after the last record of the batch"
    cursor.rest(cursor.end, "rest", note, hidden=not redaction.show_secrets)
    yield from cursor.pieces[yielded:]


def _record(batch: Batch, index: int, cursor: _Cursor, redaction: Redaction, *, is_right: bool) -> None:
    name = _name(index)
    start = cursor.position
    size, body = read_varint(cursor.buf, start)
    if size < 0 or body + size > cursor.end:
        raise DecodeError(f"a record of {size} bytes runs past the end of the batch", start)
    outer, end = cursor.end, body + size
    cursor.varint(f"{name}.length")
    cursor.end = end
    try:
        cursor.number(f"{name}.attributes", "int8", ">b")
        cursor.varint(f"{name}.timestampDelta", read_varlong)
        delta, _ = read_varint(cursor.buf, cursor.position)
        note = f"offset {batch.base_offset + delta}" if delta == index else f"wrong: {index} was expected"
        cursor.varint(f"{name}.offsetDelta", note=note)
        hides = not redaction.show_secrets and not batch.is_control  # a metadata record has neither key nor headers
        key = _blob(cursor, f"{name}.key", is_hidden=hides, as_key=batch.is_control)
        size = cursor.varint(f"{name}.valueLength")
        if size >= 0:
            if cursor.position + size > end:
                raise DecodeError(f"a value of {size} bytes runs past the end of the record", cursor.position)
            _value(batch, cursor, f"{name}.value", key, size, redaction, is_right=is_right)
        count = cursor.varint(f"{name}.headersCount")
        for number in range(count):
            _blob(cursor, f"{name}.headers[{number}].key", is_hidden=hides)
            _blob(cursor, f"{name}.headers[{number}].value", is_hidden=hides)
        if cursor.position != end:
            raise DecodeError(f"the parts of the record end {end - cursor.position} bytes before it", cursor.position)
    finally:
        cursor.end = outer


def _blob(cursor: _Cursor, name: str, *, is_hidden: bool, as_key: bool = False) -> bytes | None:
    """Read a length and as many bytes; a control record's key as version and type. ``None`` for null."""
    size = cursor.varint(f"{name}Length")
    if size < 0:
        return None
    start = cursor.position
    raw = bytes(cursor.buf[start : start + size])
    if as_key and size == 4:
        cursor.number(f"{name}.version", "int16", ">h")
        cursor.number(f"{name}.type", "int16", ">h", _control_type)
        return raw
    cursor.is_hidden = is_hidden
    cursor.blob(name, _BYTES, size, bytes.hex)
    cursor.is_hidden = False
    return raw


def _control_type(number: int) -> str:
    return CONTROL_TYPES[number].name if number in CONTROL_TYPES else "not known"


def _value(
    batch: Batch, cursor: _Cursor, name: str, key: bytes | None, size: int, redaction: Redaction, *, is_right: bool
) -> None:
    """Read a record's value field by field, as far as its schema is known and fits; the rest of it is one range."""
    start, end, outer = cursor.position, cursor.position + size, cursor.end
    raw = bytes(cursor.buf[start:end])
    decoded = decode_record(RawRecord(0, 0, key, raw), control=batch.is_control)
    schema = _schema(decoded, key, is_control=batch.is_control)
    has_secrets = decoded.type is not None and bool(decoded.type.schema.secrets)
    may_hide = not redaction.show_secrets and (not is_right or has_secrets)
    cursor.end = end
    cursor.is_hidden = not is_right and not redaction.show_secrets
    reason = decoded.undecoded.reason if decoded.undecoded is not None else None
    try:
        if not batch.is_control:
            cursor.varint(f"{name}.frameVersion", read_uvarint)
            cursor.varint(f"{name}.apiKey", read_uvarint, note=decoded.name)
            cursor.varint(f"{name}.version", read_uvarint)
        # Of a malformed value with secrets, nobody knows which bytes are the secret ones.
        if schema is not None and (reason is None or not may_hide or cursor.is_hidden):
            _Walk(cursor, schema, decoded.version, redaction).fields(schema.fields, name)
    except (DecodeError, IndexError) as error:
        reason = reason or str(error)
    finally:
        cursor.end = outer
    note = f"stops here: {reason or 'more bytes than the declaration has'}"
    if may_hide:
        note = f"{note}; {_MAY_BE_SECRET}"
    if cursor.position < end:
        cursor.rest(end, f"{name}.rest", note, hidden=may_hide)
    elif reason is not None:
        cursor.pieces[-1] = cursor.pieces[-1]._replace(note=f"not as declared: {reason}")
    cursor.is_hidden = False


def _schema(decoded: Decoded, key: bytes | None, *, is_control: bool) -> Schema | None:
    """Return the schema of a record's value; ``None`` if its type or version is not known."""
    if not is_control:
        kind = decoded.type
        return kind.schema if kind is not None and decoded.version in kind.schema.versions else None
    control = CONTROL_TYPES.get(control_number(key)) if key is not None and len(key) >= 4 else None
    return control.schema if control is not None and decoded.version in control.schema.versions else None


class _Walk:
    """Walks along a schema at one version, and lets the cursor add a range for each field."""

    def __init__(self, cursor: _Cursor, schema: Schema, version: int, redaction: Redaction) -> None:
        self._cursor = cursor
        self._schema = schema
        self._version = version
        self._is_flexible = version >= schema.flexible
        self._redaction = redaction
        self._top: Message = {}
        """The values of the record's top-level fields so far: they decide whether a config is secret."""

    def fields(self, fields: tuple[Field, ...], path: str, *, is_top: bool = True) -> None:
        """Read the fields of a struct, then its tagged fields. ``is_top``: the struct is the record itself."""
        mine = [field for field in fields if self._version in field.versions]
        for field in mine:
            if field.tag is None or not self._is_flexible:
                self._field(field, path, is_top=is_top)
        if self._is_flexible:
            self._tags({field.tag: field for field in mine if field.tag is not None}, path, is_top=is_top)

    def _field(self, field: Field, path: str, *, is_top: bool) -> None:
        was_hidden = self._cursor.is_hidden
        kind = self._schema.secrets.get(field.name) if is_top else None
        if kind is not None:
            self._cursor.is_hidden = was_hidden or self._redaction.hides(kind, self._top)
        value = self._value(field, f"{path}.{field.name}")
        self._cursor.is_hidden = was_hidden
        if is_top:
            self._top[field.name] = value

    def _tags(self, tagged: dict[int | None, Field], path: str, *, is_top: bool) -> None:
        cursor = self._cursor
        for _ in range(cursor.varint(f"{path}.taggedFields", read_uvarint)):
            tag = cursor.varint(f"{path}.tag", read_uvarint)
            size = cursor.varint(f"{path}.tagSize", read_uvarint)
            field = tagged.get(tag)
            if field is not None:
                self._field(field, path, is_top=is_top)
                continue
            was_hidden = cursor.is_hidden
            hides = bool(self._schema.secrets) and not self._redaction.show_secrets
            cursor.is_hidden = was_hidden or hides
            cursor.blob(f"{path}.{UNKNOWN_TAGS}[{tag}]", _BYTES, size, bytes.hex)
            cursor.is_hidden = was_hidden

    def _value(self, field: Field, path: str) -> Any:
        if field.array:
            return self._array(field, path)
        if field.is_struct:
            if field.nullable and self._cursor.number(f"{path}.isPresent", "int8", ">b") < 0:
                return None
            return self.fields(field.fields, path, is_top=False)
        cursor = self._cursor
        if field.type in FIXED:
            return cursor.number(path, field.type, f">{FIXED[field.type]}")
        if field.type == "bool":
            start = cursor.position
            value = start < cursor.end and bool(cursor.buf[start])
            cursor.take(start + 1, path, "bool", value)
            return value
        if field.type == "uuid":
            return cursor.blob(path, "uuid", len(Uuid(16)), lambda raw: record_plain(Uuid(raw)))
        size = self._length(f"{path}.length", "string" if field.type == "string" else "bytes")
        if size < 0:
            return None
        is_text = field.type == "string"
        raw = cursor.blob(path, field.type, size, _text if is_text else record_plain)
        return _text(raw) if is_text else raw

    def _array(self, field: Field, path: str) -> None:
        count = self._length(f"{path}.count", "array")
        if count > self._cursor.end - self._cursor.position:
            raise DecodeError(f"{path}: {count} elements cannot fit", self._cursor.position)
        for index in range(count):
            self._value(field._replace(array=False, nullable=False), f"{path}[{index}]")

    def _length(self, path: str, kind: str) -> int:
        """Read a length or a count; -1 for null. A flexible version stores it plus one, 0 for null (KIP-482)."""
        cursor = self._cursor
        if not self._is_flexible:
            return cursor.number(path, "int16" if kind == "string" else "int32", ">h" if kind == "string" else ">i")
        stored, end = read_uvarint(cursor.buf, cursor.position)
        cursor.take(end, path, "uvarint", stored - 1 if stored else None, None if stored else "null")
        return stored - 1


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
