"""Topics: their names and ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MADE, _REMOVED = "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a topic and the time that it was there."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_MADE))
    columns = {"name": fn.col("said.name"), "topicId": fn.col("said.topicId")}
    states = said.select(*payload.state(SILVER, columns, gone=fn.col("type") == _REMOVED))
    return payload.whole_states(events, before, SILVER, states)


SILVER = silver(
    "topics",
    "the topics: their names and ids",
    of_the_shell("topics", "name", "topicId"),
    ("topicId",),
    (_MADE, _REMOVED),
    versions,
)
