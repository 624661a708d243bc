"""Configs as the log holds them, secrets hidden. A topic's go with it; a hidden value set anew is a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.redaction import REDACTED
from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CONFIG = "CONFIG_RECORD"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a key and its value."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload
    from kshell.spark.silver.base.states import until_base, versions_of, was

    said = events.where(fn.col("type") == _CONFIG).withColumn("said", payload.opened(_CONFIG))
    value = fn.col("said.value")
    columns = {
        "resourceType": payload.named(RESOURCE_TYPES, fn.col("said.resourceType")),
        "resourceName": fn.col("said.resourceName"),
        "name": fn.col("said.name"),
        "value": value,
    }
    states = said.select(*payload.state(SILVER, columns, gone=value.isNull(), new=value == REDACTED))
    rows = until_base(states.unionByName(was(before["configs"], SILVER)), events)
    return versions_of(_until_removed(rows, events, before["topics"]), SILVER)


def _until_removed(rows: DataFrame, events: DataFrame, topics: DataFrame) -> DataFrame:
    """A topic's configs last no longer than the topic."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.states import after, moments
    from kshell.spark.silver.base.topic_lives import topic_lives

    lives = topic_lives(events, topics).where("isRemoved").select("clusterId", "topic", "ended.*")
    removals = lives.groupBy(fn.col("clusterId"), fn.col("topic").alias("resourceName")).agg(moments("_removed"))
    joined = rows.join(removals.withColumn("resourceType", fn.lit("TOPIC")), _RESOURCE, "left")
    removed = fn.get(fn.filter("_removed", after), fn.lit(0))
    sooner = fn.col("_end").isNotNull() & (fn.col("_end.atOffset") <= fn.col("endsOffset"))
    return (
        joined.withColumn("_end", removed)
        .withColumn("endsMs", fn.when(sooner, fn.col("_end.atMs")).otherwise(fn.col("endsMs")))
        .withColumn("endsOffset", fn.when(sooner, fn.col("_end.atOffset")).otherwise(fn.col("endsOffset")))
        .drop("_end", "_removed")
    )


_RESOURCE = ["clusterId", "resourceType", "resourceName"]

SILVER = silver(
    "configs",
    "what is set, as the log holds it",
    of_the_shell("configs", "resourceType", "resourceName", "name", "value"),
    ("resourceType", "resourceName", "name"),
    (_CONFIG, "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"),
    versions,
    ("topics",),
)
