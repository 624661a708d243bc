"""From a declaration, straight-line Python that finds the key of a message without decoding it.

A log repeats its keys: what a record says matters only if no later one has its key. So the key is read first, and with
it that the rest of the message is sound; the message is decoded if it turns out to be the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshell.protocol.primitives import Buffer, DecodeError, read_uvarint
from kshell.protocol.schema import Field, Schema

KeyReader = Callable[[Buffer, int, int], "tuple[bytes, bytes, bool] | None"]
"""(buffer, where the message begins, where it ends) -> (the bytes of the key's first part, those of the rest of it,
whether the message is a tombstone)."""

_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
_ONE_BYTE = 0x7F
"""The largest number that a varint of one byte holds."""


def key_reader(
    schema: Schema, version: int, key: tuple[str, ...], tombstone: str | bool, first_part: int = 0
) -> KeyReader:
    """Make the reader of a flexible version.

    Args:
        schema: what the message is.
        version: one of the schema's.
        key: top-level fields that lie side by side, in the order of the message.
        tombstone: whether every such message removes its key, or the nullable or boolean field that decides it.
        first_part: how many fields of the key are its first part.

    Returns:
        A reader that never raises. It returns ``None`` for a message that must be decoded to be understood: one that
        is malformed, has tagged fields, a text of more than 126 bytes in its key, or, as a tombstone, an array of
        several elements there, for their order may say nothing. Otherwise :func:`~.decoder.decoder` succeeds on it,
        and messages with one key have the same bytes, unless such an array is in it.
    """
    if version < schema.flexible:
        raise ValueError(f"{schema.name} v{version} is not flexible")
    emitter = _Emitter(version, key, tombstone, first_part)
    return emitter.function(schema.fields)


class _Emitter:
    """Writes the source of one reader. ``b`` is the buffer, ``p`` the position, throughout."""

    def __init__(self, version: int, key: tuple[str, ...], tombstone: str | bool, first_part: int) -> None:
        self.version = version
        self.key = key
        self.tombstone = tombstone
        self.first_part = first_part
        self.lines: list[str] = []

    def function(self, fields: tuple[Field, ...]) -> KeyReader:
        self.lines = ["def read(b, p, stop):", "    try:"]
        self.emit(2, f"removes, several = {self.tombstone is True}, False")
        mine = [field for field in fields if self.version in field.versions and field.tag is None]
        names = [field.name for field in mine]
        first = names.index(self.key[0]) if self.key else 0
        if tuple(names[first : first + len(self.key)]) != self.key:
            raise ValueError(f"the fields {', '.join(self.key)} do not lie side by side")
        marks = {"start": first, "middle": first + self.first_part, "end": first + len(self.key)}
        for at in range(len(mine) + 1):
            for name, position in marks.items():
                if position == at:
                    self.emit(2, f"{name} = p")
            if at < len(mine):
                self.field(mine[at], 2, is_key=mine[at].name in self.key)
        self.emit(2, "if p + 1 != stop or b[p] or removes and several: return None")
        self.emit(2, "return b[start:middle], b[middle:end], removes")
        self.emit(1, "except (IndexError, DecodeError): return None")
        names_in_scope: dict[str, Any] = {"uvarint": read_uvarint, "DecodeError": DecodeError}
        exec("\n".join(self.lines), names_in_scope)  # the text is made from our own declarations only
        made: KeyReader = names_in_scope["read"]
        return made

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def field(self, field: Field, depth: int, *, is_key: bool) -> None:
        decides = field.name == self.tombstone
        if field.array:
            self.array(field, depth, is_key=is_key)
        elif field.type in _SIZES:
            if decides:
                self.emit(depth, "removes = b[p] != 0")
            self.emit(depth, f"p += {_SIZES[field.type]}")
        elif field.is_struct:
            self.struct(field, depth, is_key=is_key)
        else:
            self.text(field, depth, is_key=is_key, decides=decides)

    def text(self, field: Field, depth: int, *, is_key: bool, decides: bool) -> None:
        """A string or bytes: the length and one in a varint, 0 for null."""
        self.emit(depth, "n = b[p]")
        if decides:
            self.emit(depth, "removes = not n")
        if not field.nullable:
            self.emit(depth, "if not n: return None")
        self.emit(depth, f"if n <= {_ONE_BYTE}: p += {'n or 1' if field.nullable else 'n'}")
        if is_key:
            self.emit(depth, "else: return None")
        else:
            self.emit(depth, "else:")
            self.emit(depth + 1, "n, p = uvarint(b, p)")
            # A null of two bytes is one, too.
            self.emit(depth + 1, f"if n <= {_ONE_BYTE}: return None")
            self.emit(depth + 1, "p += n - 1")

    def array(self, field: Field, depth: int, *, is_key: bool) -> None:
        counter = f"n{depth}"
        self.emit(depth, f"{counter} = b[p]; p += 1")
        self.emit(depth, f"if not 0 < {counter} <= {_ONE_BYTE}: return None")
        if is_key:
            self.emit(depth, f"several = several or {counter} > 2")
        self.emit(depth, f"for _ in range({counter} - 1):")
        self.field(field._replace(array=False, nullable=False), depth + 1, is_key=is_key)

    def struct(self, field: Field, depth: int, *, is_key: bool) -> None:
        if field.nullable:
            raise ValueError(f"{field.name}: a struct that may be null")
        for part in field.fields:
            if self.version in part.versions and part.tag is None:
                self.field(part, depth, is_key=is_key)
        self.emit(depth, "if b[p]: return None")
        self.emit(depth, "p += 1")
