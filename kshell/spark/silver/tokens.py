"""Delegation tokens. A renewal is a new version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SET, _REMOVED = "DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"
_CALLED = {"tokenRequester": "requester", "expiryTimestamp": "expirationTimestamp"}
"""Columns that the record names otherwise."""


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a token and its times."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_SET))
    columns = {field.name: fn.col(f"said.{_CALLED.get(field.name, field.name)}") for field in of_the_shell("tokens")}
    states = said.select(*payload.state(SILVER, columns, gone=fn.col("type") == _REMOVED))
    return payload.whole_states(events, before, SILVER, states)


SILVER = silver("tokens", "the delegation tokens", of_the_shell("tokens"), ("tokenId",), (_SET, _REMOVED), versions)
