"""The table ``config_drift``: where clusters, or the brokers of one, are set differently."""

from __future__ import annotations

from typing import Any

from kshell.commands.base.tables import Field
from kshell.spark.gold.base import rows
from kshell.spark.gold.base.declared import CLUSTER, GoldTable, Tables

FIELDS = (
    CLUSTER,
    Field("scope", "string", "clusters (one resource of that name in several clusters), brokers (the brokers of one"
          " cluster against each other)"),
    Field("resourceType", "string", "TOPIC, BROKER, GROUP, CLIENT_METRICS"),
    Field("resourceName", "string", "its name; empty for the default of all brokers; of scope brokers the broker's id"),
    Field("name", "string", "the config's name"),
    Field("value", "string", "its value here; null where it is not set, [redacted] if it is secret (two of those"
          " count as the same)"),
    Field("sinceMs", "int64", "since when; null where it is not set"),
    Field("usualValue", "string", "the value that most have, null standing for not set; the smallest one, null last, if"
          " several are as frequent"),
    Field("members", "int32", "how many are compared: clusters that have the resource (the topic; every cluster for"
          " the default of all brokers; where the config or another is set at it, for others), or registered brokers"),
    Field("agreeing", "int32", "how many of them have the value that is here"),
    Field("values", "int32", "how many different values there are, not set counting as one"),
    Field("isUnusual", "boolean", "whether the value here is not the usual one"),
)  # fmt: skip


_RESOURCE = ("scope", "within", "resourceType", "resource")
"""What is compared: resources of that name in several clusters, or all brokers ``within`` one."""


def config_drift(tables: Tables) -> Any:
    """The rows."""
    current = tables["configs"].where("isCurrent")
    values = _values(current)
    members = _members(tables, current)
    named = values.join(members, [*_RESOURCE, "clusterId", "resourceName"], "left_semi")
    asked = named.select(*_RESOURCE, "name").distinct()
    grid = members.join(asked, list(_RESOURCE)).join(values, [*_RESOURCE, "clusterId", "resourceName", "name"], "left")
    group = ", ".join((*_RESOURCE, "name"))
    counted = grid.selectExpr(
        "*",
        f"count(*) over (partition by {group}) as members",
        f"count(*) over (partition by {group}, value) as agreeing",
    ).selectExpr(
        "*",
        f"size(collect_set(struct(value)) over (partition by {group})) as values",
        f"first_value(struct(value)) over (partition by {group} order by agreeing desc, value asc nulls last) as usual",
    )
    told = counted.where("values > 1").selectExpr(
        "*", "usual.value as usualValue", "not (usual.value <=> value) as isUnusual"
    )
    return rows.of(told, FIELDS)


def _values(current: Any) -> Any:
    """What is set, once for each comparison that it belongs to."""
    of_clusters = current.where("resourceType <> 'BROKER_LOGGER' and (resourceType <> 'BROKER' or resourceName = '')")
    of_brokers = current.where("resourceType = 'BROKER' and resourceName <> ''")
    common = ("clusterId", "resourceType", "resourceName", "name", "value", "validFromMs as sinceMs")
    return of_clusters.selectExpr(
        "'clusters' as scope", "'' as within", "resourceName as resource", *common
    ).unionByName(of_brokers.selectExpr("'brokers' as scope", "clusterId as within", "'' as resource", *common))


def _members(tables: Tables, current: Any) -> Any:
    """Who is compared with each other, where there are two or more."""
    head = ("'clusters' as scope", "'' as within")
    topics = tables["topics"].where("isCurrent").selectExpr(
        *head, "'TOPIC' as resourceType", "name as resource", "clusterId", "name as resourceName"
    ).distinct()  # fmt: skip
    defaults = tables["clusters"].selectExpr(
        *head, "'BROKER' as resourceType", "'' as resource", "clusterId", "'' as resourceName"
    ).distinct()  # fmt: skip
    others = current.where("resourceType not in ('TOPIC', 'BROKER', 'BROKER_LOGGER')").selectExpr(
        *head, "resourceType", "resourceName as resource", "clusterId", "resourceName"
    ).distinct()  # fmt: skip
    brokers = tables["brokers"].where("isCurrent").selectExpr(
        "'brokers' as scope", "clusterId as within", "'BROKER' as resourceType", "'' as resource", "clusterId",
        "cast(id as string) as resourceName",
    )  # fmt: skip
    return topics.unionByName(defaults).unionByName(others).unionByName(brokers)


GOLD = GoldTable(
    "config_drift",
    "configs that now differ between clusters, or between the brokers of one",
    FIELDS,
    ("configs", "topics", "brokers", "clusters"),
    config_drift,
    is_fleet=True,
)
