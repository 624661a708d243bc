"""The table ``broker_sessions``: one row per registration of a broker, until the next one or its removal."""

from kshell.spark.gold.timelines.broker_versions import BROKER_VERSIONS, IS_FENCING
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("broker", "int32", "the broker's id"),
    Field("epoch", "int64", "the epoch of its registration"),
    Field("incarnationId", "string", "that of the process, another with every start"),
    Field("rack", "string", "its rack at the end"),
    Field("fromOffset", "int64", "the record that registered it, or the end of the snapshot that has it first"),
    Field("fromMs", "int64", "its time"),
    Field("firstUnfencedMs", "int64", "when it was first unfenced; null if it never was"),
    Field("startMs", "int64", "from its registration to then"),
    Field("toOffset", "int64", "the record that ended it; null while it lasts"),
    Field("toMs", "int64", "its time; null while it lasts"),
    Field("outcome", "string", "reregistered (it started again), unregistered; null while it lasts"),
    Field(
        "isClean",
        "boolean",
        "whether it was in controlled shutdown before it ended, or was fenced for the last"
        " time; null while it is unfenced",
    ),
    Field("durationMs", "int64", "how long; up to the cluster's last record while it lasts"),
    Field("unfencedMs", "int64", "how long of it unfenced, controlled shutdown left out"),
    Field("shutdownMs", "int64", "how long of it in controlled shutdown and unfenced"),
    Field("fencedMs", "int64", "how long of it fenced, the time before it was first unfenced included"),
    Field("fencings", "int32", "how often it was fenced after it had been unfenced"),
)

_QUERY = f"""
SELECT *, last.incarnationId AS incarnationId, last.rack AS rack, last.validToOffset AS toOffset,
  last.validToMs AS toMs, servedMs - beganMs AS startMs,
  CASE WHEN last.validToOffset IS NULL THEN NULL WHEN last.goesOn THEN 'reregistered' ELSE 'unregistered' END
    AS outcome,
  if(last.validToOffset IS NULL AND last.state <> 'fenced', NULL, last.inControlledShutdown) AS isClean
FROM (
  SELECT clusterId, broker, max(epoch) AS epoch, min(validFromOffset) AS fromOffset,
    min_by(validFromMs, validFromOffset) AS fromMs, min(beginMs) AS beganMs, min(if(fenced, NULL, beginMs)) AS servedMs,
    min_by(validFromMs, if(fenced, NULL, validFromOffset)) AS firstUnfencedMs,
    max_by(
      struct(validToOffset, validToMs, incarnationId, rack, state, inControlledShutdown,
        following.validFromOffset <=> validToOffset AS goesOn),
      validFromOffset
    ) AS last,
    max(endMs) - min(beginMs) AS durationMs, sum(if(state = 'unfenced', endMs - beginMs, 0)) AS unfencedMs,
    sum(if(state = 'controlled-shutdown', endMs - beginMs, 0)) AS shutdownMs,
    sum(if(fenced, endMs - beginMs, 0)) AS fencedMs, count_if({IS_FENCING}) AS fencings
  FROM ({BROKER_VERSIONS})
  GROUP BY broker, session, clusterId
)"""


GOLD = GoldTable(
    "broker_sessions",
    "registrations of brokers: from when to when, time fenced and unfenced, how they ended",
    FIELDS,
    _QUERY,
    expect=(
        *key("clusterId", "broker", "fromOffset"),
        *at_least(0, "durationMs", "unfencedMs", "shutdownMs", "fencedMs"),
        ordered("fromOffset", "toOffset"),
    ),
)
