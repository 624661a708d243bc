"""Make the rows of the view ``records``: those of :mod:`kshell.columnar.records`, and where each record is.

Values that all records of a batch share are stored once per batch; only requested columns are made.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from kshell.columnar.framing import Framed
from kshell.columnar.records import BatchDecoder, RecordColumns, Single, repeated
from kshell.errors import MissingCodecError
from kshell.history.records import only
from kshell.metadata.redaction import Redaction
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import DecodeError
from kshell.spark.decoding.decode import records
from kshell.spark.options import Narrowing
from kshell.tables.arrow import schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa

arrow: ModuleType = importlib.import_module("pyarrow")
np: ModuleType = importlib.import_module("numpy")

Shared = tuple[str | None, int | None, str, bool, int, int]
"""The values that all records of a batch share: clusterId, nodeId, file, isSnapshot, position, epoch."""
_SHARED = ("clusterId", "nodeId", "file", "isSnapshot", "position", "epoch")
_SNAPSHOT = _SHARED.index("isSnapshot")
_TEXTS = ("clusterId", "file", "type")
_DATA_COLUMNS = frozenset(("data", "reason", "raw"))
"""Columns that need the values decoded completely, not only their types."""


class Records(BatchDecoder[Shared]):
    """Decodes batches into the columns of the view.

    Args:
        fields: the requested columns of the view, in any order.
        is_whole: raise MissingCodecError for a batch whose codec is not installed, instead of counting it as broken.
        dictionaries: make dictionary-encoded columns of the texts that many rows share, for writing them to a file.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        narrowing: Narrowing,
        redaction: Redaction,
        *,
        is_whole: bool = False,
        dictionaries: bool = False,
    ) -> None:
        columns = schema(arrow, fields)
        super().__init__(
            _with_dictionaries(columns) if dictionaries else columns,
            redaction,
            with_data=not _DATA_COLUMNS.isdisjoint(columns.names),
        )
        self._narrowing = narrowing
        self._wanted = None if narrowing.types is None else only(narrowing.types)
        self._raises = is_whole
        self.broken = 0
        """How many batches that were taken could not be read completely."""

    def _column(self, columns: RecordColumns, name: str, kind: pa.DataType) -> pa.Array:
        if name in _SHARED:
            place = _SHARED.index(name)
            return repeated([shared[place] for shared in self._contexts], columns.batch, kind)
        return columns.column(name, kind)

    def _selected(self, framed: Framed) -> Framed:
        """Select the wanted records. Of snapshots only types count: their offsets and times are not the log's."""
        since, until = self._narrowing.since, self._narrowing.until
        mask = np.ones(len(framed.offset), bool)
        for column, least, most in (
            (framed.offset, since.offset, until.offset),
            (framed.timestamp, since.time_ms, until.time_ms),
        ):
            if least is not None:
                mask &= column >= least
            if most is not None:
                mask &= column <= most
        mask |= np.array([shared[_SNAPSHOT] for shared in self._contexts], bool)[framed.batch]
        if self._wanted is not None:
            mask &= self._values.are_wanted(framed, self._wanted)
        return framed if mask.all() else framed.only(mask)

    def _one_by_one(self, batch: Batch, context: Shared) -> Iterator[Single]:
        """Decode the records as far as possible; the view ``quarantine`` has the reason where they end."""
        _, _, file, is_snapshot, position, _ = context
        try:
            for raw, decoded in records(batch, self._narrowing, self._wanted, log=not is_snapshot):
                yield Single(raw.offset, raw.timestamp, decoded)
        except MissingCodecError as error:
            if self._raises:
                raise error.at(file, position) from None
            self.broken += 1
        except DecodeError:
            self.broken += 1


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary encoding for the columns of texts that many records share."""
    kind = arrow.dictionary(arrow.int32(), arrow.string())
    return arrow.schema([field.with_type(kind) if field.name in _TEXTS else field for field in schema])
