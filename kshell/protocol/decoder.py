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


def _text(buf: bytes, pos: int, length: int) -> str:
    if length < 0 or pos + length > len(buf):
        raise DecodeError(f"a string of {length} bytes runs past the end", pos)
    return buf[pos : pos + length].decode("utf-8", "surrogateescape")


def _kafkas_text(buf: bytes, pos: int, length: int) -> str:
    """The same as :func:`_text`, with the limit of Kafka's own readers."""
    if length > _LONGEST_STRING:
        raise DecodeError(f"a string of {length} bytes is longer than Kafka's may be", pos)
    return _text(buf, pos, length)


def _spend(pos: int, remaining: int, count: int) -> int:
    """Return how many elements are still allowed after ``count`` more. Raises DecodeError if they are too many."""
    if count > remaining:
        raise DecodeError("the message has more elements than any that Kafka sends", pos)
    return remaining - count


def _blob(buf: bytes, pos: int, length: int) -> bytes:
    if length < 0 or pos + length > len(buf):
        raise DecodeError(f"{length} bytes run past the end", pos)
    return bytes(buf[pos : pos + length])


def _count(buf: bytes, pos: int, count: int, size: int) -> int:
    """Return ``count`` if that many elements, of at least ``size`` bytes each, fit into the rest of the buffer."""
    if count < 0 or count * size > len(buf) - pos:
        raise DecodeError(f"an array of {count} elements cannot fit in {len(buf) - pos} bytes", pos)
    return count


def _null(pos: int) -> int:
    raise DecodeError("null where the declaration allows none", pos)


def _tag_end(pos: int, end: int, tag: int) -> None:
    if pos != end:
        raise DecodeError(f"tagged field {tag} does not end where its size says", pos)


def _keep_tag(out: Message, tag: int, data: bytes) -> None:
    out.setdefault(UNKNOWN_TAGS, []).append({"tag": tag, "data": data})


class _Emitter:
    """Generates the source of a decoder: ``b`` is the buffer, ``p`` the position, ``l`` the elements still allowed."""

    def __init__(self, version: int, flexible: bool, most_elements: int | None) -> None:
        self.version = version
        self.flexible = flexible
        self.most_elements = most_elements
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "text": _text if most_elements is None else _kafkas_text,
            "blob": _blob,
            "count": _count,
            "null": _null,
            "spend": _spend,
            "tag_end": _tag_end,
            "keep_tag": _keep_tag,
            "uvarint": read_uvarint,
            "unpack": struct.unpack_from,
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
        self.lines.append("    " * depth + line)

    def spend(self, depth: int, count: str) -> None:
        """Emit the subtraction of ``count`` (an expression) from the elements still allowed, if there is a limit."""
        if self.most_elements is not None:
            self.emit(depth, f"l = spend(p, l, {count})")

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
            self.emit(depth, f"{out}[{field.name!r}] = {self.value(field, depth)}")
        self.fixed(run, out, depth)
        if self.flexible:
            self.tags([field for field in mine if field.tag is not None], out, depth)
        return out

    def fixed(self, run: list[Field], out: str, depth: int) -> None:
        """Emit the decoding of neighbouring fields of fixed size into the message ``out``, with one ``struct`` call."""
        for field, value in zip(run, self.unpack(run, depth) if run else (), strict=True):
            self.emit(depth, f"{out}[{field.name!r}] = {value}")

    def unpack(self, run: list[Field], depth: int) -> list[str]:
        """Emit one unpacking of fixed-size values; return an expression for each."""
        codes = ["?" if f.type == "bool" else "16s" if f.type == "uuid" else FIXED[f.type] for f in run]
        packer = self.fresh("s")
        self.names[packer] = struct.Struct(">" + "".join(codes)).unpack_from
        names = [self.fresh("v") for _ in run]
        self.emit(depth, f"{', '.join(names)}, = {packer}(b, p); p += {sum(_SIZES[c] for c in codes)}")
        return [f"Uuid({name})" if f.type == "uuid" else name for f, name in zip(run, names, strict=True)]

    def length(self, depth: int, kind: str) -> str:
        """Emit a length or count into a new variable; -1 means null."""
        name = self.fresh("n")
        if self.flexible:
            self.emit(depth, f"{name} = b[p]; p += 1")
            self.emit(depth, f"if {name} > 127: {name}, p = uvarint(b, p - 1)")
            self.emit(depth, f"{name} -= 1")
        else:
            code, size = ("h", 2) if kind == "string" else ("i", 4)
            self.emit(depth, f"{name}, = unpack('>{code}', b, p); p += {size}")
        return name

    def value(self, field: Field, depth: int) -> str:
        """Emit the decoding of one value; return an expression for it."""
        if field.array:
            return self.array(field, depth)
        if field.is_struct:
            return self.nullable_struct(field, depth) if field.nullable else self.struct(field.fields, depth)
        if field.type not in ("string", "bytes"):
            return self.unpack([field], depth)[0]
        size = self.length(depth, field.type)
        name = self.fresh("v")
        reader = "text" if field.type == "string" else "blob"
        self.emit(depth, f"if {size} < 0: {name} = {'None' if field.nullable else 'null(p)'}")
        self.emit(depth, f"else: {name} = {reader}(b, p, {size}); p += {size}")
        return name

    def nullable_struct(self, field: Field, depth: int) -> str:
        """Emit the decoding of a struct that may be null: a byte before it is negative for null (KIP-893)."""
        name = self.fresh("v")
        self.emit(depth, f"{name}, = unpack('>b', b, p); p += 1")
        self.emit(depth, f"if {name} < 0: {name} = None")
        self.emit(depth, "else:")
        self.emit(depth + 1, f"{name} = {self.struct(field.fields, depth + 1)}")
        return name

    def array(self, field: Field, depth: int) -> str:
        size = self.length(depth, "array")
        name = self.fresh("v")
        self.emit(depth, f"if {size} < 0: {name} = {'None' if field.nullable else 'null(p)'}")
        self.emit(depth, "else:")
        self.spend(depth + 1, size)
        if field.type in FIXED:
            code = FIXED[field.type]
            self.emit(depth + 1, f"count(b, p, {size}, {_SIZES[code]})")
            self.emit(depth + 1, f"{name} = list(unpack('>%d{code}' % {size}, b, p)); p += {size} * {_SIZES[code]}")
        elif field.type == "uuid":
            self.emit(depth + 1, f"count(b, p, {size}, 16); e = p + {size} * 16")
            self.emit(depth + 1, f"{name} = [Uuid(b[i:i + 16]) for i in range(p, e, 16)]; p = e")
        else:
            self.emit(depth + 1, f"{name} = []")
            self.emit(depth + 1, f"for _ in range(count(b, p, {size}, 1)):")
            element = self.value(field._replace(array=False, nullable=False), depth + 2)
            self.emit(depth + 2, f"{name}.append({element})")
        return name

    def tags(self, fields: list[Field], out: str, depth: int) -> None:
        count, tag, size, end = (self.fresh(prefix) for prefix in "ctze")
        self.emit(depth, f"{count} = b[p]; p += 1")
        self.emit(depth, f"if {count} > 127: {count}, p = uvarint(b, p - 1)")
        self.spend(depth, count)
        self.emit(depth, f"for _ in range({count}):")
        for name in (tag, size):
            self.emit(depth + 1, f"{name} = b[p]; p += 1")
            self.emit(depth + 1, f"if {name} > 127: {name}, p = uvarint(b, p - 1)")
        self.emit(depth + 1, f"{end} = p + count(b, p, {size}, 1)")
        keyword = "if"
        for field in fields:
            self.emit(depth + 1, f"{keyword} {tag} == {field.tag}:")
            keyword = "elif"
            value = self.value(field, depth + 2)
            self.emit(depth + 2, f"{out}[{field.name!r}] = {value}")
            self.emit(depth + 2, f"tag_end(p, {end}, {tag})")
        keep = f"keep_tag({out}, {tag}, blob(b, p, {size})); p = {end}"
        if fields:
            self.emit(depth + 1, "else:")
        self.emit(depth + (2 if fields else 1), keep)
