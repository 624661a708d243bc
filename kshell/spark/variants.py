"""Convert JSON columns to Spark's type VARIANT, for the option ``variant`` of the data source. Needs pyspark 4.1.

In Arrow, Spark expects a variant as a struct of two binary fields (``pyspark.sql.pandas.types.to_arrow_type``). pyspark
itself encodes JSON to these fields (the Variant binary encoding of Apache Parquet).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kshell.spark.schemas import spark_schema
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import VariantVal


def variant_schema(fields: Sequence[Field]) -> Any:
    """Return the ``StructType`` of columns, with VARIANT for those of type ``json``."""
    types: ModuleType = importlib.import_module("pyspark.sql.types")
    schema = spark_schema(fields)
    for column, field in zip(schema.fields, fields, strict=True):
        if field.type == "json":
            column.dataType = types.VariantType()
    return schema


def with_variants(batches: Iterable[pa.RecordBatch], fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Replace JSON texts in record batches by variants; a text that many rows share is parsed once per batch."""
    arrow: ModuleType = importlib.import_module("pyarrow")
    for batch in batches:
        columns, arrow_fields = list(batch.columns), list(batch.schema)
        for number, field in enumerate(fields):
            if field.type == "json":
                columns[number] = _variants(arrow, batch.column(number))
                arrow_fields[number] = arrow.field(field.name, columns[number].type)
        yield arrow.record_batch(columns, schema=arrow.schema(arrow_fields))


def _variants(arrow: ModuleType, texts: pa.StringArray) -> pa.StructArray:
    variant: type[VariantVal] = importlib.import_module("pyspark.sql.types").VariantVal
    coded = texts.dictionary_encode()
    parsed = [variant.parseJson(text) for text in coded.dictionary.to_pylist()]
    kind = arrow.struct(
        [
            arrow.field("value", arrow.binary(), nullable=False),
            arrow.field("metadata", arrow.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    )
    values = arrow.array(
        [{"value": bytes(variant_value.value), "metadata": bytes(variant_value.metadata)} for variant_value in parsed],
        type=kind,
    )
    return values.take(coded.indices)
