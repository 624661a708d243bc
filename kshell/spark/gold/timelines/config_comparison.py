"""What is compared for config drift: a resource of one name in several clusters, and the brokers of one cluster.

Rows name the comparison (:data:`RESOURCE`) and who takes part in it: ``clusterId`` and ``resourceName``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.spark.tables.gold_table import CLUSTER, Tables
from kshell.tables.declaration import Field

RESOURCE = ("resource", "resourceType", "within", "scope")
"""Resources of that name in several clusters, or all brokers ``within`` one. In the order to sort by."""
MEMBER = ("clusterId", "resourceName")
NEEDS = ("configs", "topics", "brokers")
"""The tables that all of it is made of."""
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


def values(configs: Any, columns: Sequence[str]) -> Any:
    """What is set: versions of ``configs``, with those columns, and the comparison that they belong to."""
    of_broker = "resourceType = 'BROKER' and resourceName <> ''"
    return configs.where("resourceType <> 'BROKER_LOGGER'").selectExpr(
        f"if({of_broker}, 'brokers', 'clusters') as scope",
        f"if({of_broker}, clusterId, '') as within",
        f"if({of_broker}, '', resourceName) as resource",
        *("clusterId", "resourceType", "resourceName", "name", "value", *columns),
    )


def lives(tables: Tables, columns: Sequence[str]) -> Any:
    """Who takes part, while versions hold that show it: of topics, of registered brokers (they show their cluster for
    the default of all brokers as well), and of whatever is set for other resources. With columns of those versions.
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
