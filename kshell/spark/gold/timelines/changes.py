"""Turn versions of a silver table into changes: what was added, changed, removed, or first found in a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from kshell.spark.gold.timelines.durations import timed, versions_of

BASES = """
  SELECT DISTINCT clusterId, file,
    coalesce(try_cast(regexp_extract(file, '([0-9]{{20}})-[0-9]{{10}}[.]checkpoint$', 1) AS bigint), 0L) - 1 AS offset,
    try_cast(get_json_object(data, '$.lastContainedLogTimestamp') AS bigint) AS baseMs
  FROM {control_records} WHERE isSnapshot AND type = 'SNAPSHOT_HEADER'"""
"""SQL: the snapshots with which state begins, from ``{control_records}``: ``clusterId``, ``file``, and ``offset`` and
time (``baseMs``) of the last record that each covers."""


def changes(versions: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """SQL: one row per change of a key's values. Reads ``{clusters}``, too.

    Its columns are ``clusterId``, the keys, ``offset`` and ``ms`` of the record, ``change`` (added, changed, removed),
    ``old`` and ``new`` (structs of the values; null before ``added`` and after ``removed``), ``heldMs`` (how long the
    old values were valid; null for ``added``), ``isCurrent`` (whether the new values are still valid).
    """
    window, value = versions_of(keys), f"struct({', '.join(values)})"
    old = f"if(previous IS NULL, NULL, struct({', '.join(f'previous.{name}' for name in values)}))"
    began = (
        "named_struct('offset', validFromOffset, 'ms', validFromMs, 'change', if(previous IS NULL, 'added', 'changed'),"
        f" 'old', {old}, 'new', {value}, 'heldMs', previous.lastedMs, 'isCurrent', isCurrent)"
    )
    ended = (
        f"named_struct('offset', validToOffset, 'ms', validToMs, 'change', 'removed', 'old', {value},"
        f" 'new', if(true, NULL, {value}), 'heldMs', lastedMs, 'isCurrent', false)"
    )
    is_gone = "validToOffset IS NOT NULL AND (nextOffset IS NULL OR nextOffset <> validToOffset)"
    return f"""
  SELECT clusterId, {", ".join(keys)}, inline(if({is_gone}, array({began}, {ended}), array({began})))
  FROM (
    SELECT *, if(before.validToOffset = validFromOffset, before, NULL) AS previous
    FROM (
      SELECT *, lag(struct({", ".join(values)}, validToOffset, lastedMs)) OVER {window} AS before,
        lead(validFromOffset) OVER {window} AS nextOffset
      FROM (SELECT *, endMs - beginMs AS lastedMs FROM ({timed(versions, keys)}))
    )
  )"""


def with_found(changed: str) -> str:
    """SQL: changes, with ``found`` instead of ``added`` at the offset of a base snapshot. Reads ``{control_records}``,
    too.
    """
    return f"""
  SELECT * EXCEPT (change, isBase), if(change = 'added' AND isBase, 'found', change) AS change
  FROM {changed}
  LEFT JOIN (SELECT DISTINCT clusterId, offset, true AS isBase FROM ({BASES})) USING (offset, clusterId)"""
