"""SQL that turns the states of a key into versions, in the same way for every silver table.

A state says how a key is from one moment on. Its columns are ``clusterId``, the key, the values, the moment
(``atOffset``, ``sequence``, ``atMs``), ``isGone`` (the key does not exist: ignore the values), ``isNew`` (it begins a
version even if no visible value differs), and when it ends at the latest (``endsOffset``, ``endsMs``). All windows of
a table have the same rows in the same order, so that Spark shuffles and sorts once.
"""

from __future__ import annotations

from collections.abc import Mapping

from kshell.spark.silver.declaration import BASE, SilverTable
from kshell.spark.silver.expressions import quoted, record_fields_sql
from kshell.tables.declaration import OTHER_FIELDS, Field

ENDLESS = f"{(1 << 63) - 1}L"
"""SQL: stands for the end of versions that have not ended, so that rows can be sorted by it."""
MOMENT = "struct(atOffset, sequence, atMs)"
"""SQL: when a row takes effect; moments compare by offset, then by sequence."""
BASES = f"""bases AS (
  -- where each base snapshot of a cluster begins, in order
  SELECT clusterId, sort_array(collect_list({MOMENT})) AS bases FROM {{events}} WHERE type = '{BASE}' GROUP BY clusterId
)"""


def replay_window(table: SilverTable) -> str:
    """SQL: the window over a key's states that share an ``endsOffset``: no value carries over to states after that."""
    return f"PARTITION BY {', '.join(table.keys)}, clusterId, endsOffset ORDER BY atOffset, sequence"


def last_of(value: str, table: SilverTable) -> str:
    """SQL: the last value that is not null, up to the current state."""
    return f"last({value}, true) OVER ({replay_window(table)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"


def after(moment: str) -> str:
    """SQL: whether a moment is after that of the row."""
    return f"({moment}.atOffset > atOffset OR ({moment}.atOffset = atOffset AND {moment}.sequence > sequence))"


def until_base(rows: str) -> str:
    """SQL: add ``endsOffset``, ``endsMs``, ``endsSequence`` to rows: they end with the next base at the latest."""
    return f"""
  SELECT * EXCEPT (bases, following), coalesce(following.atOffset, {ENDLESS}) AS endsOffset,
    following.atMs AS endsMs, following.sequence AS endsSequence
  FROM (
    SELECT /*+ BROADCAST(bases) */ {rows}.*, bases, get(filter(bases, b -> {after("b")}), 0) AS following
    FROM {rows} LEFT JOIN bases ON {rows}.clusterId = bases.clusterId
  )"""


def current(table: SilverTable, columns: str = "") -> str:
    """SQL: a table's current rows as the states to start from; ``columns``: values instead of the table's own."""
    own = columns or ", ".join(field.name for field in table.values)
    return f"""
  SELECT clusterId, {", ".join(table.keys)}, validFromOffset AS atOffset, validFromMs AS atMs, -1L AS sequence,
    false AS isGone, false AS isNew, {own}
  FROM {{{table.name}}}"""


def state_columns(table: SilverTable, expressions: Mapping[str, str], is_removed: str, new: str = "false") -> str:
    """SQL: the columns of a state, in the order of :func:`current`. ``expressions``: the key and the values, which are
    null where ``is_removed``. ``new``: whether a record (not of a base) begins a version in any case."""
    keys = ", ".join(f"{expressions[name]} AS {name}" for name in table.keys)
    values = ", ".join(
        f"CASE WHEN NOT ({is_removed}) THEN {expressions[field.name]} END AS {field.name}" for field in table.values
    )
    return (
        f"clusterId, {keys}, atOffset, atMs, sequence, {is_removed} AS isGone, {new} AND NOT isBase AS isNew, {values}"
    )


def whole_states(
    table: SilverTable,
    payload: str,
    expressions: Mapping[str, str],
    is_removed: str,
    new: str = "false",
    where: str = "true",
) -> str:
    """SQL: common table expressions up to ``bounded``, the states of keys that are only set as a whole and removed.

    Args:
        payload: the record's fields as a struct, ``said`` in ``expressions``, ``is_removed``, ``new`` and ``where``.
    """
    return f"""
said AS (
  SELECT *, {payload} AS said FROM {{events}} WHERE type IN ({quoted(table.record_types)})
),
stated AS (
  SELECT {state_columns(table, expressions, is_removed, new)} FROM said WHERE {where}
  UNION ALL {current(table)}
),
{BASES},
bounded AS ({until_base("stated")}
)"""


def set_and_removed(table: SilverTable, record_type: str, expressions: Mapping[str, str], removed: str) -> str:
    """Build the query of a table in which one type of record sets a key as a whole and another type removes it."""
    parts = whole_states(table, record_fields_sql(record_type), expressions, is_removed=f"type = '{removed}'")
    return f"WITH {parts} {versions('bounded', table)}"


def versions(states: str, table: SilverTable) -> str:
    """SQL: the end of a query, which turns ``states`` into the table's rows. Of several states at one offset the last
    counts. A state with the same values as the one before begins no version, unless it ``isNew``."""
    key = f"PARTITION BY {', '.join(table.keys)}, clusterId"
    order = f"{key} ORDER BY endsOffset, atOffset, sequence"
    compared_values = f"struct({', '.join(_comparable(field) for field in table.values)})"
    return f""",
settled AS (
  SELECT * FROM (SELECT *, lead(atOffset) OVER ({order}) AS followingOffset FROM {states})
  WHERE followingOffset IS NULL OR followingOffset <> atOffset
),
linked AS (
  SELECT *, lag(struct({compared_values} AS seen, isGone, endsOffset, endsMs)) OVER ({order}) AS previous,
    max(struct(endsOffset, endsMs)) OVER ({key}) AS lastEnd
  FROM settled
),
compared AS (
  SELECT *,
    coalesce(previous.endsOffset < atOffset, false) AS isCutOff,
    previous IS NOT NULL AND NOT previous.isGone AND NOT isGone AND NOT previous.endsOffset < atOffset
      AND {compared_values} <=> previous.seen AND NOT isNew AS goesOn
  FROM linked
),
begun AS (
  SELECT *, coalesce(
      lead(CASE WHEN isCutOff THEN struct(previous.endsOffset AS offset, previous.endsMs AS ms)
                ELSE struct(atOffset AS offset, atMs AS ms) END) OVER ({order}),
      struct(lastEnd.endsOffset AS offset, lastEnd.endsMs AS ms)
    ) AS end
  FROM compared WHERE NOT goesOn
)
SELECT clusterId, {", ".join(field.name for field in table.fields[1:-5])},
  atOffset AS validFromOffset, atMs AS validFromMs,
  CASE WHEN end.offset <> {ENDLESS} THEN end.offset END AS validToOffset,
  CASE WHEN end.offset <> {ENDLESS} THEN end.ms END AS validToMs,
  end.offset = {ENDLESS} AS isCurrent
FROM begun WHERE NOT isGone AND end.offset > atOffset"""


def _comparable(field: Field) -> str:
    """SQL: a value in a form that Spark can compare: a map as the sorted array of its entries."""
    is_map = isinstance(field.type, dict) and OTHER_FIELDS in field.type
    return f"array_sort(map_entries({field.name})) AS {field.name}" if is_map else field.name
