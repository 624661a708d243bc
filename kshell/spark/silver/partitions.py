"""Partitions: set as a whole, changed field by field, gone with their topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.spark.silver.base.declare import silver, without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a partition and all that was so of it."""
    from kshell.spark.silver.base.merge import partition_versions

    return partition_versions(events, before, SILVER)


SILVER = silver(
    "partitions",
    "the partitions of all topics",
    without("partitions", "state", "problems", "minIsr"),
    ("topicId", "partition"),
    (
        "TOPIC_RECORD",
        "REMOVE_TOPIC_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "CLEAR_ELR_RECORD",
    ),
    versions,
    ("topics",),
)
