"""Decode messages by their declarations (:mod:`.schema`): from bytes to a ``dict`` with Kafka's lowerCamelCase names.

For each declaration and version, straight-line Python is generated on first use, then cached. Fields that the version
lacks, and tagged fields that were not written, are absent (as in the output of ``kafka-dump-log``). Tagged fields that
the declaration does not have are kept, at any depth, under ``unknownTaggedFields``: a list of
``{"tag": number, "data": bytes}``.

Every count and length is checked against the bytes that are left before anything is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kshell.protocol.primitives import DecodeError, Uuid, read_uvarint
from kshell.protocol.schema import Field, Schema

UNKNOWN_TAGS = "unknownTaggedFields"

Message = dict[str, Any]
"""A decoded message or record: name of a field -> value. Structures within it are such dictionaries, too."""
Decoder = Callable[[bytes, int], tuple[Message, int]]

FIXED = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d"}
_Length = Callable[[bytes, int], tuple[int, int]]
_SIZES = {"b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "?": 1, "16s": 16}


def decode(schema: Schema, version: int, buf: bytes, pos: int = 0, *, most_elements: int | None = None) -> Message:
    """Decode the message that fills ``buf`` from ``pos`` on. Raises :class:`DecodeError`, also if bytes are left."""
    message, end = decoder(schema, version, most_elements)(buf, pos)
    if end != len(buf):
        raise DecodeError(f"{len(buf) - end} bytes too many after a {schema.name} v{version}", end)
    return message


def decoder(schema: Schema, version: int, most_elements: int | None = None) -> Decoder:
    """Return the decoder of ``schema`` at ``version``: (buffer, position) -> (message, position after it).

    ``most_elements`` limits how many array elements and tagged fields a message may have in total. Set it for what
    peers send: an element of one or two bytes on the wire takes hundreds in memory, so a limit in bytes is not enough.
    With it, a string may also be no longer than Kafka's own reader accepts.
    """
    key = (schema, version, most_elements)
    cached = _decoders.get(key)
    if cached is None:
        if version not in schema.versions:
            raise ValueError(f"{schema.name} has no version {version}, only {schema.versions}")
        emitter = _Emitter(version, version >= schema.flexible, most_elements)
        cached = _decoders[key] = _guard(emitter.function(schema.fields))
    return cached


_decoders: dict[tuple[Schema, int, int | None], Decoder] = {}
_LONGEST_STRING = 0x7FFF
"""Bytes of the longest string that Kafka's generated readers accept, also where a compact string could be longer."""


def _guard(raw: Decoder) -> Decoder:
    """Wrap a generated decoder so that it raises DecodeError where the buffer ends inside the message."""

    def guarded(buf: bytes, pos: int) -> tuple[Message, int]:
        try:
            return raw(buf, pos)
        except (struct.error, IndexError):
            raise DecodeError("the value ends too early", len(buf)) from None

    return guarded


# --- what generated decoders call: (buffer, position, …) -> (value, position after it) -------------------------------


def _compact_length(buf: bytes, pos: int) -> tuple[int, int]:
    """Read a length or count of a flexible version (KIP-482), an unsigned varint of one more; -1 means null."""
    number = buf[pos]
    if number <= 0x7F:
        return number - 1, pos + 1
    number, pos = read_uvarint(buf, pos)
    return number - 1, pos


def _int16_length(buf: bytes, pos: int) -> tuple[int, int]:
    return _INT16(buf, pos)[0], pos + 2


def _int32_length(buf: bytes, pos: int) -> tuple[int, int]:
    return _INT32(buf, pos)[0], pos + 4


_unpack = struct.unpack_from
_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_INT8 = struct.Struct(">b").unpack_from


def _compact_string(buf: bytes, pos: int, nullable: bool) -> tuple[str | None, int]:
    size = buf[pos] - 1
    pos += 1
    if size > 0x7E:
        size, pos = _compact_length(buf, pos - 1)
    end = pos + size
    if size < 0:
        return _null(pos, nullable)
    if end > len(buf):
        raise DecodeError(f"a string of {size} bytes runs past the end", pos)
    return buf[pos:end].decode("utf-8", "surrogateescape"), end


def _short_string(buf: bytes, pos: int, nullable: bool) -> tuple[str | None, int]:
    """Read a compact string, with the limit of Kafka's own readers."""
    size, start = _compact_length(buf, pos)
    if size > _LONGEST_STRING:
        raise DecodeError(f"a string of {size} bytes is longer than Kafka's may be", start)
    return _compact_string(buf, pos, nullable)


def _string(buf: bytes, pos: int, nullable: bool) -> tuple[str | None, int]:
    """Read a string of a version that is not flexible."""
    size, pos = _int16_length(buf, pos)
    if size < 0:
        return _null(pos, nullable)
    if pos + size > len(buf):
        raise DecodeError(f"a string of {size} bytes runs past the end", pos)
    return buf[pos : pos + size].decode("utf-8", "surrogateescape"), pos + size


def _bytes(buf: bytes, pos: int, nullable: bool, length: _Length) -> tuple[bytes | None, int]:
    size, pos = length(buf, pos)
    return _null(pos, nullable) if size < 0 else (_blob(buf, pos, size), pos + size)


def _numbers(
    buf: bytes, pos: int, nullable: bool, code: str, size: int, length: _Length
) -> tuple[list[int] | None, int]:
    """Read an array of numbers of one ``struct`` code, of ``size`` bytes each."""
    count, pos = length(buf, pos)
    if count < 0:
        return _null(pos, nullable)
    end = pos + count * size
    if end > len(buf):
        _fits(buf, pos, count, size)
    return list(_unpack(f">{count}{code}", buf, pos)), end


def _uuids(buf: bytes, pos: int, nullable: bool, length: _Length) -> tuple[list[Uuid] | None, int]:
    count, pos = length(buf, pos)
    if count < 0:
        return _null(pos, nullable)
    end = pos + _fits(buf, pos, count, 16) * 16
    return [Uuid(buf[at : at + 16]) for at in range(pos, end, 16)], end


def _elements(buf: bytes, pos: int, nullable: bool, length: _Length) -> tuple[int | None, int]:
    """Read how many structs or strings follow; ``None`` for a null array."""
    count, pos = length(buf, pos)
    return _null(pos, nullable) if count < 0 else (_fits(buf, pos, count, 1), pos)


def _tag(buf: bytes, pos: int) -> tuple[int, int, int]:
    """Read the head of a tagged field: (tag, position after the field, position of its value)."""
    tag, size = buf[pos], buf[pos + 1]
    if tag <= 0x7F and size <= 0x7F:
        pos += 2
    else:
        tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
    if pos + size > len(buf):
        raise DecodeError(f"tagged field {tag} of {size} bytes runs past the end", pos)
    return tag, pos + size, pos


def _unknown_tags(buf: bytes, pos: int, out: Message) -> int:
    """Keep tagged fields that the declaration does not have in ``out``; return the position after them."""
    count, pos = read_uvarint(buf, pos)
    for _ in range(count):
        tag, end, pos = _tag(buf, pos)
        _keep_tag(out, tag, buf[pos:end])
        pos = end
    return pos


def _blob(buf: bytes, pos: int, length: int) -> bytes:
    if pos + length > len(buf):
        raise DecodeError(f"{length} bytes run past the end", pos)
    return bytes(buf[pos : pos + length])


def _fits(buf: bytes, pos: int, count: int, size: int) -> int:
    """Return ``count`` if that many elements, of at least ``size`` bytes each, fit into the rest of the buffer."""
    if count * size > len(buf) - pos:
        raise DecodeError(f"an array of {count} elements cannot fit in {len(buf) - pos} bytes", pos)
    return count


def _null(pos: int, nullable: bool) -> tuple[None, int]:
    if not nullable:
        raise DecodeError("null where the declaration allows none", pos)
    return None, pos


def _spend(remaining: int, count: int, pos: int) -> int:
    """Return how many elements are still allowed after ``count`` more. Raises DecodeError if they are too many."""
    if count > remaining:
        raise DecodeError("the message has more elements than any that Kafka sends", pos)
    return remaining - max(count, 0)


def _tag_end(pos: int, end: int, tag: int) -> None:
    if pos != end:
        raise DecodeError(f"tagged field {tag} does not end where its size says", pos)


def _keep_tag(out: Message, tag: int, data: bytes) -> None:
    out.setdefault(UNKNOWN_TAGS, []).append({"tag": tag, "data": bytes(data)})


class _Emitter:
    """Generates the source of a decoder: ``b`` is the buffer, ``p`` the position, ``l`` the elements still allowed.

    The source is short, because a one-shot command compiles some twenty of them and decodes a few records with each.
    """

    def __init__(self, version: int, flexible: bool, most_elements: int | None) -> None:
        self.version = version
        self.flexible = flexible
        self.most_elements = most_elements
        self.lines: list[str] = []
        string = _string if not flexible else _compact_string if most_elements is None else _short_string
        self.names: dict[str, Any] = {
            "string": string,
            "bytes_": _bytes,
            "numbers": _numbers,
            "uuids": _uuids,
            "elements": _elements,
            "length": _compact_length if flexible else _int32_length,
            "spend": _spend,
            "uvarint": read_uvarint,
            "tag": _tag,
            "tag_end": _tag_end,
            "keep_tag": _keep_tag,
            "unknown_tags": _unknown_tags,
            "int8": _INT8,
            "Uuid": Uuid,
        }
        self.serial = 0

    def function(self, fields: tuple[Field, ...]) -> Decoder:
        self.lines = ["def decode(b, p):"]
        if self.most_elements is not None:
            self.emit(1, f"l = {self.most_elements}")
        result = self.struct(fields, 1)
        self.emit(1, f"return {result}, p")
        exec("\n".join(self.lines), self.names)  # the text is made from our own declarations only
        decode: Decoder = self.names["decode"]
        return decode

    def emit(self, depth: int, line: str) -> None:
        self.lines.append(" " * depth + line)

    def fresh(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def struct(self, fields: tuple[Field, ...], depth: int) -> str:
        """Emit the decoding of a struct; return the name of the variable that holds it."""
        out = self.fresh("m")
        self.emit(depth, f"{out} = {{}}")
        mine = [field for field in fields if self.version in field.versions]
        run: list[Field] = []
        for field in [field for field in mine if field.tag is None or not self.flexible]:
            if not field.array and (field.type in FIXED or field.type in ("bool", "uuid")):
                run.append(field)
                continue
            self.fixed(run, out, depth)
            run = []
            self.value(field, f"{out}[{field.name!r}]", depth)
        self.fixed(run, out, depth)
        if self.flexible:
            self.tags([field for field in mine if field.tag is not None], out, depth)
        return out

    def fixed(self, run: list[Field], out: str, depth: int) -> None:
        """Emit the decoding of neighbouring fields of fixed size into the message ``out``, with one ``struct`` call."""
        if run:
            self.unpack(run, [f"{out}[{field.name!r}]" for field in run], depth)

    def unpack(self, run: list[Field], targets: list[str], depth: int) -> None:
        """Emit one unpacking of fixed-size values into ``targets``."""
        codes = ["?" if f.type == "bool" else "16s" if f.type == "uuid" else FIXED[f.type] for f in run]
        packer = self.fresh("s")
        self.names[packer] = struct.Struct(">" + "".join(codes)).unpack_from
        self.emit(depth, f"{', '.join(targets)}, = {packer}(b, p); p += {sum(_SIZES[c] for c in codes)}")
        for field, target in zip(run, targets, strict=True):
            if field.type == "uuid":
                self.emit(depth, f"{target} = Uuid({target})")

    def value(self, field: Field, target: str, depth: int) -> None:
        """Emit the decoding of one value into ``target``: a variable, or an item of a message."""
        if field.array:
            self.array(field, target, depth)
        elif field.is_struct and field.nullable:
            self.nullable_struct(field, target, depth)
        elif field.is_struct:
            self.emit(depth, f"{target} = {self.struct(field.fields, depth)}")
        elif field.type == "string":
            self.emit(depth, f"{target}, p = string(b, p, {field.nullable})")
        elif field.type == "bytes":
            self.emit(depth, f"{target}, p = bytes_(b, p, {field.nullable}, length)")
        else:
            self.unpack([field], [target], depth)

    def nullable_struct(self, field: Field, target: str, depth: int) -> None:
        """Emit the decoding of a struct that may be null: a byte before it is negative for null (KIP-893)."""
        name = self.fresh("v")
        self.emit(depth, f"{name}, = int8(b, p); p += 1")
        self.emit(depth, f"if {name} < 0: {target} = None")
        self.emit(depth, "else:")
        self.emit(depth + 1, f"{target} = {self.struct(field.fields, depth + 1)}")

    def array(self, field: Field, target: str, depth: int) -> None:
        if self.most_elements is not None:
            self.emit(depth, "l = spend(l, *length(b, p))")
        if field.type in FIXED:
            code = FIXED[field.type]
            self.emit(depth, f"{target}, p = numbers(b, p, {field.nullable}, {code!r}, {_SIZES[code]}, length)")
        elif field.type == "uuid":
            self.emit(depth, f"{target}, p = uuids(b, p, {field.nullable}, length)")
        else:
            count, items, item = (self.fresh(prefix) for prefix in "nai")
            self.emit(depth, f"{count}, p = elements(b, p, {field.nullable}, length)")
            self.emit(depth, f"{target} = {items} = None if {count} is None else []")
            self.emit(depth, f"for _ in range({count} or 0):")
            self.value(field._replace(array=False, nullable=False), item, depth + 1)
            self.emit(depth + 1, f"{items}.append({item})")

    def tags(self, fields: list[Field], out: str, depth: int) -> None:
        if not fields and self.most_elements is None:
            self.emit(depth, f"p = unknown_tags(b, p, {out}) if b[p] else p + 1")
            return
        count, tag, end = (self.fresh(prefix) for prefix in "cte")
        self.emit(depth, f"{count}, p = (b[p], p + 1) if b[p] < 128 else uvarint(b, p)")
        if self.most_elements is not None:
            self.emit(depth, f"l = spend(l, {count}, p)")
        self.emit(depth, f"for _ in range({count}):")
        self.emit(depth + 1, f"{tag}, {end}, p = tag(b, p)")
        keyword = "if"
        for field in fields:
            self.emit(depth + 1, f"{keyword} {tag} == {field.tag}:")
            keyword = "elif"
            self.value(field, f"{out}[{field.name!r}]", depth + 2)
            self.emit(depth + 2, f"tag_end(p, {end}, {tag})")
        if fields:
            self.emit(depth + 1, "else:")
        self.emit(depth + (2 if fields else 1), f"keep_tag({out}, {tag}, b[p:{end}]); p = {end}")
