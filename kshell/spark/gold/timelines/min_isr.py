"""The value of ``min.insync.replicas`` over time: spans of partitions are cut where it changed.

The topic's own value counts, else that of the broker which leads, else that of all brokers, as far as they are set in
the log (:mod:`kshell.metadata.partition_state`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.partition_state import MIN_ISR_CONFIG, NUMBER_PATTERN
from kshell.spark.gold.timelines.aggregates import grouped
from kshell.spark.gold.timelines.durations import timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER = f"cast(nullif(regexp_extract(value, r'{NUMBER_PATTERN}', 1), '') as int)"
"""SQL: the config's value as a number; null for what is no number in range, since that cannot be in force."""


def with_min_isr(spans: DataFrame, configs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Cut spans (with ``topic`` and ``leader``) where ``minIsr`` changes, and add it; null: the log sets no value."""
    value_spans = _spans_of_values(configs, clusters)
    topics = value_spans.where("resourceType = 'TOPIC'").selectExpr(
        "clusterId", "resourceName as topic", "held as ofTopic"
    )
    brokers = value_spans.where("resourceType = 'BROKER' and resourceName <> ''").selectExpr(
        "clusterId", "resourceName as leaderName", "held as ofLeader"
    )
    every = value_spans.where("resourceType = 'BROKER' and resourceName = ''").selectExpr("clusterId", "held as ofAll")
    joined = (
        spans.withColumnsRenamed({"beginMs": "wholeBeginMs", "endMs": "wholeEndMs"})
        .where("wholeBeginMs < wholeEndMs")
        .selectExpr("*", "cast(leader as string) as leaderName")
        .join(topics, ["topic", "clusterId"], "left")
        .join(brokers, ["leaderName", "clusterId"], "left")
        .join(every, ["clusterId"], "left")
    )
    layers = ("ofTopic", "ofLeader", "ofAll")
    edged = joined.selectExpr("*", f"{_edges(layers)} as edges")
    cut = edged.selectExpr(
        "*",
        "inline(transform(slice(edges, 1, array_size(edges) - 1), (edge, at) ->"
        " named_struct('beginMs', edge, 'endMs', get(edges, at + 1))))",
    )
    values = ", ".join(_at(layer) for layer in layers)
    return cut.selectExpr("*", f"coalesce({values}) as minIsr").drop(
        "wholeBeginMs", "wholeEndMs", "leaderName", "edges", *layers
    )


def _spans_of_values(configs: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return one row per topic or broker, whose array ``held`` has the values that were set and their spans."""
    keys = ("resourceType", "resourceName", "name")
    wanted = configs.where(f"name = '{MIN_ISR_CONFIG}' and resourceType in ('TOPIC', 'BROKER')")
    numbers = timed(wanted, keys, clusters).selectExpr(
        "clusterId", "resourceType", "resourceName", "beginMs", "endMs", f"{_NUMBER} as number"
    )
    return grouped(
        numbers.where("number is not null and beginMs < endMs"),
        ["clusterId", "resourceType", "resourceName"],
        held="collect_list(struct(beginMs, endMs, number))",
    )


def _at(layer: str) -> str:
    """SQL: the value that a layer (``ofTopic``, ``ofLeader`` or ``ofAll``) has when a piece begins, or null."""
    return f"get(filter({layer}, one -> one.beginMs <= beginMs and beginMs < one.endMs), 0).number"


def _edges(layers: tuple[str, ...]) -> str:
    """SQL: the sorted times at which to cut a span: its begin, its end, and where values begin or end inside it."""
    nowhere = " and ".join(f"{layer} is null" for layer in layers)
    span = "array(wholeBeginMs, wholeEndMs)"
    edges = ", ".join(
        f"coalesce(flatten(transform({layer}, one -> array(one.beginMs, one.endMs))), array())" for layer in layers
    )
    inside = f"filter(concat({edges}), edge -> edge > wholeBeginMs and edge < wholeEndMs)"
    return f"if({nowhere}, {span}, sort_array(array_distinct(concat({span}, {inside}))))"
