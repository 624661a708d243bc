"""Add what Kafka's releases say about a config key (its type, whether it is sensitive) to rows that name one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.metadata.config_types import LISTENER_PREFIX, PER_MECHANISM, TABLE, known_types
from kshell.spark.steps.local_frames import frame_of
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FACTS = (
    Field("_kind", "string", "the type of resources that have the key"),
    Field("_key", "string", "its name"),
    Field("type", "string", "the type of its values"),
    Field("isSensitive", "boolean", "whether they are secrets"),
)


def with_facts(rows: DataFrame) -> DataFrame:
    """Add ``type`` and ``isSensitive`` of the config key to rows with ``resourceType`` and ``name``. Both are null for
    a key that no release knows. Keys are looked up as in :func:`kshell.metadata.config_types.known_key`.
    """
    listed = (
        {"_kind": kind, "_key": name, "type": key_type.type, "isSensitive": key_type.is_password}
        for kind in TABLE
        for name, key_type in known_types(kind).items()
    )
    facts = frame_of(rows.sparkSession, _FACTS, listed)
    exact = rows.join(fn.broadcast(facts), _is(fn.col("name")), "left").drop("_kind", "_key")
    listeners = facts.where("_kind = 'BROKER'").withColumnsRenamed({"type": "_type", "isSensitive": "_isSensitive"})
    joined = exact.join(fn.broadcast(listeners), fn.col("type").isNull() & _is(_base(fn.col("name"))), "left")
    names = ("type", "isSensitive")
    known = {name: fn.coalesce(name, f"_{name}") for name in names}
    return joined.withColumns(known).drop("_kind", "_key", *(f"_{name}" for name in names))


def _is(name: Column) -> Column:
    return (fn.col("resourceType") == fn.col("_kind")) & (name == fn.col("_key"))


def _base(name: Column) -> Column:
    """The key after the prefix ``listener.name.LISTENER.`` and after a SASL mechanism, if any; null without prefix."""
    rest = fn.regexp_extract(name, r"^listener\.name\.[^.]*\.(.*)$", 1)
    base = rest
    for key in sorted(PER_MECHANISM):
        base = fn.when(rest.endswith(f".{key}"), fn.lit(key)).otherwise(base)
    return fn.when(name.startswith(LISTENER_PREFIX), base)
