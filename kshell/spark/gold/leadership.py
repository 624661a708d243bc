"""The table ``leadership``: how long each broker led partitions of each topic, as preferred leader or not, by day."""

from kshell.spark.gold.timelines.durations import by_day, day, day_of, end_of_day
from kshell.spark.gold.timelines.partition_versions import IS_NEW_LEADER, SPANS
from kshell.spark.tables.expectations import at_least, key, ordered
from kshell.spark.tables.gold_table import CLUSTER, DAY, GoldTable
from kshell.tables.declaration import Field

FIELDS = (
    CLUSTER,
    Field("day", "string", "the day, in UTC"),
    Field("topic", "string", "the topic's name"),
    Field("topicId", "string", "its id: a topic that was deleted and made again has two"),
    Field("broker", "int32", "the broker that led; time without a leader is in partition_availability"),
    Field("leaderMs", "int64", "milliseconds of that day that it led, summed over the topic's partitions"),
    Field("preferredMs", "int64", "those of them in which it was the preferred leader: the first of the replicas"),
    Field("preferredShare", "float64", "preferredMs / leaderMs; null where it led no millisecond"),
    Field(
        "gained",
        "int32",
        "changes of leader to it: a record that day gave a partition this leader, and the last broker that led the"
        " partition before (any time without a leader passed over) was another. A partition's first leader is none."
        " The sum over brokers is the topic's churn",
    ),
    Field("lost", "int32", "the same changes, from it: it was the last that led before another did"),
    Field("preferredGained", "int32", "those of gained in which it was the preferred leader"),
)

_KEY = ("clusterId", "topic", "topicId", "broker")
_WITH_LEADER = f"(SELECT *, leader AS broker FROM {{{SPANS.name}}} WHERE leader >= 0)"
_MEASURES = {"leaderMs": "1", "preferredMs": "if(get(replicas, 0) = broker, 1, 0)"}
_CHANGE = (
    "inline(array("
    "named_struct('broker', leader, 'gained', 1, 'lost', 0, 'preferredGained', if(get(replicas, 0) = leader, 1, 0)),"
    " named_struct('broker', lastLeader, 'gained', 0, 'lost', 1, 'preferredGained', 0)))"
)
_SUMS = (*_MEASURES, "gained", "lost", "preferredGained")
_QUERY = f"""
SELECT *, if(leaderMs > 0, preferredMs / leaderMs, NULL) AS preferredShare, {end_of_day("day")} AS untilMs
FROM (
  SELECT {", ".join(_KEY)}, day, {", ".join(f"sum({name}) AS {name}" for name in _SUMS)}
  FROM (
    SELECT {", ".join(_KEY)}, {day("dayNumber")} AS day, leaderMs, preferredMs, 0 AS gained, 0 AS lost,
      0 AS preferredGained
    FROM ({by_day(_WITH_LEADER, _KEY, _MEASURES)})
    UNION ALL
    SELECT clusterId, topic, topicId, broker, day, 0L, 0L, gained, lost, preferredGained
    FROM (SELECT clusterId, topic, topicId, {day_of("validFromMs")} AS day, {_CHANGE} FROM {{{SPANS.name}}}
      WHERE {IS_NEW_LEADER})
  )
  GROUP BY topic, topicId, broker, day, clusterId
)"""


GOLD = GoldTable(
    "leadership",
    "leaders by topic, broker and day: time led, share of the preferred leader, changes",
    FIELDS,
    _QUERY,
    final_by=DAY,
    shares=(SPANS,),
    expect=(
        *key("clusterId", "day", "topicId", "broker"),
        *at_least(0, "leaderMs", "preferredMs", "gained", "lost"),
        ordered("preferredMs", "leaderMs"),
    ),
)
