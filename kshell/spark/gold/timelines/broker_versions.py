"""Brokers over time: their registrations, the state of each version, the rack of each day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.spark.gold.timelines.aggregates import grouped
from kshell.spark.gold.timelines.durations import DAY_MS, timed, versions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_A_BROKER = versions_of(("broker",))
"""SQL: the window over the versions of one broker, by offset; for the rows of :func:`with_states_and_sessions`."""
IS_FENCING = "fenced and not previous.fenced and previous.session = session"
"""SQL: whether a version of :func:`with_states_and_sessions` began with the fencing of a broker that was not fenced."""


def with_states_and_sessions(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return the versions of brokers with spans (:mod:`.durations`), ``session`` (the number of the registration, from
    1), ``state`` (registered, unfenced, controlled-shutdown, fenced), and parts of the version before (``previous``:
    fenced, session) and after (``following``: validFromOffset, validFromMs), even if there is a gap between them.
    """
    window = versions_of(("id",))
    versions = brokers.select(
        "clusterId",
        "id",
        "epoch",
        "fenced",
        "inControlledShutdown",
        "rack",
        "incarnationId",
        "validFromOffset",
        "validFromMs",
        "validToOffset",
        "validToMs",
    )
    beside = timed(versions, ("id",), clusters).selectExpr(
        "*",
        f"lag(struct(epoch, validToOffset)) over {window} as before",
        f"lead(struct(validFromOffset, validFromMs)) over {window} as following",
    )
    is_same = "before.validToOffset = validFromOffset and before.epoch = epoch"
    sessions = beside.selectExpr("*", f"sum(if({is_same}, 0, 1)) over {window} as session")
    of_session = versions_of(("id", "session"))
    with_neighbours = sessions.selectExpr(
        "*",
        f"bool_or(not fenced) over {of_session} as wasUnfenced",
        f"lag(struct(fenced, session)) over {window} as previous",
    )
    state = (
        "case when fenced and not wasUnfenced then 'registered' when fenced then 'fenced'"
        " when inControlledShutdown then 'controlled-shutdown' else 'unfenced' end as state"
    )
    return with_neighbours.selectExpr("*", state).drop("before", "wasUnfenced").withColumnRenamed("id", "broker")


def racks_by_day(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return one row per day (``dayNumber``: days since 1970) and ``broker`` that was registered at any time of it,
    with its ``rack`` by the last version on that day.
    """
    versions = brokers.select("clusterId", "id", "rack", "validFromOffset", "validFromMs", "validToMs")
    days = f"explode(sequence(beginMs div {DAY_MS}, greatest(beginMs, endMs - 1) div {DAY_MS})) as dayNumber"
    each = timed(versions, ("id",), clusters).selectExpr("clusterId", days, "id as broker", "rack", "validFromOffset")
    return grouped(each, ["clusterId", "dayNumber", "broker"], rack="max_by(rack, validFromOffset)")
