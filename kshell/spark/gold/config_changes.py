"""The table ``config_changes``: every change of a config's value, one row per change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.changes import changes, with_found
from kshell.spark.gold.timelines.durations import day_of
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("offset", "int64", "the record"),
    Field("ms", "int64", "its time"),
    Field("day", "string", "its day, in UTC"),
    Field("resourceType", "string", "TOPIC, BROKER, BROKER_LOGGER, GROUP, CLIENT_METRICS"),
    Field("resourceName", "string", "its name; empty for the default of all brokers"),
    Field("name", "string", "the config's name"),
    Field(
        "change",
        "string",
        "found (in the snapshot with which what is known begins), set (it was not set before),"
        " changed, removed (also with its topic)",
    ),
    Field("oldValue", "string", "its value before; [redacted] if it is secret, null if it was not set"),
    Field("newValue", "string", "its value after, likewise"),
    Field("heldMs", "int64", "how long the value before had held; null if it was not set"),
)


def config_changes(tables: Tables) -> DataFrame:
    """List the changes of configs."""
    changed = changes(tables["configs"], ("resourceType", "resourceName", "name"), ("value",), tables["clusters"])
    with_values = (
        with_found(changed, tables["control_records"])
        .withColumnRenamed("change", "plainChange")
        .selectExpr(
            "*",
            f"{day_of('ms')} as day",
            "if(plainChange = 'added', 'set', plainChange) as change",
            "old.value as oldValue",
            "new.value as newValue",
        )
    )
    return aggregates.typed(with_values, FIELDS)


GOLD = GoldTable(
    "config_changes",
    "every change of a config: value before and after",
    FIELDS,
    ("configs", "control_records", "clusters"),
    config_changes,
    expect=(*key("clusterId", "offset", "resourceType", "resourceName", "name"), *at_least(0, "heldMs")),
)
