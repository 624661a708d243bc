"""Which records take effect, and at which offset, by the rules of :mod:`kshell.metadata.replay`.

Records of a metadata transaction (KIP-868) take effect at its end; those of an aborted or open one do not. A base
snapshot replaces the log before it, but for the LeaderChange that opened its epoch: no snapshot has one. In come
decoded records, out go events, which all silver tables are computed from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.protocol.control import CONTROL_TYPES
from kshell.spark.silver.declaration import BASE
from kshell.spark.silver.expressions import quoted
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVENT_FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("atOffset", "int64", "when it takes effect: its offset; in a transaction its end; in a base the end - 1"),
    Field("atMs", "int64", "the time of that record; of a base, of the last record in it"),
    Field("sequence", "int64", "the order of what takes effect at one offset; what a base holds comes last"),
    Field("isBase", "boolean", "whether a base snapshot holds it"),
    Field("type", "string", "the record's"),
    Field("version", "int16", "of the record's type"),
    Field("data", "json", "the record's fields"),
)
RANGE_FIELDS = (
    Field("clusterId", "string", "the cluster"),
    Field("base", "string", "the snapshot that the state begins with; null: it goes on"),
    Field("sinceOffset", "int64", "the first offset of the log that is applied on it"),
    Field("toOffset", "int64", "the offset after the last one"),
)
"""A replay range: a part of the log that is applied to the state before it, or to that of its base snapshot."""

_BEGIN, _END, _ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
_MARKERS = quoted((_BEGIN, _END, _ABORT))
_LEADER = "LEADER_CHANGE"
_CONTROL = quoted(kind.name for kind in CONTROL_TYPES.values())
_IN_BASE = f"{1 << 62}L"
"""SQL: added to a record's offset within a snapshot for its ``sequence``: larger than any offset of a log."""

_TRANSACTIONS = f"""
WITH bounded AS (
  -- what is given again of a transaction lies before the first replay range of a cluster that goes on
  SELECT *,
    if(base IS NULL AND sinceOffset = min(sinceOffset) OVER (PARTITION BY clusterId), 0, sinceOffset) AS fromOffset,
    sinceOffset = max(sinceOffset) OVER (PARTITION BY clusterId) AS isNewest
  FROM {{ranges}}
),
placed AS (
  -- records with the replay range that they belong to
  SELECT /*+ BROADCAST(bounded) */ r.clusterId, file, isSnapshot, offset, epoch, timestampMs, type, version, data,
    reason, sinceOffset, isNewest
  FROM {{records}} r JOIN bounded ON r.clusterId = bounded.clusterId
    AND ((isSnapshot AND file = base) OR (NOT isSnapshot AND offset >= fromOffset AND offset < toOffset))
),
markers AS (
  SELECT clusterId, sinceOffset, isNewest, offset, timestampMs, type,
    lag(type = '{_BEGIN}', 1, false) OVER (PARTITION BY clusterId, sinceOffset ORDER BY offset) AS wasOpen
  FROM placed WHERE NOT isSnapshot AND type IN ({_MARKERS})
),
transactions AS (
  -- `ender` is null for one that is open. A marker that does not fit (a begin in a transaction, an end outside of one)
  -- is passed over; one that did not decode still marks
  SELECT * FROM (
    SELECT clusterId, sinceOffset, isNewest, type, offset AS begun,
      lead(offset) OVER run AS ender, lead(timestampMs) OVER run AS endMs, lead(type) OVER run = '{_ABORT}' AS isDropped
    FROM markers WHERE (type = '{_BEGIN}') <> wasOpen
    WINDOW run AS (PARTITION BY clusterId, sinceOffset ORDER BY offset)
  ) WHERE type = '{_BEGIN}'
)"""

_EFFECTIVE = f"""{_TRANSACTIONS},
closed AS (
  -- joined by stretches of 1,024 offsets: few transactions touch one, and few stretches have any
  SELECT *, explode(sequence(shiftright(begun, 10), shiftright(ender, 10))) AS stretch
  FROM transactions WHERE ender IS NOT NULL
),
opened AS (SELECT clusterId, sinceOffset, begun FROM transactions WHERE ender IS NULL),
log AS (
  SELECT *, type NOT IN ({_CONTROL}) AS waits
  FROM placed WHERE NOT isSnapshot AND reason IS NULL AND type NOT IN ({_MARKERS})
),
reached AS (
  SELECT /*+ BROADCAST(opened) */ * FROM log LEFT ANTI JOIN opened ON log.clusterId = opened.clusterId
    AND log.sinceOffset = opened.sinceOffset AND waits AND offset > begun
),
in_log AS (
  SELECT /*+ BROADCAST(closed) */ l.clusterId, coalesce(ender, offset) AS atOffset,
    coalesce(endMs, timestampMs) AS atMs,
    offset AS sequence, false AS isBase, l.type, version, data, l.sinceOffset, coalesce(isDropped, false) AS isDropped
  FROM reached l LEFT JOIN closed ON l.clusterId = closed.clusterId AND shiftright(offset, 10) = stretch
    AND waits AND offset > begun AND offset < ender
),
headers AS (
  SELECT clusterId, file, sinceOffset, epoch,
    cast(get_json_object(data, '$.lastContainedLogTimestamp') AS bigint) AS atMs
  FROM placed WHERE isSnapshot AND reason IS NULL AND type = '{BASE}'
),
leaders AS (
  SELECT /*+ BROADCAST(h) */ h.clusterId, sinceOffset, h.epoch, atMs,
    max_by(struct(c.epoch, version, data), offset) AS change
  FROM {{control_records}} c JOIN headers h ON c.clusterId = h.clusterId AND offset < sinceOffset
  WHERE NOT isSnapshot AND reason IS NULL AND type = '{_LEADER}'
  GROUP BY ALL
)
SELECT clusterId, atOffset, atMs, sequence, isBase, type, version, data
FROM in_log WHERE NOT isDropped AND atOffset >= sinceOffset
UNION ALL
SELECT /*+ BROADCAST(headers) */ s.clusterId, s.sinceOffset - 1, atMs, offset + {_IN_BASE}, true, type, version, data
FROM placed s JOIN headers ON s.clusterId = headers.clusterId AND s.file = headers.file
WHERE isSnapshot AND reason IS NULL
UNION ALL
SELECT clusterId, sinceOffset - 1, atMs, {_IN_BASE}, true, '{_LEADER}', change.version, change.data
FROM leaders WHERE change.epoch >= epoch"""


def effective(records: DataFrame, ranges: DataFrame, control_records: DataFrame) -> DataFrame:
    """Return the records that take effect, each once.

    Args:
        records: rows of the view ``records``, each (cluster, offset) of the log once. If the step before left a
            transaction open, they start where that begins (:func:`open_transactions_of`). A record that could not be
            decoded takes no effect.
        ranges: the replay ranges, with columns :data:`RANGE_FIELDS`.
        control_records: rows of ``control_records`` for clusters with a base, those of earlier steps, too.

    Returns:
        Rows with columns :data:`EVENT_FIELDS`, in no particular order.
    """
    return records.sparkSession.sql(_EFFECTIVE, records=records, ranges=ranges, control_records=control_records)


def open_transactions_of(records: DataFrame, ranges: DataFrame) -> DataFrame:
    """Find transactions that are still open at the end. The next step must be given their records again.

    Returns:
        ``clusterId`` and ``offset`` of the BeginTransactionRecord, for clusters with an open transaction.
    """
    query = f"{_TRANSACTIONS} SELECT clusterId, begun AS offset FROM transactions WHERE isNewest AND ender IS NULL"
    return records.sparkSession.sql(query, records=records, ranges=ranges)
