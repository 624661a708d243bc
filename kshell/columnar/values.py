"""Decode the values of records to type, version and JSON text: most by shape; the rest is left to the caller."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.columnar.framing import Framed
from kshell.columnar.shapes import Secrets, Steps, Unshaped, steps
from kshell.columnar.texts import Texts
from kshell.columnar.walk import LEAST, Walk
from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.records import FRAME_VERSION, Decoded, RecordType, record_types
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.metadata.values import enum_name
from kshell.protocol.batches import RawRecord
from kshell.tables.arrow import json_text

if TYPE_CHECKING:
    import pyarrow as pa

    from kshell.columnar.framing import Ints
    from kshell.sources.directory.records import Wanted

np: ModuleType = importlib.import_module("numpy")

_HEAD = 3
"""Bytes at the start of a value: frame version, api key and version, one byte each in every known type."""
_VERSIONS = 128
"""Api keys and versions from this number on take more than one byte."""


class Group(NamedTuple):
    """Values of one type and version: their rows (an index array), and their JSON texts (``None``: not requested)."""

    name: str
    version: int
    rows: Ints
    texts: pa.StringArray | None


class Values:
    """Decodes values of framed records by shape. ``with_data``: whether the JSON texts are needed, or only types."""

    def __init__(self, redaction: Redaction, *, with_data: bool) -> None:
        self._redaction = redaction
        self._with_data = with_data
        self._steps: dict[int, tuple[RecordType, int, Steps] | None] = {}

    def decode(self, framed: Framed) -> tuple[list[Group], Ints]:
        """Return the values that were decoded, in groups, and the sorted rows that must be decoded one by one."""
        groups: list[Group] = []
        walk = Walk(framed.buf, framed.end)
        texts = Texts(framed.data, self._hides, REDACTED)
        for code, rows in _by_head(framed):
            head = self._head(code)
            if head is None or len(rows) < LEAST:
                walk.undecoded_rows.append(rows)
                continue
            kind, version, steps = head
            if not self._with_data:
                groups.append(Group(kind.name, version, rows, None))
                continue
            for shape in walk.shapes(steps, rows, framed.start[rows] + _HEAD):
                text, undecoded = texts.of(shape)
                if undecoded is None:
                    groups.append(Group(kind.name, version, shape.rows, text))
                else:
                    walk.undecoded_rows.append(undecoded)
                    groups.append(
                        Group(kind.name, version, np.setdiff1d(shape.rows, undecoded, assume_unique=True), text)
                    )
        return groups, np.sort(np.concatenate([np.zeros(0, np.int64), *walk.undecoded_rows]))

    def are_wanted(self, framed: Framed, wanted: Wanted) -> Any:
        """Return a mask of the records whose types are wanted."""
        mask = np.zeros(len(framed.offset), bool)
        for code, rows in _by_head(framed):
            if code >= 0:  # a known head: the type depends on nothing else, so one record decides for all
                mask[rows] = wanted(RawRecord(0, 0, None, framed.value(rows[0])), False)
            else:
                mask[rows] = [wanted(RawRecord(0, 0, None, framed.value(row)), False) for row in rows]
        return mask

    def _head(self, code: int) -> tuple[RecordType, int, Steps] | None:
        if code not in self._steps:
            self._steps[code] = _learn(code, self._redaction)
        return self._steps[code]

    def _hides(self, kind: int, key: str) -> bool:
        return self._redaction.config(enum_name(RESOURCE_TYPES, kind), key, "") == REDACTED


def _by_head(framed: Framed) -> Iterator[tuple[int, Ints]]:
    """Group all values by their head: (api key * 128 + version, rows); -1 for values with an unknown frame."""
    buf, at = framed.buf, framed.start
    frame, key, version = (buf.take(at + place, mode="clip").astype(np.int64) for place in range(_HEAD))
    good = (frame == FRAME_VERSION) & (key < _VERSIONS) & (version < _VERSIONS) & (framed.end - at >= _HEAD)
    code = np.where(good, key * _VERSIONS + version, -1)
    for shifted in np.flatnonzero(np.bincount(code + 1)).tolist():
        yield shifted - 1, np.flatnonzero(code == shifted - 1)


def _learn(code: int, redaction: Redaction) -> tuple[RecordType, int, Steps] | None:
    """Return type, version and decoding steps of a head; ``None`` if its values must be decoded one by one."""
    api_key, version = divmod(code, _VERSIONS)
    kind = record_types().get(api_key) if code >= 0 else None
    if kind is None or version not in kind.schema.versions:
        return None
    try:
        return kind, version, steps(kind.schema, version, _secrets(kind, version, redaction))
    except Unshaped:
        return None


def _secrets(kind: RecordType, version: int, redaction: Redaction) -> Secrets:
    """Return how the fields of a type are redacted, by letting the redaction itself process an example record."""
    if redaction.show_secrets:
        return Secrets()
    follow = frozenset(name for name, secrecy in kind.schema.secrets.items() if secrecy == "secret:config")
    hidden = kind.schema.secrets.keys() - follow
    redacted = redaction.record(Decoded(kind.name, version, kind, dict.fromkeys(hidden), None))
    return Secrets({name: json_text(redacted[name]) for name in hidden}, follow)
