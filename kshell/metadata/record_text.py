"""Records as the JSON text that ``dump`` prints of them, mostly without decoding.

Records of one type differ in the numbers and ids that they begin with (a partition, its topic). What follows those, a
change of leader and ISR, is that of many others: its text is made once.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kshell.json_text import to_json
from kshell.metadata.records import HEAD_SIZE, Decoded, RecordType, decode_value
from kshell.metadata.redaction import Redaction
from kshell.protocol.decoder import FIXED
from kshell.protocol.primitives import Buffer, Uuid
from kshell.protocol.schema import Field

_CODES = {kind: code for kind, code in FIXED.items() if kind != "float64"} | {"uuid": "16s"}
"""How fields are read whose text is theirs and nobody else's: a number may be no number."""
_MOST_TEXTS = 1 << 15
_MOST_CHARACTERS = 4 << 20
"""Of all texts that are remembered."""
_LONGEST = 1 << 10
"""Bytes of a value whose text may be that of another one, too."""


class _Leading(NamedTuple):
    """The fields of fixed size that a type's messages begin with."""

    names: tuple[str, ...]
    fields: struct.Struct
    uuids: tuple[int, ...]
    """Which of the fields are ids."""
    template: str
    """The text of a row from the type on, up to these fields."""
    end: int
    """Of the fields, counted from the value's first byte."""


class RecordTexts:
    """Texts of metadata records, secrets hidden."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._leading: dict[bytes, _Leading] = {}
        """The first :data:`HEAD_SIZE` bytes of a value -> what its message begins with."""
        self._rests: dict[bytes, str] = {}
        """The same bytes, and those after the leading fields -> the text from there on."""
        self._uuids: dict[bytes, str] = {}
        self._characters = 0

    def text(self, region: Buffer, start: int, end: int) -> str | None:
        """Return the part of a row that describes a record: ``"type":…,"version":…,"data":{…}}``, escaped.

        Args:
            region: the bytes that its value is in.
            start: the value's first byte.
            end: the byte after its last one.

        Returns:
            ``None`` for a value that cannot be decoded.
        """
        head = region[start : start + HEAD_SIZE]
        leading = self._leading.get(head)
        rest = None if leading is None else self._rests.get(head + region[start + leading.end : end])
        if leading is None or rest is None:
            return self._learn(bytes(region[start:end]))
        return self._led(leading, region, start) + rest

    def _led(self, leading: _Leading, region: Buffer, start: int) -> str:
        values = list(leading.fields.unpack_from(region, start + HEAD_SIZE))
        for place in leading.uuids:
            values[place] = self._uuids.get(values[place]) or self._uuid(values[place])
        return leading.template % tuple(values)

    def _uuid(self, value: bytes) -> str:
        if len(self._uuids) >= _MOST_TEXTS:
            self._uuids.clear()
        text = self._uuids[value] = str(Uuid(value))
        return text

    def _learn(self, value: bytes) -> str | None:
        """The text of a value that is like none before it."""
        decoded = decode_value(value)
        if decoded.type is None or decoded.data is None:
            return None
        head = value[:HEAD_SIZE]
        leading = self._leading.get(head)
        if leading is None:
            leading = self._leading[head] = _leading(decoded.type, decoded)
        printed = self._redaction.record(decoded)
        below = {name: field for name, field in printed.items() if name not in leading.names}
        comma = "," if leading.names and below else ""
        rest = f"{comma}{to_json(below)[1:]}}}"
        if len(value) <= _LONGEST:
            self._characters += len(rest)
            if len(self._rests) >= _MOST_TEXTS or self._characters > _MOST_CHARACTERS:
                self._rests.clear()
                self._characters = len(rest)
            self._rests[head + value[leading.end :]] = rest
        return self._led(leading, value, 0) + rest


def _leading(kind: RecordType, decoded: Decoded) -> _Leading:
    """What the messages of a type and version begin with; nothing where some of their fields are hidden."""
    fields: list[Field] = []
    for field in () if kind.schema.secrets else kind.schema.fields:
        if decoded.version in field.versions:
            if field.type not in _CODES or field.array or field.tag is not None:
                break
            fields.append(field)
    codes = struct.Struct(">" + "".join(_CODES[field.type] for field in fields))
    uuids = tuple(place for place, field in enumerate(fields) if field.type == "uuid")
    parts = [f'"{field.name}":' + ('"%s"' if field.type == "uuid" else "%d") for field in fields]
    template = f'"type":"{decoded.name}","version":{decoded.version},"data":{{{",".join(parts)}'
    return _Leading(tuple(field.name for field in fields), codes, uuids, template, HEAD_SIZE + codes.size)
