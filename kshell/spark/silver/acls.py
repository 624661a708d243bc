"""Access control entries: added and removed by id, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, RESOURCE_TYPES
from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ADDED, _REMOVED = "ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"
_CODES = {
    "resourceType": RESOURCE_TYPES,
    "patternType": PATTERN_TYPES,
    "operation": OPERATIONS,
    "permissionType": PERMISSION_TYPES,
}


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row an entry and the time that it was there."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    said = payload.of_types(events, SILVER).withColumn("said", payload.opened(_ADDED))
    columns = {
        field.name: payload.named(_CODES[field.name], fn.col(f"said.{field.name}"))
        if field.name in _CODES
        else fn.col(f"said.{field.name}")
        for field in of_the_shell("acls")
    }
    states = said.select(*payload.state(SILVER, columns, gone=fn.col("type") == _REMOVED))
    return payload.whole_states(events, before, SILVER, states)


SILVER = silver("acls", "the access control entries", of_the_shell("acls"), ("id",), (_ADDED, _REMOVED), versions)
