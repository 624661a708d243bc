"""Decode the values of records to type, version and JSON text: most by shape; the rest is left to the caller."""

from __future__ import annotations

import binascii
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kshell.columnar.framing import Framed
from kshell.columnar.shapes import FIXED, Secrets, Steps, Unshaped, steps
from kshell.columnar.walk import LEAST, FixedSlot, TextSlot, ValueShape, Walk
from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.records import FRAME_VERSION, HEAD_SIZE, Decoded, RecordType, record_types
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.metadata.values import enum_name
from kshell.protocol.batches import RawRecord
from kshell.tables.arrow import json_text

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from kshell.columnar.framing import Bytes, Ints, Mask
    from kshell.sources.directory.records import Wanted

    FixedColumn = NDArray[Any]
    """Values of one fixed size, of any type."""
    Part: TypeAlias = str | Bytes | pa.StringArray
    """Constant text, a matrix with the bytes of a text per row, or texts."""

arrow: ModuleType = importlib.import_module("pyarrow")
compute: ModuleType = importlib.import_module("pyarrow.compute")
np: ModuleType = importlib.import_module("numpy")

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
            for shape in walk.shapes(steps, rows, framed.start[rows] + HEAD_SIZE):
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
    frame, key, version = (buf.take(at + place, mode="clip").astype(np.int64) for place in range(HEAD_SIZE))
    good = (frame == FRAME_VERSION) & (key < _VERSIONS) & (version < _VERSIONS) & (framed.end - at >= HEAD_SIZE)
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


# --- JSON texts of values of one shape, exactly as the encoder of json prints each of them ---------------------------

Hides = Callable[[int, str], bool]
"""(resource type, config key) -> whether the config's value is redacted."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_PLAIN = bytes(byte for byte in range(0x20, 0x80) if byte not in b'"\\')
"""Bytes that need no escape in a JSON string."""
_IS_PLAIN = np.isin(np.arange(256), np.frombuffer(_PLAIN, np.uint8))
_ID, _SIZE = 22, 16
"""Characters of a UUID in base64, and its bytes."""
_BOOLEANS = arrow.array(["false", "true"])


class Texts:
    """Prints shapes whose values are in ``data``. ``hidden`` is printed for config values that ``hides`` redacts."""

    def __init__(self, data: bytes, hides: Hides, hidden: str) -> None:
        self._data = data
        self._buffer = arrow.py_buffer(data)
        self._hides = hides
        self._hidden = hidden

    def of(self, shape: ValueShape) -> tuple[pa.StringArray, Ints | None]:
        """Return the texts of ``shape.rows`` (a string array), and the rows among them that need escapes, or ``None``.

        The texts are without these rows, an index array, which the caller decodes one by one.
        """
        texts, plain = self._spans(shape)
        if not plain.all():
            escaped = shape.rows[~plain]
            shape = shape.only(plain)
            return (self.of(shape)[0] if len(shape) else arrow.array([], arrow.string())), escaped
        values = self._values(shape)
        parts: list[Part] = []
        for number, item in enumerate(shape.items):
            if isinstance(item, str):
                parts.append(item)
            elif isinstance(item, TextSlot):
                parts += ['"', self._redacted(shape, number, texts, values), '"']
            else:
                parts += self._text(item, values[number])
        return _joined(parts, len(shape)), None

    def _spans(self, shape: ValueShape) -> tuple[dict[int, pa.StringArray], Mask]:
        """Return, by number of the item, the array of each text, and a mask of the values that need no escape."""
        arrays: dict[int, pa.StringArray] = {}
        plain = np.ones(len(shape), bool)
        evens = arrow.array(np.arange(0, 2 * len(shape), 2))
        for number, item in enumerate(shape.items):
            if not isinstance(item, TextSlot):
                continue
            start = shape.bases[item.base] + item.at
            end = shape.bases[item.until] if item.length is None else start + item.length
            # The texts, alternating with the bytes between them, are an Arrow array without copying.
            borders = np.stack((start, end), axis=1).astype(np.int32)
            every = arrow.StringArray.from_buffers(2 * len(shape) - 1, arrow.py_buffer(borders), self._buffer)
            arrays[number] = every.take(evens)
            _, offsets, chars = arrays[number].buffers()
            ends = np.frombuffer(offsets, np.int32)[1 : len(shape) + 1]
            text = b"" if chars is None else chars[: ends[-1]].to_pybytes()
            if text.translate(None, _PLAIN):
                unsafe = np.flatnonzero(~_IS_PLAIN[np.frombuffer(text, np.uint8)])
                plain[np.searchsorted(ends, unsafe, side="right")] = False
        return arrays, plain

    def _values(self, shape: ValueShape) -> dict[int, FixedColumn]:
        """Return the values of each item of fixed size, by its number; items at one base are read together."""
        columns: dict[int, FixedColumn] = {}
        for base in range(len(shape.bases)):
            here = {n: item for n, item in enumerate(shape.items) if isinstance(item, FixedSlot) and item.base == base}
            if not here:
                continue
            kind = np.dtype(
                {
                    "names": [str(number) for number in here],
                    "formats": [FIXED[item.field.type] for item in here.values()],
                    "offsets": [item.at for item in here.values()],
                }
            )
            every = np.ndarray((len(self._data) - kind.itemsize + 1,), f"V{kind.itemsize}", self._data, strides=(1,))
            taken = every[shape.bases[base]].view(kind)
            columns |= {number: taken[str(number)] for number in here}
        return columns

    def _redacted(
        self, shape: ValueShape, number: int, texts: dict[int, pa.StringArray], values: dict[int, FixedColumn]
    ) -> pa.StringArray:
        """Return the texts of an item, with secret ones replaced if the item depends on the config key."""
        item = shape.items[number]
        if not isinstance(item, TextSlot) or not item.field.follows:
            return texts[number]
        (key,) = (
            texts[n] for n, item in enumerate(shape.items) if isinstance(item, TextSlot) and item.field.name == "name"
        )
        (kind,) = (
            values[n]
            for n, item in enumerate(shape.items)
            if isinstance(item, FixedSlot) and item.field.name == "resourceType"
        )
        keys = key.dictionary_encode()
        names = keys.dictionary.to_pylist()
        pairs = kind.astype(np.int64) * len(names) + keys.indices.to_numpy()
        each, positions = np.unique(pairs, return_inverse=True)
        hidden = np.array([self._hides(pair // len(names), names[pair % len(names)]) for pair in each.tolist()])
        return compute.if_else(arrow.array(hidden[positions]), self._hidden, texts[number])

    def _text(self, item: FixedSlot, column: FixedColumn) -> list[Part]:
        """Print values of fixed size, as parts: string arrays, or byte matrices if all texts have one length."""
        if item.field.type == "uuid":
            return ['"', _ids(column), '"']
        if item.field.type == "bool":
            return [_BOOLEANS.take(arrow.array((column != 0).astype(np.int8)))]
        if item.field.type == "float64":
            return [arrow.array(_reals(column))]
        native = column.astype(column.dtype.newbyteorder("="))
        return [compute.cast(arrow.array(native), arrow.string())]


def _ids(column: FixedColumn) -> Any:
    """Print UUIDs as URL-safe base64. 16 bytes are padded to 18, which give 24 characters; the first 22 are used."""
    padded = np.zeros((len(column), _SIZE + 2), np.uint8)
    padded[:, :_SIZE] = np.ascontiguousarray(column).view(np.uint8).reshape(-1, _SIZE)
    text = binascii.b2a_base64(padded, newline=False).translate(_URL_SAFE)
    return np.frombuffer(text, np.uint8).reshape(len(column), -1)[:, :_ID]


def _reals(column: FixedColumn) -> list[str]:
    """Print floats as JSON; only NaN and infinity need the slower encoder."""
    encode: Callable[[float], str] = float.__repr__ if np.isfinite(column).all() else json.JSONEncoder().encode
    return [encode(value) for value in column.tolist()]


def _joined(parts: Iterable[Part], count: int) -> pa.StringArray:
    """Concatenate parts (constant text, byte matrices, string arrays) to one array of ``count`` texts."""
    columns: list[Any] = []
    fixed: list[Any] = []
    for part in [*parts, None]:
        if isinstance(part, str | np.ndarray):
            fixed.append(part)
            continue
        if fixed:
            columns.append(_fixed(fixed, count))
            fixed = []
        if part is not None:
            columns.append(part)
    if not any(isinstance(column, arrow.Array) for column in columns):
        return arrow.repeat("".join(columns), count)
    return columns[0] if len(columns) == 1 else compute.binary_join_element_wise(*columns, "")


def _fixed(parts: list[Any], count: int) -> Any:
    """Concatenate parts that have the same length in all values; constant text alone stays text."""
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    blocks = [np.frombuffer(part.encode(), np.uint8) if isinstance(part, str) else part for part in parts]
    width = sum(block.shape[-1] for block in blocks)
    matrix, at = np.empty((count, width), np.uint8), 0
    for block in blocks:
        matrix[:, at : at + block.shape[-1]] = block
        at += block.shape[-1]
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return arrow.StringArray.from_buffers(count, arrow.py_buffer(offsets), arrow.py_buffer(matrix))
