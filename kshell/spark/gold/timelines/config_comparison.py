"""Who is compared for config drift: resources of one name in several clusters, and the brokers of one cluster.

Rows name their comparison (the columns :data:`RESOURCE`) and the resource or broker that is compared (:data:`MEMBER`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshell.spark.tables.gold_table import CLUSTER, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RESOURCE = ("resource", "resourceType", "within", "scope")
"""Columns that identify a comparison, in the order to sort by. ``resource`` is the name that several clusters share
(empty for brokers), ``within`` the cluster whose brokers are compared (empty for clusters)."""
MEMBER = ("clusterId", "resourceName")
"""Columns that identify a member of a comparison."""
NEEDS = ("configs", "topics", "brokers")
"""The silver tables that comparisons are computed from."""
FIELDS = (
    CLUSTER,
    Field(
        "scope",
        "string",
        "clusters (one resource of that name in several clusters), brokers (the brokers of one"
        " cluster against each other)",
    ),
    Field("resourceType", "string", "TOPIC, BROKER, GROUP, CLIENT_METRICS"),
    Field("resourceName", "string", "its name; empty for the default of all brokers; of scope brokers the broker's id"),
    Field("name", "string", "the config's name"),
)


def values(configs: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return versions of ``configs`` with their comparison and member. ``columns``: further columns to keep."""
    of_broker = "resourceType = 'BROKER' and resourceName <> ''"
    return configs.where("resourceType <> 'BROKER_LOGGER'").selectExpr(
        f"if({of_broker}, 'brokers', 'clusters') as scope",
        f"if({of_broker}, clusterId, '') as within",
        f"if({of_broker}, '', resourceName) as resource",
        *("clusterId", "resourceType", "resourceName", "name", "value", *columns),
    )


def lives(tables: Tables, columns: Sequence[str]) -> DataFrame:
    """Return the members of all comparisons: one row per version which shows that a member exists, with ``columns``.

    A version of a topic shows the topic. A version of a broker shows the broker and, for the default of all brokers,
    its cluster. A resource of another type exists while any config of it is set.
    """
    other_resources = tables["configs"].where("resourceType not in ('TOPIC', 'BROKER', 'BROKER_LOGGER')")
    of_others = other_resources.selectExpr(
        "'clusters' as scope",
        "'' as within",
        "resourceType",
        "resourceName as resource",
        "clusterId",
        "resourceName",
        *columns,
    )
    of_topics = tables["topics"].selectExpr(
        "'clusters' as scope",
        "'' as within",
        "'TOPIC' as resourceType",
        "name as resource",
        "clusterId",
        "name as resourceName",
        *columns,
    )
    both = "struct('clusters' as scope, '' as within, '' as resourceName)"
    both += ", struct('brokers' as scope, clusterId as within, cast(id as string) as resourceName)"
    of_brokers = tables["brokers"].selectExpr(
        "'BROKER' as resourceType", "'' as resource", "clusterId", f"inline(array({both}))", *columns
    )
    return of_topics.unionByName(of_others).unionByName(of_brokers)
