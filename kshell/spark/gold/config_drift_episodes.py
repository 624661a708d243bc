"""The table ``config_drift_episodes``: from when to when a config had another value than most clusters or brokers.

Times of several clusters are compared unchanged, whatever their clocks say. Within a cluster the order of offsets
counts: a record with a time before that of an earlier record is taken to have the earlier record's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshell.spark.gold.timelines import aggregates, config_comparison
from kshell.spark.gold.timelines.config_comparison import MEMBER, RESOURCE
from kshell.spark.tables.expectations import at_least, not_null
from kshell.spark.tables.gold_table import GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    *config_comparison.FIELDS,
    Field("value", "string", "its value here; null: not set; [redacted] if it is secret (two of those are the same)"),
    Field("usualValue", "string", "the value that most had meanwhile, as in config_drift"),
    Field("fromMs", "int64", "since when both were so"),
    Field("toMs", "int64", "until when; null: they still are"),
    Field("durationMs", "int64", "how long; null: it still lasts"),
    Field(
        "outcome",
        "string",
        "changed (the value here), followed (another value is usual since), gone (the topic was"
        " deleted, the broker unregistered, of others nothing is set any more); null: it still lasts",
    ),
)
_GROUP = ", ".join((*RESOURCE, "name"))
_WHO = ", ".join((*RESOURCE, *MEMBER))
"""SQL: the columns to partition windows by: a config of a comparison (``_GROUP``), and a member of one (``_WHO``)."""
_VALID = ("validFromOffset", "validFromMs", "validToOffset", "validToMs")
_NEVER = (1 << 63) - 1
_NULL = "cast(null as boolean) as isThere"


def config_drift_episodes(tables: Tables) -> DataFrame:
    """List from when to when a config had another value at a member than the usual one of its comparison."""
    spans = _spans(tables)
    usual = (
        _usual(spans)
        .where("usual is not null")
        .selectExpr(*RESOURCE, "name", "usual.value as usualValue", "ms as usualMs", "toMs as untilMs")
    )
    meet = f"ms < coalesce(untilMs, {_NEVER}) and usualMs < coalesce(toMs, {_NEVER}) and not (value <=> usualValue)"
    met = spans.join(usual, [*RESOURCE, "name"]).where(meet)
    episodes = met.selectExpr(
        *RESOURCE,
        *MEMBER,
        "name",
        "value",
        "usualValue",
        "greatest(ms, usualMs) as fromMs",
        "least(toMs, untilMs) as toMs",
        "toMs as changesMs",
        "isThereThen",
    )
    outcome = "case when toMs is null then null when toMs <=> changesMs then if(isThereThen, 'changed', 'gone')"
    return aggregates.typed(
        episodes.selectExpr(
            "*", "try_subtract(toMs, fromMs) as durationMs", f"{outcome} else 'followed' end as outcome"
        ),
        FIELDS,
    )


def _spans(tables: Tables) -> DataFrame:
    """Return the ``value`` of each config at each member from ``ms`` to before ``toMs`` (null: until now), and whether
    the member still exists after that (``isThereThen``). What began and ended at the same time is left out.
    """
    values = config_comparison.values(tables["configs"], _VALID)
    there = _comings(config_comparison.lives(tables, _VALID))
    there = there.join(values.select(*RESOURCE, "name").distinct(), list(RESOURCE))
    key = (*RESOURCE, *MEMBER, "name")
    none, nothing = "cast(null as struct<value: string>)", "named_struct('value', cast(null as string))"
    points = there.selectExpr(*key, "offset", "ms", "isThere", f"{none} as said", "false as ends").unionByName(
        _ends(values, key, f"struct(value) as said, false as ends, {_NULL}", f"{none} as said, true as ends, {_NULL}")
    )
    at_offset = aggregates.grouped(
        points, (*key, "offset"), ms="max(ms)", isThere="max(isThere)", said="max(said)", ends="max(ends)"
    )
    window = f"(partition by {_WHO}, name order by offset)"
    states = at_offset.selectExpr(
        *key,
        "offset",
        f"max(ms) over {window} as ms",
        f"coalesce(last(isThere, true) over {window}, false) as isThere",
        f"last(coalesce(said, if(ends, {nothing}, null)), true) over {window}.value as value",
    )
    last = states.selectExpr("*", f"lead(ms) over {window} as nextMs").where("nextMs is null or nextMs > ms")
    was = f"lag(struct(isThere, value)) over {window} as was"
    changed = last.selectExpr("*", was).where("was is null or not (was <=> struct(isThere, value))")
    ended = changed.selectExpr("*", f"lead(ms) over {window} as toMs", f"lead(isThere) over {window} as isThereThen")
    return ended.where("isThere").select(*key, "value", "ms", "toMs", "isThereThen")


def _ends(versions: DataFrame, key: Sequence[str], started: str, ended: str) -> DataFrame:
    """Return a row (``offset``, ``ms``, columns ``started``) per begin of a version, and one (``ended``) per end."""
    begins = f"struct(validFromOffset as offset, validFromMs as ms, {started})"
    ends = f"struct(validToOffset as offset, validToMs as ms, {ended})"
    # Not a union: Spark would compute the versions twice.
    return versions.selectExpr(*key, f"inline(array({begins}, {ends}))").where("offset is not null")


def _comings(lives: DataFrame) -> DataFrame:
    """Return when members appear (``isThere``) and disappear; versions without a gap between them count as one."""
    key = (*RESOURCE, *MEMBER)
    points = _ends(lives, key, "1 as step", "-1 as step")
    steps = aggregates.grouped(points, (*key, "offset"), ms="max(ms)", step="sum(step)").where("step <> 0")
    window = f"(partition by {_WHO} order by offset)"
    counted = steps.selectExpr("*", f"sum(step) over {window} > 0 as isThere")
    return counted.selectExpr("*", f"lag(isThere) over {window} as was").where("not (was <=> isThere)")


def _usual(spans: DataFrame) -> DataFrame:
    """Return the value that most members have (``usual.value``), from ``ms`` to before ``toMs`` (null: until now).

    The times at which a value of a config changes are numbered. A value has a row for each number while any member has
    it, and one more, with count 0, when the last member loses it: so each number has a row that knows its time.
    """
    group = (*RESOURCE, "name")
    points = spans.selectExpr(*group, "value", "inline(array(struct(ms, 1 as step), struct(toMs as ms, -1 as step)))")
    steps = aggregates.grouped(points.where("ms is not null"), (*group, "value", "ms"), step="sum(step)").where(
        "step <> 0"
    )
    of_value = f"(partition by {_GROUP}, value order by ms)"
    counted = steps.selectExpr(
        *group,
        "value",
        "ms",
        f"sum(step) over {of_value} as count",
        f"dense_rank() over (partition by {_GROUP} order by ms) as number",
    )
    last = f"max(number) over (partition by {_GROUP})"
    until = f"if(count > 0, coalesce(lead(number) over {of_value} - 1, {last}), number) as untilNumber"
    over_time = counted.selectExpr("*", until).selectExpr("*", "explode(sequence(number, untilNumber)) as time")
    most = aggregates.grouped(
        over_time,
        (*group, "time"),
        ms="max(if(time = number, ms, null))",
        usual="min_by(struct(value), struct(-count, value is null, value)) filter (where count > 0)",
    )
    window = f"(partition by {_GROUP} order by time)"
    changed = most.selectExpr("*", f"lag(usual) over {window} as was").where("not (was <=> usual)")
    return changed.selectExpr(*group, "usual", "ms", f"lead(ms) over {window} as toMs")


GOLD = GoldTable(
    "config_drift_episodes",
    "from when to when a config was unlike in other clusters, or at other brokers, and how it ended",
    FIELDS,
    config_comparison.NEEDS,
    config_drift_episodes,
    is_fleet=True,
    expect=(*not_null("fromMs"), *at_least(0, "durationMs")),
)
