"""The JSON text that ``dump`` prints for a record, mostly without decoding the record.

Records of one type differ mostly in the *leading* fields (numbers and ids: a partition, its topic). The rest, such as a
change of leader and ISR, recurs in many records, so its text is made once and cached.
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
"""Type of a leading field -> its code for ``struct``. Not float64, because NaN is no JSON number."""
_MOST_TEXTS = 1 << 15
_MOST_CHARACTERS = 4 << 20
"""Characters of all cached texts together."""
_LONGEST = 1 << 10
"""The largest record value, in bytes, for which the text after the leading fields is cached: longer ones hardly recur.
"""


class _Leading(NamedTuple):
    """The leading fields of a type and version: those of fixed size that its messages begin with."""

    names: tuple[str, ...]
    fields: struct.Struct
    uuids: tuple[int, ...]
    """The indexes of the fields that are UUIDs."""
    template: str
    """The text from ``"type"`` to the last leading field, as a format of ``%`` for the fields' values."""
    end: int
    """The position in the record's value after these fields."""


class RecordTexts:
    """Makes the texts of metadata records, with secrets redacted."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._leading: dict[bytes, _Leading] = {}
        """Head of a value -> the leading fields of its message."""
        self._rests: dict[bytes, str] = {}
        """Head of a value, followed by the bytes after the leading fields -> the text of the latter."""
        self._uuids: dict[bytes, str] = {}
        self._characters = 0

    def text(self, region: Buffer, start: int, end: int) -> str | None:
        """Return the end of the JSON object that describes a record: ``"type":…,"version":…,"data":{…}}``, escaped.

        Args:
            region: the bytes that the record's value is in.
            start: the position of its first byte.
            end: the position after its last byte.

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
        """Return the text up to and with the leading fields."""
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
        """Decode a value and return its text; cache its leading fields and the text of the rest."""
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
    """Return the leading fields of a record's type and version; none for a type with secret fields."""
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
