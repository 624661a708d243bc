"""Encode messages by their declarations, for requests and records; the inverse of :mod:`kshell.protocol.decoder`."""

from __future__ import annotations

import struct
from typing import Any

from kshell.protocol.decoder import FIXED, UNKNOWN_TAGS, Message
from kshell.protocol.primitives import ZERO_UUID, write_uvarint
from kshell.protocol.schema import Field, Schema


def encode(schema: Schema, version: int, message: Message) -> bytes:
    """Encode ``message`` at ``version``. Absent fields get their default; absent tagged fields are not written."""
    if version not in schema.versions:
        raise ValueError(f"{schema.name} has no version {version}, only {schema.versions}")
    return _struct(schema.fields, message, version, version >= schema.flexible)


def _struct(fields: tuple[Field, ...], message: Message, version: int, flexible: bool) -> bytes:
    mine = [field for field in fields if version in field.versions]
    out = [_value(f, message.get(f.name, f.default), version, flexible) for f in mine if f.tag is None or not flexible]
    if flexible:
        tagged = {
            f.tag: _value(f, message[f.name], version, flexible)
            for f in mine
            if f.tag is not None and f.name in message
        }
        tagged |= {unknown["tag"]: unknown["data"] for unknown in message.get(UNKNOWN_TAGS, ())}
        out.append(write_uvarint(len(tagged)))
        for tag, data in sorted(tagged.items()):
            out.append(write_uvarint(tag) + write_uvarint(len(data)) + data)
    return b"".join(out)


def _length(size: int, kind: str, flexible: bool) -> bytes:
    """Encode a length or count; ``size`` -1 means null."""
    if flexible:
        return write_uvarint(size + 1)
    return struct.pack(">h" if kind == "string" else ">i", size)


def _value(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    if field.array:
        if value is None:
            return _length(-1, "array", flexible)
        element = field._replace(array=False, nullable=False)  # the question mark is the list's, not its elements'
        return _length(len(value), "array", flexible) + b"".join(_value(element, v, version, flexible) for v in value)
    if field.is_struct:
        if field.nullable:
            return b"\xff" if value is None else b"\x01" + _struct(field.fields, value, version, flexible)
        return _struct(field.fields, value or {}, version, flexible)
    if field.type == "uuid":
        return bytes(value if value is not None else ZERO_UUID)
    if field.type == "bool":
        return b"\x01" if value else b"\x00"
    if field.type in FIXED:
        return struct.pack(">" + FIXED[field.type], value)
    if value is None:
        return _length(-1, field.type, flexible)
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return _length(len(raw), field.type, flexible) + raw
