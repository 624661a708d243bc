"""Finalized features. Level 0 takes one back, but for the metadata.version; kraft.version is told elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE
from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEVEL = "FEATURE_LEVEL_RECORD"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a feature and the level that it had."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    name, level = fn.col("said.name"), fn.col("said.featureLevel")
    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_LEVEL)).where(name != KRAFT_FEATURE)
    states = said.select(*payload.state(SILVER, {"name": name, "level": level}, gone=(level == 0) & (name != FEATURE)))
    return payload.whole_states(events, before, SILVER, states)


SILVER = silver("features", "the finalized features", of_the_shell("features"), ("name",), (_LEVEL,), versions)
