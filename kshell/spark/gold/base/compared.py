"""What is compared for config drift: a resource of one name in several clusters, and the brokers of one cluster.

Rows name the comparison (:data:`RESOURCE`) and who takes part in it: ``clusterId`` and ``resourceName``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.commands.base.tables import Field
from kshell.spark.gold.base.declared import CLUSTER, Tables

RESOURCE = ("scope", "within", "resourceType", "resource")
"""Resources of that name in several clusters, or all brokers ``within`` one."""
MEMBER = ("clusterId", "resourceName")
NEEDS = ("configs", "topics", "brokers")
"""The tables that all of it is made of."""
FIELDS = (
    CLUSTER,
    Field("scope", "string", "clusters (one resource of that name in several clusters), brokers (the brokers of one"
          " cluster against each other)"),
    Field("resourceType", "string", "TOPIC, BROKER, GROUP, CLIENT_METRICS"),
    Field("resourceName", "string", "its name; empty for the default of all brokers; of scope brokers the broker's id"),
    Field("name", "string", "the config's name"),
)  # fmt: skip


def values(configs: Any, columns: Sequence[str]) -> Any:
    """What is set: versions of ``configs``, with those columns, once for each comparison that they belong to."""
    of_clusters = configs.where("resourceType <> 'BROKER_LOGGER' and (resourceType <> 'BROKER' or resourceName = '')")
    of_brokers = configs.where("resourceType = 'BROKER' and resourceName <> ''")
    common = ("clusterId", "resourceType", "resourceName", "name", "value", *columns)
    return of_clusters.selectExpr(
        "'clusters' as scope", "'' as within", "resourceName as resource", *common
    ).unionByName(of_brokers.selectExpr("'brokers' as scope", "clusterId as within", "'' as resource", *common))


def lives(tables: Tables, columns: Sequence[str]) -> Any:
    """Who takes part, while versions hold that show it: of topics, of registered brokers (they show their cluster for
    the default of all brokers as well), and of whatever is set for other resources. With columns of those versions.
    """
    configs, brokers = tables["configs"], tables["brokers"]
    others = configs.where("resourceType not in ('TOPIC', 'BROKER', 'BROKER_LOGGER')")
    made = [
        _part(tables["topics"], "clusters", "''", "'TOPIC'", "name", "name", columns),
        _part(others, "clusters", "''", "resourceType", "resourceName", "resourceName", columns),
        _part(brokers, "clusters", "''", "'BROKER'", "''", "''", columns),
        _part(brokers, "brokers", "clusterId", "'BROKER'", "''", "cast(id as string)", columns),
    ]
    whole = made[0]
    for more in made[1:]:
        whole = whole.unionByName(more)
    return whole


def _part(rows: Any, scope: str, within: str, kind: str, resource: str, name: str, columns: Sequence[str]) -> Any:
    return rows.selectExpr(
        f"'{scope}' as scope",
        f"{within} as within",
        f"{kind} as resourceType",
        f"{resource} as resource",
        "clusterId",
        f"{name} as resourceName",
        *columns,
    )
