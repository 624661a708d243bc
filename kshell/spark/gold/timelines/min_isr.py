"""The value of ``min.insync.replicas`` over time: spans of partitions are cut where it changed.

The topic's own value counts, else that of the broker which leads, else that of all brokers, as far as they are set in
the log (:mod:`kshell.metadata.partition_state`).
"""

from __future__ import annotations

from kshell.metadata.partition_state import MIN_ISR_CONFIG, NUMBER_PATTERN
from kshell.spark.gold.timelines.durations import by_keys, timed

_LAYERS = ("ofTopic", "ofLeader", "ofAll")
"""Where a value can be set, as arrays of (beginMs, endMs, number); the first that has one counts."""
_PATTERN = NUMBER_PATTERN.replace("{", "{{").replace("}", "}}")  # braces of a query name tables


def number(value: str) -> str:
    """SQL: a config's value as a number; null for what is no number in range, since that cannot be in force."""
    return f"cast(nullif(regexp_extract({value}, r'{_PATTERN}', 1), '') AS int)"


_VERSIONS = f"(SELECT * FROM {{configs}} WHERE name = '{MIN_ISR_CONFIG}' AND resourceType IN ('TOPIC', 'BROKER'))"
_SETTINGS = f"""
  SELECT clusterId, resourceType, resourceName, collect_list(struct(beginMs, endMs, number)) AS settings
  FROM (SELECT *, {number("value")} AS number FROM ({timed(_VERSIONS, ("resourceType", "resourceName", "name"))}))
  WHERE number IS NOT NULL AND beginMs < endMs
  GROUP BY {by_keys(("clusterId", "resourceType", "resourceName"))}"""
"""SQL: one row per topic or broker, whose array ``settings`` has the values that were set and their spans."""


def with_min_isr(spans: str) -> str:
    """SQL: spans (with ``topic`` and ``leader``), cut where ``minIsr`` changes, and its value; null: the log sets none.

    Reads ``{configs}`` and ``{clusters}``, too.
    """
    return f"""
  WITH configured AS ({_SETTINGS}
  )
  SELECT * EXCEPT (wholeBeginMs, wholeEndMs, leaderName, edges, {", ".join(_LAYERS)}),
    coalesce({", ".join(map(_at, _LAYERS))}) AS minIsr
  FROM (
    SELECT *, inline(transform(slice(edges, 1, array_size(edges) - 1), (edge, at) ->
      named_struct('beginMs', edge, 'endMs', get(edges, at + 1))))
    FROM (
      SELECT *, {_edges()} AS edges
      FROM (
        SELECT * EXCEPT (beginMs, endMs), beginMs AS wholeBeginMs, endMs AS wholeEndMs,
          cast(leader AS string) AS leaderName
        FROM {spans} WHERE beginMs < endMs
      )
      LEFT JOIN (SELECT clusterId, resourceName AS topic, settings AS ofTopic FROM configured
        WHERE resourceType = 'TOPIC') USING (topic, clusterId)
      LEFT JOIN (SELECT clusterId, resourceName AS leaderName, settings AS ofLeader FROM configured
        WHERE resourceType = 'BROKER' AND resourceName <> '') USING (leaderName, clusterId)
      LEFT JOIN (SELECT clusterId, settings AS ofAll FROM configured
        WHERE resourceType = 'BROKER' AND resourceName = '') USING (clusterId)
    )
  )"""


def _at(layer: str) -> str:
    """SQL: the value that a layer has when a piece begins, or null."""
    return f"get(filter({layer}, setting -> setting.beginMs <= beginMs AND beginMs < setting.endMs), 0).number"


def _edges() -> str:
    """SQL: the sorted times at which to cut a span: its begin, its end, and where values begin or end inside it."""
    nowhere = " AND ".join(f"{layer} IS NULL" for layer in _LAYERS)
    span = "array(wholeBeginMs, wholeEndMs)"
    edges = ", ".join(
        f"coalesce(flatten(transform({layer}, setting -> array(setting.beginMs, setting.endMs))), array())"
        for layer in _LAYERS
    )
    inside = f"filter(concat({edges}), edge -> edge > wholeBeginMs AND edge < wholeEndMs)"
    return f"if({nowhere}, {span}, sort_array(array_distinct(concat({span}, {inside}))))"
