"""SQL that several tables need: fields of records, Kafka's names of codes, listeners, features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kshell.metadata.values import SECURITY_PROTOCOLS
from kshell.spark.schemas import column_name, record_fields, spark_columns
from kshell.tables.declaration import Field

LISTENERS = "array<struct<name:string,host:string,port:int,securityProtocol:string>>"
_FEATURES = "map<string,struct<min:smallint,max:smallint>>"


def record_fields_sql(record_type: str, *names: str) -> str:
    """SQL: the fields of a record as a struct; with ``names``, only these. Fields that the record lacks are null.

    A type with a field that is named like a column of ``records`` (``epoch``) must be given ``names``.
    """
    declared = {field.name: field for field in record_fields(record_type)}
    wanted = names or tuple(name for name in declared if declared[name].type != "json")
    fields = [Field(name, declared[column_name(name)].type, "") for name in wanted]
    return f"from_json(data, '{', '.join(f'{name} {kind}' for name, kind in spark_columns(fields))}')"


def quoted(names: Iterable[str]) -> str:
    """SQL: strings as a list for ``IN``."""
    return ", ".join(f"'{name}'" for name in names)


def enum_name_sql(names: Mapping[int, str], code: str) -> str:
    """SQL: Kafka's name of a numeric code, as :func:`kshell.metadata.values.enum_name`."""
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in names.items())
    return f"CASE {code} {cases} ELSE concat('UNKNOWN(', cast({code} AS string), ')') END"


def sorted_by(structs: str, name: str) -> str:
    """SQL: an array of structs sorted by the field ``name``; of several with the same name only the last one."""
    numbered = f"transform({structs}, (s, i) -> struct(s.{name} AS name, i AS at))"
    last = f"filter({numbered}, s -> NOT exists({numbered}, other -> other.name = s.name AND other.at > s.at))"
    return f"transform(array_sort({last}), s -> get({structs}, s.at))"


def listeners(points: str) -> str:
    """SQL: the endpoints of a registration as the shell lists them: sorted by listener name, each name once."""
    protocol = enum_name_sql(SECURITY_PROTOCOLS, "p.securityProtocol")
    return (
        f"transform({sorted_by(points, 'name')}, p -> struct(p.name, p.host, p.port, {protocol} AS securityProtocol))"
    )


def features(levels: str) -> str:
    """SQL: a map of each feature to the lowest and highest level (``min``, ``max``) that a node supports."""
    entry = "struct(f.name, struct(f.minSupportedVersion AS min, f.maxSupportedVersion AS max))"
    return f"cast(map_from_entries(transform({sorted_by(levels, 'name')}, f -> {entry})) AS {_FEATURES})"
