"""From when to when each topic was there: what its partitions and configs hang on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kshell.spark.silver.base.payload import opened
from kshell.spark.silver.base.states import BEFORE, until_base

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MADE, REMOVED = "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"


def topic_lives(events: DataFrame, before: DataFrame) -> DataFrame:
    """(clusterId, topicId, topic, begun, ended, isRemoved): ``begun`` and ``ended`` are moments (atOffset, sequence,
    atMs), ``ended`` null for a topic that is there at the end; ``isRemoved`` is false, too, where a base lacks it.

    ``before``: current rows of the table ``topics``.
    """
    said = events.where(fn.col("type").isin(MADE, REMOVED)).withColumn("said", opened(MADE))
    rows = said.select(
        "clusterId", "said.topicId", fn.col("said.name").alias("topic"), "atOffset", "atMs", "sequence", "type"
    )
    bounded = until_base(rows.unionByName(_known(before)), events)
    order = Window.partitionBy("topicId", "clusterId").orderBy("endsOffset", "atOffset", "sequence")
    based = fn.when(
        fn.col("endsMs").isNotNull(),
        fn.struct(
            fn.col("endsOffset").alias("atOffset"),
            fn.col("endsSequence").alias("sequence"),
            fn.col("endsMs").alias("atMs"),
        ),
    )
    following = fn.lead(fn.struct("type", moment().alias("moment"))).over(order)
    found = bounded.withColumn("_following", following).where(fn.col("type") == MADE)
    ended = fn.least("_following.moment", based)
    return found.select(
        "clusterId",
        "topicId",
        "topic",
        moment().alias("begun"),
        ended.alias("ended"),
        fn.coalesce(
            (fn.col("_following.type") == REMOVED) & (fn.col("_following.moment") == ended), fn.lit(False)
        ).alias("isRemoved"),
    )


def _known(before: DataFrame) -> DataFrame:
    """Topics that were there before, as if each had been made by a record."""
    return before.select(
        "clusterId",
        "topicId",
        fn.col("name").alias("topic"),
        fn.col("validFromOffset").alias("atOffset"),
        fn.col("validFromMs").alias("atMs"),
        fn.lit(BEFORE).cast("long").alias("sequence"),
        fn.lit(MADE).alias("type"),
    )


def moment() -> Column:
    """When a row takes effect."""
    return fn.struct("atOffset", "sequence", "atMs")
