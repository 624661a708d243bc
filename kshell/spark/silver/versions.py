"""States into versions: SQL that is the same for every table.

A state says how a key is from one moment on: ``clusterId``, key, values, ``atOffset``, ``atMs``, ``sequence``,
``isGone`` (it is not there: the values do not matter), ``isNew`` (it begins a version even where nothing that is seen
differs), and until when it lasts at the latest: ``endsOffset``, ``endsMs``. All windows of a table are over the same
rows in the same order: one shuffle, and one sort.
"""

from __future__ import annotations

from collections.abc import Mapping

from kshell.spark.silver.declaration import BASE, SilverTable
from kshell.spark.silver.expressions import opened, quoted
from kshell.tables.declaration import OTHER_FIELDS, Field

ENDLESS = f"{(1 << 63) - 1}L"
"""The end of what lasts, while rows are sorted by it."""
MOMENT = "struct(atOffset, sequence, atMs)"
BASES = f"""bases AS (
  -- where each base snapshot of a cluster begins, in order
  SELECT clusterId, sort_array(collect_list({MOMENT})) AS bases FROM {{events}} WHERE type = '{BASE}' GROUP BY clusterId
)"""


def replay_window(table: SilverTable) -> str:
    """The window over states that can build on each other, in order: nothing goes on behind its end."""
    return f"PARTITION BY {', '.join(table.keys)}, clusterId, endsOffset ORDER BY atOffset, sequence"


def last_of(value: str, table: SilverTable) -> str:
    """The last value that is not null, up to the present state."""
    return f"last({value}, true) OVER ({replay_window(table)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"


def after(moment: str) -> str:
    """Whether a moment is after that of the row."""
    return f"({moment}.atOffset > atOffset OR ({moment}.atOffset = atOffset AND {moment}.sequence > sequence))"


def until_base(rows: str) -> str:
    """The rows of a query's part with ``endsOffset``, ``endsMs``, ``endsSequence``: nothing outlasts the next base."""
    return f"""
  SELECT * EXCEPT (bases, following), coalesce(following.atOffset, {ENDLESS}) AS endsOffset,
    following.atMs AS endsMs, following.sequence AS endsSequence
  FROM (
    SELECT /*+ BROADCAST(bases) */ {rows}.*, bases, get(filter(bases, b -> {after("b")}), 0) AS following
    FROM {rows} LEFT JOIN bases ON {rows}.clusterId = bases.clusterId
  )"""


def current(table: SilverTable, columns: str = "") -> str:
    """The current rows of a table as states that it goes on from; ``columns``: values in place of the table's own."""
    own = columns or ", ".join(field.name for field in table.values)
    return f"""
  SELECT clusterId, {", ".join(table.keys)}, validFromOffset AS atOffset, validFromMs AS atMs, -1L AS sequence,
    false AS isGone, false AS isNew, {own}
  FROM {{{table.name}}}"""


def state_columns(table: SilverTable, expressions: Mapping[str, str], is_removed: str, new: str = "false") -> str:
    """The columns of a state, in the order of :func:`current`: ``expressions`` has the key, and the
    values, which are null where the key is gone."""
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
    """The parts of a query that end with ``bounded``: states of what is only ever set as a whole and removed.

    Args:
        payload: the record's fields, which ``expressions``, ``is_removed``, ``new`` and ``where`` name ``said``.
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
    """The query of a table whose records of one type set a key as a whole, and of another remove it."""
    parts = whole_states(table, opened(record_type), expressions, is_removed=f"type = '{removed}'")
    return f"WITH {parts} {versions('bounded', table)}"


def versions(states: str, table: SilverTable) -> str:
    """The end of a query: the rows of a table. Of states at one offset the last counts; one that says the same as the
    one before begins nothing."""
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
    """A value as Spark can compare it: it takes no maps."""
    is_map = isinstance(field.type, dict) and OTHER_FIELDS in field.type
    return f"array_sort(map_entries({field.name})) AS {field.name}" if is_map else field.name
