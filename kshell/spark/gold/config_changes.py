"""The table ``config_changes``: every change of a config's value, one row per change."""

from kshell.spark.gold.timelines.changes import changes, with_found
from kshell.spark.gold.timelines.durations import day_of
from kshell.spark.tables.expectations import at_least, key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("offset", "int64", "the record"),
    Field("ms", "int64", "its time"),
    Field("day", "string", "its day, in UTC"),
    Field("resourceType", "string", "TOPIC, BROKER, BROKER_LOGGER, GROUP, CLIENT_METRICS"),
    Field("resourceName", "string", "its name; empty for the default of all brokers"),
    Field("name", "string", "the config's name"),
    Field(
        "change",
        "string",
        "found (in the snapshot with which what is known begins), set (it was not set before),"
        " changed, removed (also with its topic)",
    ),
    Field("oldValue", "string", "its value before; [redacted] if it is secret, null if it was not set"),
    Field("newValue", "string", "its value after, likewise"),
    Field("heldMs", "int64", "how long the value before had held; null if it was not set"),
)

_CHANGES = f"({changes('{configs}', ('resourceType', 'resourceName', 'name'), ('value',))})"
_QUERY = f"""
SELECT * EXCEPT (change), {day_of("ms")} AS day, if(change = 'added', 'set', change) AS change, old.value AS oldValue,
  new.value AS newValue
FROM ({with_found(_CHANGES)})"""


GOLD = GoldTable(
    "config_changes",
    "every change of a config: value before and after",
    FIELDS,
    _QUERY,
    expect=(*key("clusterId", "offset", "resourceType", "resourceName", "name"), *at_least(0, "heldMs")),
)
