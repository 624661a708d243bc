"""Who is compared for config drift: resources of one name in several clusters, and the brokers of one cluster.

Rows name their comparison (the columns :data:`RESOURCE`) and the resource or broker that is compared (:data:`MEMBER`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kshell.spark.tables.gold_table import CLUSTER
from kshell.tables.declaration import Field

RESOURCE = ("resource", "resourceType", "within", "scope")
"""Columns that identify a comparison, in the order to sort by. ``resource`` is the name that several clusters share
(empty for brokers), ``within`` the cluster whose brokers are compared (empty for clusters)."""
MEMBER = ("clusterId", "resourceName")
"""Columns that identify a member of a comparison."""
RESOURCE_SQL = ", ".join(RESOURCE)
CONFIG_SQL = f"{RESOURCE_SQL}, name"
MEMBER_SQL = ", ".join((*RESOURCE, *MEMBER))
"""SQL: the columns that identify a comparison, a config in one, and a member of one."""
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


def values(*columns: str, where: str = "true") -> str:
    """SQL: versions of ``{configs}`` with their comparison and member. ``columns``: further columns to keep."""
    of_broker = "resourceType = 'BROKER' AND resourceName <> ''"
    return f"""
  SELECT if({of_broker}, 'brokers', 'clusters') AS scope, if({of_broker}, clusterId, '') AS within,
    if({of_broker}, '', resourceName) AS resource, clusterId, resourceType, resourceName, name, value{_more(columns)}
  FROM {{configs}} WHERE resourceType <> 'BROKER_LOGGER' AND {where}"""


def _more(columns: Sequence[str]) -> str:
    return "".join(f", {column}" for column in columns)


def lives(*columns: str, where: str = "true") -> str:
    """SQL: the members of all comparisons: one row per version which shows that a member exists, with ``columns``.

    A version of a topic shows the topic. A version of a broker shows the broker and, for the default of all brokers,
    its cluster. A resource of another type exists while any config of it is set.
    """
    more = _more(columns)
    return f"""
  SELECT 'clusters' AS scope, '' AS within, 'TOPIC' AS resourceType, name AS resource, clusterId,
    name AS resourceName{more}
  FROM {{topics}} WHERE {where}
  UNION ALL
  SELECT 'clusters', '', resourceType, resourceName, clusterId, resourceName{more}
  FROM {{configs}} WHERE resourceType NOT IN ('TOPIC', 'BROKER', 'BROKER_LOGGER') AND {where}
  UNION ALL
  SELECT member.scope, member.within, 'BROKER', '', clusterId, member.resourceName{more}
  FROM (
    SELECT *, explode(array(
      struct('clusters' AS scope, '' AS within, '' AS resourceName),
      struct('brokers' AS scope, clusterId AS within, cast(id AS string) AS resourceName))) AS member
    FROM {{brokers}} WHERE {where}
  )"""
