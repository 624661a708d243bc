"""The columns of the data source's views, declared once for Arrow, for Spark and for the reference.

The views are ``records``: one row per record, as in ``dump``; ``files``: one row per file; ``quarantine``: what could
not be read or decoded; and one view per record type, with its name (``TOPIC_RECORD``), whose columns derive from the
declaration of the type. The columns of the pipeline's tables ``copies`` and ``clusters`` are here, too.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kshell.errors import UsageError
from kshell.history.records import FIELDS, record_type
from kshell.metadata.records import record_types
from kshell.protocol import schema
from kshell.protocol.control import CONTROL_TYPES
from kshell.protocol.decoder import UNKNOWN_TAGS
from kshell.tables.declaration import OTHER_FIELDS, Field, Type

RECORDS, FILES, QUARANTINE = "records", "files", "quarantine"
Row = dict[str, Any]
"""A row of a view or of a table: column -> value."""

_SOURCE = (
    Field("clusterId", "string", "the cluster, by meta.properties; null where there is none"),
    Field("nodeId", "int32", "the node whose copy it is, likewise"),
    Field("file", "string", "the path of the segment or snapshot"),
    Field("isSnapshot", "boolean", "whether that is a snapshot: offsets count within it then, and are not the log's"),
)
_POSITION = Field("position", "int64", "the first byte of the batch in its file")
_PLACE = (*_SOURCE, _POSITION)
_REASON = Field("reason", "string", "why it stays bytes; null for what was decoded")
_RAW = Field("raw", "binary", "the bytes that were not decoded; null for others, and for a type that carries secrets")

RECORD_FIELDS = (*_PLACE, *FIELDS, _REASON, _RAW)

_FINDING: Type = [{"position": "int64", "kind": "string", "reason": "string"}]
FILE_FIELDS = (
    *_SOURCE,
    Field("size", "int64", "bytes, as listed"),
    Field("nameOffset", "int64", "by its name: the first offset of a segment, the end offset of a snapshot; else null"),
    Field("nameEpoch", "int32", "by its name: the epoch of a snapshot"),
    Field("firstOffset", "int64", "of its first good batch; null where there is none"),
    Field("lastOffset", "int64", "the last of its good batches"),
    Field("firstEpoch", "int32", "of its first good batch"),
    Field("lastEpoch", "int32", "of its last good batch"),
    Field("firstTimestampMs", "int64", "the earliest of its good batches begins then, in milliseconds since 1970"),
    Field("lastTimestampMs", "int64", "the latest of its good batches ends then"),
    Field("batches", "int64", "good batches: their CRC matches, and they fit what is before them"),
    Field("records", "int64", "records in them"),
    Field("crcFailures", "int64", "batches whose CRC does not match their bytes"),
    Field("goodBytes", "int64", "bytes of the good batches"),
    Field("isDamaged", "boolean", "whether any of it is known to be damaged or missing; a torn tail alone is not"),
    Field("tornAt", "int64", "the byte at which a server was still writing; null for a file that ends with a batch"),
    Field("findings", _FINDING, "damage, gaps and torn tails, by byte"),
)
QUARANTINE_FIELDS = (
    *_PLACE,
    Field(
        "kind",
        "string",
        "record, batch (damaged), torn (being written), gap (offsets missing), file, unread (gone,"
        " changed or refused while it was to be read), truncated",
    ),
    *(field for field in FIELDS if field.name != "data"),
    Field("reason", "string", "what is wrong"),
    Field("raw", "binary", "the bytes of a record that was not decoded; null for batches, which may hold secrets"),
)

_CLUSTER = Field("clusterId", "string", "the cluster: by meta.properties, as it was given, or made of the path")
COPY_FIELDS = (
    _CLUSTER,
    Field("copy", "string", "the directory or file"),
    Field("state", "string", "reference, same, behind, diverged, damaged, other-cluster, not-compared or unreadable"),
    Field("nodeId", "int32", "the node whose copy it is; null without meta.properties"),
    Field("startOffset", "int64", "of the log's first record; null where there is no log"),
    Field("endOffset", "int64", "after the last record, be it in the log or only in a snapshot"),
    Field("lastEpoch", "int32", "the epoch of the last record"),
    Field("snapshot", "string", "the newest snapshot; where copies were compared, the newest one that is whole"),
    Field("sameFrom", "int64", "the first offset that was compared, and is the same"),
    Field("sameTo", "int64", "the log is the same up to here (exclusive); null where no offset is in both"),
    Field("divergesAt", "int64", "the first offset that differs: from there on the copy gives no row, or none at all"),
    Field("uncommittedFrom", "int64", "from here on, the copies do not prove that records are committed"),
    Field("reason", "string", "what differs, and what Raft's rules say of it; why it is unreadable"),
    Field("damage", ["string"], "what is damaged or missing in the copy, until it is mended"),
    Field("directoryId", "string", "the id of the log directory, where it has one"),
    Field("comparedWith", "string", "the copy that it is compared with; null for the reference"),
)
"""The columns of the pipeline's table ``copies``, one row per copy; those of the command ``compare-logs``."""
CLUSTER_FIELDS = (
    _CLUSTER,
    Field("copies", "int32", "copies of its log"),
    Field("startOffset", "int64", "the first offset that was read"),
    Field("endOffset", "int64", "the offset after the last one that was read"),
    Field("stateOffset", "int64", "states are known up to here (exclusive): before endOffset only after damage"),
    Field("committedOffset", "int64", "records below it are committed, as far as the copies prove it"),
    Field("lastEpoch", "int32", "the epoch of the last record"),
    Field("firstTimestampMs", "int64", "when the first record was written, in milliseconds since 1970"),
    Field("lastTimestampMs", "int64", "when the last record was written"),
    Field("leaderId", "int32", "the leader that the files quorum-state name, of the newest epoch; -1: nobody yet"),
    Field("leaderEpoch", "int32", "that epoch; null where no copy has such a file"),
    Field("voters", ["int32"], "the voters that it names: none with kraft.version 1"),
)
"""The columns of the pipeline's table ``clusters``, one row per cluster."""

_CONTEXT = (*_PLACE, *(field for field in FIELDS if field.name not in ("type", "data")))
"""The columns before a record's own fields in the view of its type."""
_TAKEN = frozenset(field.name for field in _CONTEXT)
_TYPES: dict[str, Type] = {
    "bool": "boolean",
    "int8": "int16",
    "int16": "int16",
    "uint16": "int32",
    "int32": "int32",
    "uint32": "int64",
    "int64": "int64",
    "float64": "float64",
    "uuid": "string",
    "string": "string",
    "bytes": "string",
}


def view_name(text: str) -> str:
    """Return the name of a view; types may be in any case, without ``_RECORD``. Raises UsageError with suggestions."""
    if text.lower() in (RECORDS, FILES, QUARANTINE):
        return text.lower()
    try:
        name = record_type(text)
    except UsageError as error:
        raise UsageError(f"{text}: no such view", hint=f"records, files, quarantine, or a type; {error.hint}") from None
    if name not in _schemas():
        raise UsageError(f"{text}: a type without a declaration has no view", hint="the view records has its bytes")
    return name


def fields_of(view: str) -> tuple[Field, ...]:
    """Return the columns of a view, named as by :func:`view_name`."""
    fixed = {RECORDS: RECORD_FIELDS, FILES: FILE_FIELDS, QUARANTINE: QUARANTINE_FIELDS}
    return fixed.get(view) or (*_CONTEXT, *record_fields(view))


@cache
def _schemas() -> dict[str, schema.Schema]:
    schemas = {kind.name: kind.schema for kind in record_types().values()}
    return schemas | {kind.name: kind.schema for kind in CONTROL_TYPES.values()}


def record_fields(name: str) -> tuple[Field, ...]:
    """Return the columns of a record type's own fields, as ``dump`` prints them; a field that is not written is null.

    A field with the name of a column before it gets the prefix ``data``, such as ``dataEpoch``.
    """
    declared = _schemas()[name]
    fields = [
        Field(column_name(field.name), "string" if field.secret else _type(field), _doc(field))
        for field in declared.fields
    ]
    fields.append(Field(UNKNOWN_TAGS, "json", "tagged fields that kshell does not know, with their bytes in hex"))
    return tuple(fields)


def column_name(name: str) -> str:
    """Return the name of the column for a record's field."""
    return f"data{name[0].upper()}{name[1:]}" if name in _TAKEN else name


def _type(field: schema.Field) -> Type:
    type_: Type = {below.name: _type(below) for below in field.fields} if field.is_struct else _TYPES[field.type]
    return [type_] if field.array else type_


def _doc(field: schema.Field) -> str:
    description = f"{'[]' if field.array else ''}{field.type}"
    if field.versions != schema.ALL_VERSIONS:
        description += f", in versions {field.versions}"
    if field.tag is not None:
        description += f", tag {field.tag}: null where it is not written, or has its default {field.default}"
    return f"{description}; secret" if field.secret else description


def spark_schema(fields: Iterable[Field]) -> Any:
    """Return the ``StructType`` of columns; a column's description is its comment."""
    return importlib.import_module("pyspark.sql.types").StructType.fromJson(json.loads(schema_json(fields)))


def schema_json(fields: Iterable[Field]) -> str:
    """Return columns as the JSON that Spark and the Delta protocol (Schema Serialization Format) use for schemas."""
    return json.dumps(_struct((field.name, field.type, {"comment": field.doc}) for field in fields))


def spark_columns(fields: Iterable[Field]) -> list[tuple[str, str]]:
    """Return (name, type as Spark SQL writes it) of columns."""
    return [(field.name, sql_type(_spark_type(field.type))) for field in fields]


def sql_type(kind: Any) -> str:
    """Return a type of :func:`schema_json` as Spark SQL writes it, without comments and nullability."""
    if isinstance(kind, str):
        return {"integer": "int", "short": "smallint", "long": "bigint"}.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{sql_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{sql_type(kind['keyType'])},{sql_type(kind['valueType'])}>"
    fields = (f"{field['name']}:{sql_type(field['type'])}" for field in kind["fields"])
    return f"struct<{','.join(fields)}>"


_SPARK_TYPES = {
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float64": "double",
    "boolean": "boolean",
    "binary": "binary",
    "string": "string",
    "json": "string",
}


def _spark_type(declared: Type) -> Any:
    if isinstance(declared, str):
        return _SPARK_TYPES[declared]
    if not isinstance(declared, Mapping):
        return {"type": "array", "elementType": _spark_type(declared[0]), "containsNull": True}
    if OTHER_FIELDS in declared:
        value = _spark_type(declared[OTHER_FIELDS])
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
    return _struct((name, below, {}) for name, below in declared.items())


def _struct(columns: Iterable[tuple[str, Type, Mapping[str, str]]]) -> dict[str, Any]:
    fields = [
        {"name": name, "type": _spark_type(declared), "nullable": True, "metadata": metadata}
        for name, declared, metadata in columns
    ]
    return {"type": "struct", "fields": fields}
