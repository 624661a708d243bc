"""The table ``config_drift``: configs whose values now differ between clusters, or between the brokers of one."""

from kshell.spark.gold.timelines import config_comparison
from kshell.spark.gold.timelines.config_comparison import CONFIG_SQL, MEMBER_SQL, RESOURCE_SQL
from kshell.spark.tables.expectations import at_least, not_null, ordered
from kshell.spark.tables.gold_table import GoldTable
from kshell.tables.declaration import Field

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

_QUERY = f"""
WITH configured AS ({config_comparison.values("validFromMs AS sinceMs", where="isCurrent")}
),
members AS (SELECT DISTINCT * FROM ({config_comparison.lives(where="isCurrent")}
)),
names AS (
  SELECT DISTINCT {CONFIG_SQL} FROM configured LEFT SEMI JOIN members USING ({MEMBER_SQL})
),
counted AS (
  SELECT *, count(*) OVER (PARTITION BY {CONFIG_SQL}) AS members,
    count(*) OVER (PARTITION BY {CONFIG_SQL}, value) AS agreeing
  FROM members JOIN names USING ({RESOURCE_SQL}) LEFT JOIN configured USING ({MEMBER_SQL}, name)
),
compared AS (
  SELECT *, size(collect_set(struct(value)) OVER (PARTITION BY {CONFIG_SQL})) AS values,
    first_value(struct(value)) OVER (PARTITION BY {CONFIG_SQL} ORDER BY agreeing DESC, value ASC NULLS LAST) AS usual
  FROM counted
)
SELECT *, usual.value AS usualValue, NOT (usual.value <=> value) AS isUnusual FROM compared WHERE values > 1"""


GOLD = GoldTable(
    "config_drift",
    "configs that now differ between clusters, or between the brokers of one",
    FIELDS,
    _QUERY,
    is_fleet=True,
    expect=(*not_null("members", "agreeing"), *at_least(1, "agreeing", "values"), ordered("agreeing", "members")),
)
