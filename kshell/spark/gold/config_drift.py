"""The table ``config_drift``: configs whose values now differ between clusters, or between the brokers of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates, config_comparison
from kshell.spark.gold.timelines.config_comparison import MEMBER, RESOURCE
from kshell.spark.tables.expectations import at_least, not_null, ordered
from kshell.spark.tables.gold_table import GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    *config_comparison.FIELDS,
    Field(
        "value",
        "string",
        "the value at this cluster or broker; null where it is not set, [redacted] if it is secret (two of those count"
        " as the same)",
    ),
    Field("sinceMs", "int64", "since when; null where it is not set"),
    Field(
        "usualValue",
        "string",
        "the value that most have, null standing for not set; the smallest one, null last, if several are as frequent",
    ),
    Field(
        "members",
        "int32",
        "how many are compared: clusters that have the resource (the topic; a registered broker"
        " for the default of all brokers; where the config or another is set at it, for others), or registered"
        " brokers",
    ),
    Field("agreeing", "int32", "how many members, this one included, have this row's value"),
    Field("values", "int32", "how many different values there are, not set counting as one"),
    Field("isUnusual", "boolean", "whether the value here is not the usual one"),
)


def config_drift(tables: Tables) -> DataFrame:
    """List the current values, at every member of a comparison, of configs whose value differs between members."""
    current = {name: tables[name].where("isCurrent") for name in config_comparison.NEEDS}
    values = config_comparison.values(current["configs"], ["validFromMs as sinceMs"])
    members = config_comparison.lives(current, []).distinct()
    named = values.join(members, [*RESOURCE, *MEMBER], "left_semi")
    names = named.select(*RESOURCE, "name").distinct()
    grid = members.join(names, list(RESOURCE)).join(values, [*RESOURCE, *MEMBER, "name"], "left")
    group = ", ".join((*RESOURCE, "name"))
    counted = grid.selectExpr(
        "*",
        f"count(*) over (partition by {group}) as members",
        f"count(*) over (partition by {group}, value) as agreeing",
    ).selectExpr(
        "*",
        f"size(collect_set(struct(value)) over (partition by {group})) as values",
        f"first_value(struct(value)) over (partition by {group} order by agreeing desc, value asc nulls last) as usual",
    )
    differing = counted.where("values > 1").selectExpr(
        "*", "usual.value as usualValue", "not (usual.value <=> value) as isUnusual"
    )
    return aggregates.typed(differing, FIELDS)


GOLD = GoldTable(
    "config_drift",
    "configs that now differ between clusters, or between the brokers of one",
    FIELDS,
    config_comparison.NEEDS,
    config_drift,
    is_fleet=True,
    expect=(*not_null("members", "agreeing"), *at_least(1, "agreeing", "values"), ordered("agreeing", "members")),
)
