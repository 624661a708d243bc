"""Make the rows of the view ``records``: those of :mod:`kshell.columnar.records`, and where each record is.

Values that all records of a batch share are stored once per batch; only requested columns are made.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from kshell.columnar.framing import Framed
from kshell.columnar.records import RecordsByColumn, Single, repeated
from kshell.errors import MissingCodecError
from kshell.history.records import only
from kshell.metadata.redaction import Redaction
from kshell.protocol.batches import Batch
from kshell.protocol.primitives import DecodeError
from kshell.spark.decoding.single_records import records
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


class Records(RecordsByColumn):
    """Collects batches with :meth:`place`, and decodes them into record batches with :meth:`rows`.

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
        super().__init__(redaction, (field.name for field in fields))
        self._schema = _with_dictionaries(schema(arrow, fields)) if dictionaries else schema(arrow, fields)
        self._narrowing = narrowing
        self._wanted = None if narrowing.types is None else only(narrowing.types)
        self._raises = is_whole
        self._shared: list[Shared] = []
        self.broken = 0
        """How many batches that were taken could not be read completely."""

    def place(self, shared: Shared, batch: Batch) -> None:
        """Add a batch whose CRC is good."""
        self.add(batch)
        self._shared.append(shared)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Decode all collected batches and forget them; yields one ``pyarrow.RecordBatch``, or none without rows."""
        made = self.take()
        shared = dict(zip(_SHARED, zip(*self._shared, strict=True), strict=True)) if self._shared else {}
        self._shared = []
        if made.count:
            columns = [
                repeated(shared[name], made.batch, kind) if name in shared else made.column(name, kind)
                for name, kind in zip(self._schema.names, self._schema.types, strict=True)
            ]
            yield arrow.record_batch(columns, schema=self._schema)

    def selected(self, framed: Framed) -> Framed:
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
        mask |= np.array([shared[_SNAPSHOT] for shared in self._shared], bool)[framed.batch]
        if self._wanted is not None:
            mask &= self._values.are_wanted(framed, self._wanted)
        return framed if mask.all() else framed.only(mask)

    def one_by_one(self, index: int) -> Iterator[Single]:
        """Decode the records of a batch of another form as far as possible; the view ``quarantine`` has the reason."""
        log = not self._shared[index][_SNAPSHOT]
        try:
            for raw, decoded in records(self._batches[index], self._narrowing, self._wanted, log=log):
                yield Single(raw.offset, raw.timestamp, decoded)
        except MissingCodecError as error:
            if self._raises:
                _, _, file, _, position, _ = self._shared[index]
                raise error.at(file, position) from None
            self.broken += 1
        except DecodeError:
            self.broken += 1


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary encoding for the columns of texts that many records share."""
    kind = arrow.dictionary(arrow.int32(), arrow.string())
    return arrow.schema([field.with_type(kind) if field.name in _TEXTS else field for field in schema])
