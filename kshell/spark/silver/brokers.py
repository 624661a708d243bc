"""The table ``brokers``: registrations of brokers, and the records that replace, fence, unfence, change or remove them.

A record that changes a registration takes effect only if it names the registration's broker epoch.
"""

from __future__ import annotations

from kshell.spark.silver.declaration import SilverTable, silver
from kshell.spark.silver.expressions import features, listeners, quoted, record_fields_sql
from kshell.spark.silver.versions import BASES, current, last_of, state_columns, until_base, versions

_SET, _REMOVED = "REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD"
_FENCED, _UNFENCED, _CHANGED = "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"
_MAY_CHANGE = ("fenced", "inControlledShutdown", "directories", "cordonedDirectories")
"""Columns that later records can change; only another registration changes the rest."""
_NOBODY = "cast(-9223372036854775808 AS bigint)"
"""SQL: stands for the epoch of a broker that is not registered: no record has it."""


def _sorted(ids: str) -> str:
    """Sort an array of ids as Kafka does (``Uuid.compareTo``): by its two halves, which are signed."""
    digits = "hex(unbase64(concat(translate(directory, '-_', '+/'), '==')))"
    high, low = (f"translate(substr({digits}, {at}, 1), '0123456789ABCDEF', '89ABCDEF01234567')" for at in (1, 17))
    key = f"concat({high}, substr({digits}, 2, 15), {low}, substr({digits}, 18))"
    keyed = f"transform({ids}, directory -> named_struct('key', {key}, 'id', directory))"
    return f"transform(array_sort({keyed}), directory -> directory.id)"


def _brokers(table: SilverTable) -> str:
    """Build the query: one row per version of a broker's registration."""
    expressions = {
        "id": "coalesce(registered.brokerId, change.brokerId, fence.id, removed.brokerId)",
        "epoch": "coalesce(registered.brokerEpoch, change.brokerEpoch, fence.epoch)",
        "fenced": f"CASE WHEN type = '{_SET}' THEN registered.fenced"
        f" WHEN type IN ('{_FENCED}', '{_UNFENCED}') THEN type = '{_FENCED}'"
        " WHEN change.fenced IN (-1, 1) THEN change.fenced = 1 END",
        "inControlledShutdown": f"CASE WHEN type = '{_SET}' THEN coalesce(registered.inControlledShutdown, false)"
        " WHEN change.inControlledShutdown = 1 THEN true END",
        "rack": "registered.rack",
        "listeners": listeners("registered.endPoints"),
        "incarnationId": "registered.incarnationId",
        "supportedFeatures": features("registered.features"),
        "directories": _sorted(
            f"CASE WHEN type = '{_SET}' THEN coalesce(registered.logDirs, cast(array() AS array<string>))"
            " WHEN size(change.logDirs) > 0 THEN change.logDirs END"
        ),
        "cordonedDirectories": "coalesce(registered.cordonedLogDirs, change.cordonedLogDirs)",
        "isMigratingZkBroker": f"CASE WHEN type = '{_SET}' THEN coalesce(registered.isMigratingZkBroker, false) END",
    }
    registered = [field.name for field in table.values if field.name not in _MAY_CHANGE]
    registration = f"CASE WHEN type = '{_SET}' THEN struct({', '.join(registered)}) END"
    changed = ", ".join(
        last_of(f"CASE WHEN type = '{_SET}' OR {name} IS NOT NULL THEN struct({name}) END", table)
        + f".{name} AS {name}"
        for name in _MAY_CHANGE
    )
    epoch = f"CASE type WHEN '{_SET}' THEN epoch WHEN '{_REMOVED}' THEN {_NOBODY} END"
    return f"""
WITH {BASES},
opened AS (
  SELECT *,
    CASE WHEN type = '{_SET}' THEN {record_fields_sql(_SET)} END AS registered,
    CASE WHEN type = '{_REMOVED}' THEN {record_fields_sql(_REMOVED, "brokerId")} END AS removed,
    CASE WHEN type IN ('{_FENCED}', '{_UNFENCED}') THEN {record_fields_sql(_FENCED, "id", "epoch")} END AS fence,
    CASE WHEN type = '{_CHANGED}' THEN {record_fields_sql(_CHANGED)} END AS change
  FROM {{events}} WHERE type IN ({quoted(table.record_types)})
),
said AS (
  -- each record with what it names; the rest is null
  SELECT {state_columns(table, expressions, is_removed=f"type = '{_REMOVED}'")}, type,
    (change.fenced IS NULL OR change.fenced IN (-1, 0, 1))
      AND (change.inControlledShutdown IS NULL OR change.inControlledShutdown IN (0, 1)) AS isKnown
  FROM opened
  UNION ALL
  SELECT *, '{_SET}', true FROM ({current(table)})
),
bounded AS ({until_base("said")}
),
fitting AS (
  SELECT * FROM (SELECT *, {last_of(epoch, table)} AS currentEpoch FROM bounded)
  WHERE type IN ('{_SET}', '{_REMOVED}') OR (isKnown AND epoch = currentEpoch)
),
states AS (
  SELECT * EXCEPT (registration), registration.* FROM (
    SELECT clusterId, id, atOffset, atMs, sequence, isGone, isNew, endsOffset, endsMs,
      {last_of(registration, table)} AS registration, {changed}
    FROM fitting
  )
) {versions("states", table)}"""


TABLES = (
    silver(
        "brokers",
        "the registrations of brokers",
        ("id",),
        (_SET, _REMOVED, _FENCED, _UNFENCED, _CHANGED),
        _brokers,
    ),
)
