"""The fixed fields of many PartitionChangeRecords, and what else they have in common, as columns."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from kshell.columnar.framing import Framed
from kshell.metadata.partition_changes import NUMBER, PARTITION_CHANGE, REST, TOPIC_ID
from kshell.metadata.records import HEAD_SIZE

if TYPE_CHECKING:
    from kshell.columnar.framing import Bytes, Ints

arrow: ModuleType = importlib.import_module("pyarrow")
np: ModuleType = importlib.import_module("numpy")


class ChangeColumns(NamedTuple):
    """The PartitionChangeRecords among framed records, one element per record; all columns are numpy arrays."""

    rows: Ints
    """Their indexes among the framed records."""
    number: Ints
    topic: Ints
    """The index of the topic in ``topic_ids``."""
    topic_ids: list[bytes]
    essence: Ints
    """The index of the record's essence, see :mod:`kshell.metadata.partition_changes`, in ``essences``."""
    essences: list[bytes]


def change_columns(framed: Framed) -> ChangeColumns:
    """Select the values that have the api key and the size of a PartitionChangeRecord; the rest is not decoded."""
    buf, size = framed.buf, framed.end - framed.start
    rows = np.flatnonzero((size >= REST) & (framed.api_keys == PARTITION_CHANGE))
    start, size = framed.start[rows], size[rows]
    number = _spans(buf, start + NUMBER.start, NUMBER.stop - NUMBER.start).view(">i4").ravel()
    topic, topic_ids = _encoded(_spans(buf, start + TOPIC_ID.start, TOPIC_ID.stop - TOPIC_ID.start))
    essence, essences = np.zeros(len(rows), np.int64), list[bytes]()
    for length in np.unique(size).tolist():
        same = np.flatnonzero(size == length)
        heads, rests = _spans(buf, start[same], HEAD_SIZE), _spans(buf, start[same] + REST, length - REST)
        indexes, values = _encoded(np.concatenate((heads, rests), axis=1))
        essence[same] = indexes + len(essences)
        essences += values
    return ChangeColumns(rows, number.astype(np.int64), topic, topic_ids, essence, essences)


def _spans(buf: Bytes, start: Ints, length: int) -> Bytes:
    """Return ``length`` bytes from each position on, as a matrix."""
    spans: Bytes = np.zeros((len(start), length), np.uint8)
    if spans.size:
        spans = np.lib.stride_tricks.sliding_window_view(buf, length)[start]
    return spans


def _encoded(matrix: Bytes) -> tuple[Ints, list[bytes]]:
    """Return the different lines of a matrix of bytes, and the index among them of each line."""
    count, width = matrix.shape
    lines = arrow.Array.from_buffers(arrow.binary(width), count, [None, arrow.py_buffer(np.ascontiguousarray(matrix))])
    encoded = lines.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
