"""The table ``availability``: what ``partition_availability`` has, summed up by topic, broker, cluster and month."""

from kshell.spark.gold.partition_availability import HOLDS, MEASURES, MONTHS, SUMS, availabilities
from kshell.spark.gold.timelines.partition_versions import KEYS
from kshell.spark.tables.expectations import key, ordered
from kshell.spark.tables.gold_table import CLUSTER, MONTH, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("month", "string", "the month, in UTC"),
    Field(
        "scope",
        "string",
        "topic (all partitions of topics of that name), broker (all partitions while it was among"
        " their replicas), cluster (all partitions)",
    ),
    Field("name", "string", "the topic's name, the broker's id; of a cluster its id"),
    Field("partitions", "int32", "how many partitions were there at any time of that month"),
    Field("partitionMs", "int64", "milliseconds of that month, summed over these partitions"),
    *MEASURES,
)

_SUMS = ", ".join(f"sum({name}) AS {name}" for name in ("partitionMs", *SUMS))
_SCOPES = (
    "inline(concat(array(named_struct('scope', 'topic', 'name', topic), named_struct('scope', 'cluster', 'name',"
    " clusterId)), transform(array_distinct(replicas), one -> named_struct('scope', 'broker', 'name', cast(one AS"
    " string)))))"
)
_QUERY = f"""
SELECT *, {availabilities("partitionMs")}
FROM (
  SELECT clusterId, month, scope, name, count(*) AS partitions, {_SUMS}
  FROM (
    -- by partition first: partitions are then counted without a set of distinct ones in memory
    SELECT clusterId, month, scope, name, {_SUMS}
    FROM (SELECT *, {_SCOPES} FROM {{{MONTHS.name}}})
    GROUP BY month, scope, name, {", ".join(KEYS)}, clusterId
  )
  GROUP BY month, scope, name, clusterId
)"""


GOLD = GoldTable(
    "availability",
    "availability of topics, brokers and clusters by month",
    FIELDS,
    _QUERY,
    final_by=MONTH,
    shares=(MONTHS,),
    expect=(*key("clusterId", "month", "scope", "name"), *HOLDS, ordered("offlineMs", "partitionMs")),
)
