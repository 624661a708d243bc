"""The limits of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.metadata.names import DEFAULT, LIKE_DEFAULT
from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_QUOTA = "CLIENT_QUOTA_RECORD"
_LABELS = {"client-id": (0, "clientId"), "ip": (1, "ip"), "user": (2, "user")}
"""Entity type -> its place in an entity's name, and how it is called there."""
_UNSAFE = r"[\x00-\x1f\x7f-\x9f/%()]"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a limit and its value."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_QUOTA))
    parts = payload.one_by_name(fn.col("said.entity"), "entityType")
    entity = fn.map_from_entries(fn.transform(parts, lambda one: fn.struct(one["entityType"], one["entityName"])))
    said = said.withColumn("entity", entity).withColumn("segment", _segment(fn.col("said.entity")))
    columns = {
        "user": _of("user"),
        "clientId": _of("client-id"),
        "ip": _of("ip"),
        "key": fn.col("said.key"),
        "value": fn.col("said.value"),
        "entity": fn.col("entity"),
        "name": fn.col("segment"),
    }
    states = said.select(*payload.state(SILVER, columns, gone=fn.col("said.remove")))
    return payload.whole_states(events, before, SILVER, states)


def _of(kind: str) -> Column:
    """A name in the entity, as :func:`kshell.metadata.names.entity_name`."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    name = fn.element_at("entity", kind)
    ambiguous = (name == DEFAULT) | name.rlike(LIKE_DEFAULT)
    shown = fn.when(name.isNull(), fn.lit(DEFAULT)).when(ambiguous, payload.path_name(name, _UNSAFE)).otherwise(name)
    return fn.when(fn.array_contains(fn.map_keys("entity"), kind), shown)


def _segment(entity: Column) -> Column:
    """``clientId(x)_user(y)``, as :func:`kshell.metadata.families.quotas.entity_segment`."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.payload import path_name

    def part(one: Column) -> Column:
        kind, name = one["entityType"], one["entityName"]
        place, label = fn.lit(len(_LABELS)), path_name(kind, _UNSAFE)
        for known, (number, word) in _LABELS.items():
            place = fn.when(kind == known, fn.lit(number)).otherwise(place)
            label = fn.when(kind == known, fn.lit(word)).otherwise(label)
        shown = fn.coalesce(path_name(name, _UNSAFE), fn.lit(DEFAULT))
        return fn.struct(
            place.alias("place"), kind.alias("kind"), fn.concat(label, fn.lit("("), shown, fn.lit(")")).alias("text")
        )

    parts = fn.array_sort(fn.transform(entity, part))
    return fn.array_join(fn.transform(parts, lambda one: one["text"]), "_")


SILVER = silver(
    "quotas",
    "the limits of users, clients and addresses",
    of_the_shell("quotas"),
    ("name", "key"),
    (_QUOTA,),
    versions,
)
