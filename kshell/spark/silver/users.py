"""Users with SCRAM credentials. All but the iterations is secret: a credential that was set anew is a new version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.metadata.families.scram import MECHANISMS
from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SET, _REMOVED = "USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a credential."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_SET, "name", "mechanism", "iterations"))
    columns = {
        "name": fn.col("said.name"),
        "mechanism": payload.named(MECHANISMS, fn.col("said.mechanism")),
        "iterations": fn.col("said.iterations"),
    }
    states = said.select(*payload.state(SILVER, columns, gone=fn.col("type") == _REMOVED, new=fn.lit(True)))
    return payload.whole_states(events, before, SILVER, states)


SILVER = silver(
    "users",
    "the users with SCRAM credentials",
    of_the_shell("users"),
    ("name", "mechanism"),
    (_SET, _REMOVED),
    versions,
)
