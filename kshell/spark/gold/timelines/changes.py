"""Turn versions of a silver table into changes: what was added, changed, removed, or first found in a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshell.spark.gold.timelines.durations import timed, versions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def bases(records: DataFrame) -> DataFrame:
    """Return the snapshots with which state begins, from ``control_records``: ``clusterId``, ``file``, and ``offset``
    and time (``baseMs``) of the last record that each covers.
    """
    number = "try_cast(regexp_extract(file, '([0-9]{20})-[0-9]{10}[.]checkpoint$', 1) as bigint)"
    return (
        records.where("isSnapshot and type = 'SNAPSHOT_HEADER'")
        .selectExpr(
            "clusterId",
            "file",
            f"coalesce({number}, 0L) - 1 as offset",
            "try_cast(get_json_object(data, '$.lastContainedLogTimestamp') as bigint) as baseMs",
        )
        .distinct()
    )


def changes(versions: DataFrame, keys: Sequence[str], values: Sequence[str], clusters: DataFrame) -> DataFrame:
    """Return one row per change of a key's values.

    Returns:
        ``clusterId``, the keys, ``offset`` and ``ms`` of the record, ``change`` (added, changed, removed), ``old`` and
        ``new`` (structs of the values; null before ``added`` and after ``removed``), ``heldMs`` (how long the old
        values were valid; null for ``added``), ``isCurrent`` (whether the new values are still valid).
    """
    window, value = versions_of(keys), f"struct({', '.join(values)})"
    with_duration = timed(versions, keys, clusters).selectExpr("*", "endMs - beginMs as lastedMs")
    beside = with_duration.selectExpr(
        "*",
        f"lag(struct({', '.join(values)}, validToOffset, lastedMs)) over {window} as before",
        f"lead(validFromOffset) over {window} as nextOffset",
    ).selectExpr("*", "if(before.validToOffset = validFromOffset, before, null) as previous")
    old = f"if(previous is null, null, struct({', '.join(f'previous.{name}' for name in values)}))"
    began = (
        f"named_struct('offset', validFromOffset, 'ms', validFromMs, 'change', if(previous is null, 'added',"
        f" 'changed'), 'old', {old}, 'new', {value}, 'heldMs', previous.lastedMs, 'isCurrent', isCurrent)"
    )
    ended = (
        f"named_struct('offset', validToOffset, 'ms', validToMs, 'change', 'removed', 'old', {value}, 'new',"
        f" if(true, null, {value}), 'heldMs', lastedMs, 'isCurrent', false)"
    )
    is_gone = "validToOffset is not null and (nextOffset is null or nextOffset <> validToOffset)"
    return beside.selectExpr("clusterId", *keys, f"inline(if({is_gone}, array({began}, {ended}), array({began})))")


def with_found(changed: DataFrame, records: DataFrame) -> DataFrame:
    """Replace ``added`` by ``found`` in changes at the offset of a base snapshot. ``records``: ``control_records``."""
    base_offsets = bases(records).selectExpr("clusterId", "offset", "true as isBase").distinct()
    return (
        changed.withColumnRenamed("change", "plainChange")
        .join(base_offsets, ["offset", "clusterId"], "left")
        .selectExpr("*", "if(plainChange = 'added' and isBase, 'found', plainChange) as change")
        .drop("plainChange", "isBase")
    )
