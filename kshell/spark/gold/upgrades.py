"""The table ``upgrades``: each change of a finalized feature's level, metadata.version and kraft.version included."""

from __future__ import annotations

from itertools import count, takewhile

from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE, version_name
from kshell.spark.gold.timelines.changes import BASES, changes, with_found
from kshell.spark.gold.timelines.durations import day_of, versions_of
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("offset", "int64", "the record; the last one in a snapshot, of what a snapshot said first"),
    Field("ms", "int64", "its time; the time of the last record in that snapshot"),
    Field("day", "string", "its day, in UTC"),
    Field("feature", "string", "metadata.version, kraft.version (told by control records), …"),
    Field(
        "change",
        "string",
        "found (in the snapshot with which what is known begins), first (it was not finalized"
        " before), upgrade, downgrade, removed",
    ),
    Field("oldLevel", "int32", "its level before; null for found and first"),
    Field("newLevel", "int32", "its level after; null for removed"),
    Field("oldName", "string", "that level's name (3.9-IV0); only of metadata.version"),
    Field("newName", "string", "the same of the level after"),
    Field("heldMs", "int64", "how long the level before had held; null if there was none"),
)

_NAMES = ", ".join(f"'{name}'" for name in takewhile(lambda name: "-IV" in name, map(version_name, count(1))))


def _name(level: str) -> str:
    """SQL: the name of a level of metadata.version (``3.9-IV0``); null for other features."""
    return (
        f"if(name = '{FEATURE}', coalesce(get(array({_NAMES}), {level} - 1), concat('unknown level ', {level})), NULL)"
    )


_WINDOW = versions_of(("name",))
_LEVELS = f"""(
    SELECT clusterId, name, level, validFromOffset, validFromMs, validToOffset, validToMs, isCurrent
    FROM {{features}} WHERE name <> '{KRAFT_FEATURE}'
    UNION ALL
    -- levels of kraft.version are in control records: these are its versions
    SELECT clusterId, name, level, validFromOffset, validFromMs, lead(validFromOffset) OVER {_WINDOW},
      lead(validFromMs) OVER {_WINDOW}, lead(validFromOffset) OVER {_WINDOW} IS NULL
    FROM (
      SELECT *, lag(level) OVER {_WINDOW} <=> level AS isSame
      FROM (
        SELECT DISTINCT clusterId, '{KRAFT_FEATURE}' AS name,
          cast(get_json_object(data, '$.kRaftVersion') AS smallint) AS level,
          if(isSnapshot, bases.offset, records.offset) AS validFromOffset,
          if(isSnapshot, baseMs, timestampMs) AS validFromMs
        FROM {{control_records}} AS records LEFT JOIN ({BASES}) AS bases USING (clusterId, file)
        WHERE type = 'KRAFT_VERSION' AND reason IS NULL AND (NOT isSnapshot OR bases.offset IS NOT NULL)
      )
    )
    WHERE NOT isSame
  )"""
_CHANGES = f"({changes(_LEVELS, ('name',), ('level',))})"
_QUERY = f"""
SELECT * EXCEPT (change), name AS feature, {day_of("ms")} AS day, old.level AS oldLevel, new.level AS newLevel,
  {_name("old.level")} AS oldName, {_name("new.level")} AS newName,
  CASE WHEN change = 'added' THEN 'first' WHEN change <> 'changed' THEN change
    WHEN new.level < old.level THEN 'downgrade' ELSE 'upgrade' END AS change
FROM ({with_found(_CHANGES)})
WHERE NOT (old.level <=> new.level)"""


GOLD = GoldTable(
    "upgrades",
    "changes of features: metadata.version by name, kraft.version, others",
    FIELDS,
    _QUERY,
    expect=(*key("clusterId", "offset", "feature"), *at_least(0, "heldMs")),
)
