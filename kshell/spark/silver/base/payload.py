"""What records say, in typed columns: the schema of a type comes from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.spark.schemas import column_name, record_fields, spark_schema
from kshell.spark.silver.base.declare import BASE, SilverTable
from kshell.spark.silver.base.states import until_base, versions_of, was
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNSAFE = r"[\x00-\x1f\x7f-\x9f/%]"


def opened(record_type: str, *names: str) -> Column:
    """The record's fields as a struct; with ``names`` only those. Fields that it does not write are null.

    A type that has a field with the name of a column of ``records`` (``epoch``) must be given ``names``.
    """
    declared = {field.name: field for field in record_fields(record_type)}
    wanted = names or tuple(name for name in declared if declared[name].type != "json")
    fields = [Field(name, declared[column_name(name)].type, "") for name in wanted]
    return fn.from_json("data", spark_schema(fields))


def of_types(events: DataFrame, table: SilverTable) -> DataFrame:
    """The events that say something of a table: those that begin a base are left out."""
    return events.where(fn.col("type").isin(*(name for name in table.types if name != BASE)))


def state(table: SilverTable, said: Mapping[str, Column], *, gone: Column, new: Column | None = None) -> list[Column]:
    """The columns of a state: ``said`` names the key, and the values, which are null where it is gone."""
    values = [fn.when(~gone, said[field.name]).alias(field.name) for field in table.values]
    keys = [said[name].alias(name) for name in table.keys]
    moment = [fn.col(name) for name in ("clusterId", "atOffset", "atMs", "sequence")]
    return [
        *moment,
        *keys,
        *values,
        gone.alias("isGone"),
        (fn.lit(False) if new is None else new & ~fn.col("isBase")).alias("isNew"),
    ]


def whole_states(
    events: DataFrame, before: Mapping[str, DataFrame], table: SilverTable, states: DataFrame
) -> DataFrame:
    """The versions of what is only ever set as a whole and removed."""
    rows = states.unionByName(was(before[table.name], table))
    return versions_of(until_base(rows, events), table)


def named(names: Mapping[int, str], code: Column) -> Column:
    """Kafka's name of a code, as :func:`kshell.metadata.values.enum_name`."""
    found = fn.concat(fn.lit("UNKNOWN("), code.cast("string"), fn.lit(")"))
    for number, name in names.items():
        found = fn.when(code == number, fn.lit(name)).otherwise(found)
    return found


def one_by_name(listed: Column, name: str) -> Column:
    """A list of structs sorted by the string ``name``; of several with one name the last."""
    numbered = fn.transform(
        listed, lambda one, at: fn.struct(one[name].alias("name"), at.alias("at"), one.alias("one"))
    )
    last = fn.filter(
        numbered,
        lambda one: ~fn.exists(numbered, lambda other: (other["name"] == one["name"]) & (other["at"] > one["at"])),
    )
    ordered = fn.array_sort(fn.transform(last, lambda one: fn.struct(one["name"], one["at"])))
    return fn.transform(ordered, lambda one: fn.get(listed, one["at"]))


def path_name(name: Column, unsafe: str = _UNSAFE) -> Column:
    """A name as a path segment, as :func:`kshell.metadata.names.encode_name`."""
    letters = fn.transform(fn.split(name, ""), lambda one: fn.when(one.rlike(unsafe), _percent(one)).otherwise(one))
    return (
        fn.when(name == "", fn.lit("<empty>"))
        .when(name.isin(".", ".."), fn.replace(name, fn.lit("."), fn.lit("%2E")))
        .when(name.isin("<default>", "<empty>"), fn.concat(fn.lit("%3C"), fn.substring(name, 2, 9)))
        .when(name.rlike(unsafe), fn.array_join(letters, ""))
        .otherwise(name)
    )


def _percent(letter: Column) -> Column:
    return fn.regexp_replace(fn.hex(fn.encode(letter, "UTF-8")), "(..)", r"%$1")
