"""The table ``partition_availability``: how long each partition was offline, under and at min ISR, by month."""

from __future__ import annotations

from kshell.spark.gold.timelines.durations import by_keys, clipped, end_of_month, split_by_month, timed
from kshell.spark.gold.timelines.min_isr import with_min_isr
from kshell.spark.gold.timelines.partition_versions import KEYS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, MONTH, GoldTable, Shared
from kshell.tables.declaration import Field

MEASURES = (
    Field("offlineMs", "int64", "those without a leader"),
    Field("underMinIsrMs", "int64", "those without a leader, or with fewer in-sync replicas than min.insync.replicas"),
    Field(
        "unwritableMs",
        "int64",
        "those without a leader, or with fewer in-sync replicas than brokers ask for: min.insync.replicas, or the"
        " number of replicas (with those that are being added) where that is smaller",
    ),
    Field("atMinIsrMs", "int64", "those with exactly as many in-sync replicas as min.insync.replicas"),
    Field(
        "underReplicatedMs",
        "int64",
        "those with fewer in-sync replicas than the replication factor (replicas without addingReplicas)",
    ),
    Field(
        "assumedMs",
        "int64",
        "those in which the log had no min.insync.replicas for it (neither its topic's, nor its"
        " leader's, nor that of all brokers), and 1, Kafka's default, was taken",
    ),
    Field("availability", "float64", "1 - offlineMs / its milliseconds; null where there were none"),
    Field(
        "writeAvailability",
        "float64",
        "1 - unwritableMs / its milliseconds: where acks=all was possible, if 1 is right where it was assumed",
    ),
)
"""Columns with what is measured of a partition here, and of several together in the table ``availability``."""
HOLDS = (
    *at_least(
        0, "offlineMs", "underMinIsrMs", "unwritableMs", "atMinIsrMs", "underReplicatedMs", "assumedMs", "availability"
    ),
    ordered("offlineMs", "unwritableMs"),
    ordered("unwritableMs", "underMinIsrMs"),
)
"""What both tables expect of the values of :data:`MEASURES`."""

FIELDS = (
    CLUSTER,
    Field("month", "string", "the month, in UTC"),
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id"),
    Field("partition", "int32", "the partition's number"),
    Field("existedMs", "int64", "milliseconds of that month in which the partition was there"),
    *MEASURES,
)


SUMS = {
    "offlineMs": "sum(if(isOffline, ms, 0))",
    "underMinIsrMs": "sum(if(isOffline OR inSync < minIsr, ms, 0))",
    # A broker asks for no more replicas than there are (Partition.effectiveMinIsr).
    "unwritableMs": "sum(if(isOffline OR inSync < least(minIsr, greatest(array_size(replicas), 1)), ms, 0))",
    "atMinIsrMs": "sum(if(inSync = minIsr, ms, 0))",
    "underReplicatedMs": "sum(if(inSync < factor, ms, 0))",
    "assumedMs": "sum(if(isAssumed, ms, 0))",
}
"""Column -> SQL aggregate over rows of :data:`_CLASSIFIED`."""
_KEY = ("month", "topic", *KEYS, "clusterId")
_VERSIONS = f"""(
    SELECT clusterId, topic, {", ".join(KEYS)}, leader, coalesce(replicas, array()) AS replicas,
      array_size(coalesce(isr, array())) AS inSync, array_size(coalesce(addingReplicas, array())) AS adding,
      validFromOffset, validFromMs, validToMs
    FROM {{partitions}}
  )"""
_SPANS = f"({clipped(f'({timed(_VERSIONS, KEYS)})')})"
_CLASSIFIED = f"""
  SELECT {", ".join(_KEY)}, replicas, endMs - beginMs AS ms, leader < 0 AS isOffline, inSync,
    array_size(replicas) - adding AS factor, coalesce(minIsr, 1) AS minIsr, minIsr IS NULL AS isAssumed
  FROM ({split_by_month(f"({with_min_isr(_SPANS)})")})"""
"""SQL: versions of partitions, cut where a month or ``min.insync.replicas`` changes, and each piece classified: ``ms``
(its length), ``month``, ``isOffline``, ``inSync`` (size of the ISR), ``factor`` (replication factor), ``minIsr``,
``isAssumed`` (the log sets no ``minIsr``, and 1 is taken), ``replicas``."""
MONTHS = Shared(
    "partition_months",
    f"""
  SELECT {", ".join(_KEY)}, replicas, sum(ms) AS partitionMs,
    {", ".join(f"{total} AS {name}" for name, total in SUMS.items())}
  FROM ({_CLASSIFIED})
  GROUP BY {by_keys((*_KEY, "replicas"))}""",
    MONTH,
)
"""Each month of a partition, one row per replica list it had: ``partitionMs`` (all of it) and :data:`SUMS`."""


def availabilities(total: str) -> str:
    """SQL: availabilities and ``untilMs`` of sums of months; ``total``: the column with all milliseconds of a row."""
    lost = {"availability": "offlineMs", "writeAvailability": "unwritableMs"}
    columns = (f"if({total} > 0, 1 - {of} / {total}, NULL) AS {name}" for name, of in lost.items())
    return f"{', '.join(columns)}, {end_of_month('month')} AS untilMs"


_QUERY = f"""
SELECT *, {availabilities("existedMs")}
FROM (
  SELECT {", ".join(_KEY)}, sum(partitionMs) AS existedMs, {", ".join(f"sum({name}) AS {name}" for name in SUMS)}
  FROM {{{MONTHS.name}}}
  GROUP BY {by_keys(_KEY)}
)"""


GOLD = GoldTable(
    "partition_availability",
    "each partition's time offline, under min ISR, at min ISR, by month",
    FIELDS,
    _QUERY,
    final_by=MONTH,
    shares=(MONTHS,),
    expect=(*key("clusterId", "month", "topicId", "partition"), *HOLDS, ordered("offlineMs", "existedMs")),
)
