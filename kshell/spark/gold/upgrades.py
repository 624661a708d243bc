"""The table ``upgrades``: each change of a finalized feature's level, metadata.version and kraft.version included."""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING

from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE, version_name
from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.changes import bases, changes, with_found
from kshell.spark.gold.timelines.durations import day_of, versions_of
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def upgrades(tables: Tables) -> DataFrame:
    """List the changes of finalized features, metadata.version and kraft.version."""
    levels = (
        tables["features"]
        .where(f"name <> '{KRAFT_FEATURE}'")
        .selectExpr(
            "clusterId", "name", "level", "validFromOffset", "validFromMs", "validToOffset", "validToMs", "isCurrent"
        )
    )
    changed = changes(
        levels.unionByName(_kraft_versions(tables["control_records"])), ("name",), ("level",), tables["clusters"]
    )
    change = (
        "case when plainChange = 'added' then 'first' when plainChange <> 'changed' then plainChange"
        " when new.level < old.level then 'downgrade' else 'upgrade' end as change"
    )
    with_levels = (
        with_found(changed, tables["control_records"])
        .where("not (old.level <=> new.level)")
        .withColumnRenamed("change", "plainChange")
        .selectExpr(
            "*",
            change,
            "name as feature",
            f"{day_of('ms')} as day",
            "old.level as oldLevel",
            "new.level as newLevel",
            f"{_name('old.level')} as oldName",
            f"{_name('new.level')} as newName",
        )
    )
    return aggregates.typed(with_levels, FIELDS)


def _name(level: str) -> str:
    """SQL: the name of a level of metadata.version (``3.9-IV0``); null for other features."""
    names = ", ".join(f"'{name}'" for name in takewhile(lambda name: "-IV" in name, map(version_name, count(1))))
    return (
        f"if(name = '{FEATURE}', coalesce(get(array({names}), {level} - 1), concat('unknown level ', {level})), null)"
    )


def _kraft_versions(records: DataFrame) -> DataFrame:
    """Return the levels of kraft.version, which are in control records, as versions like those of other features."""
    levels = (
        records.where("type = 'KRAFT_VERSION' and reason is null")
        .select("clusterId", "file", "isSnapshot", "offset", "timestampMs", "data")
        .join(bases(records).withColumnRenamed("offset", "baseOffset"), ["clusterId", "file"], "left")
        .where("not isSnapshot or baseOffset is not null")
        .selectExpr(
            "clusterId",
            f"'{KRAFT_FEATURE}' as name",
            "cast(get_json_object(data, '$.kRaftVersion') as smallint) as level",
            "if(isSnapshot, baseOffset, offset) as validFromOffset",
            "if(isSnapshot, baseMs, timestampMs) as validFromMs",
        )
        .distinct()
    )
    window = versions_of(("name",))
    changed = levels.selectExpr("*", f"lag(level) over {window} <=> level as isSame").where("not isSame").drop("isSame")
    ended = changed.selectExpr(
        "*", f"lead(validFromOffset) over {window} as validToOffset", f"lead(validFromMs) over {window} as validToMs"
    )
    return ended.selectExpr("*", "validToOffset is null as isCurrent")


GOLD = GoldTable(
    "upgrades",
    "changes of features: metadata.version by name, kraft.version, others",
    FIELDS,
    ("features", "control_records", "clusters"),
    upgrades,
    expect=(*key("clusterId", "offset", "feature"), *at_least(0, "heldMs")),
)
