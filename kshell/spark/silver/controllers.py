"""Controllers: who is registered, who is a voter, and who leads, as far as the log tells.

A voter's addresses are those of its registration, else those of the voter set. Without a voter set (kraft.version 0)
the voters are those that the last LeaderChange names. A snapshot names no leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.spark.silver.base.declare import silver, without
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SET, _REMOVED, _LEADER, _VOTERS = (
    "REGISTER_CONTROLLER_RECORD",
    "UNREGISTER_CONTROLLER_RECORD",
    "LEADER_CHANGE",
    "KRAFT_VOTERS",
)
_KEPT = ("incarnationId", "zkMigrationReady", "supportedFeatures")
_LISTENERS = [{"name": "string", "host": "string", "port": "int32", "securityProtocol": "string"}]
_LISTENER = "array<struct<name:string,host:string,port:int,securityProtocol:string>>"


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a controller and what was so of it."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.states import carried, in_era, until_base, versions_of

    rows = until_base(_said(events, before["controllers"]), events)
    over = in_era(SILVER)
    rows = rows.select(
        *("clusterId", "id", "atOffset", "atMs", "sequence", "isNew", "endsOffset", "endsMs"),
        carried(fn.col("_registered"), over).alias("_registered"),
        carried(fn.col("_voter"), over).alias("_voter"),
        carried(fn.col("_named"), over).alias("_named"),
        carried(fn.col("_leads"), over).alias("_leads"),
    )
    by_set, leads = fn.col("_voter").isNotNull(), fn.coalesce("_leads", fn.lit(False))
    votes = fn.when(by_set, fn.col("_voter.votes")).otherwise(fn.coalesce("_named", fn.lit(False)))
    registered = fn.col("_registered.incarnationId").isNotNull()
    gone = ~(registered | votes | leads)
    points = fn.col("_voter.points")
    values = {
        "listeners": fn.when(registered, fn.col("_registered.listeners")).when(fn.size(points) > 0, points),
        "isLeader": leads,
        **{name: fn.col(f"_registered.{name}") for name in _KEPT},
        "isVoter": votes,
        "voterListeners": points,
    }
    told = {name: fn.when(~gone, value) for name, value in values.items()}
    return versions_of(rows.withColumns(told | {"isGone": gone}), SILVER)


def _said(events: DataFrame, before: DataFrame) -> DataFrame:
    """What an event says of one controller: of each that is named anywhere, where it is about all of them."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload

    kind = fn.col("type")
    rows = payload.of_types(events, SILVER).withColumns(
        {
            "registered": fn.when(kind.isin(_SET, _REMOVED), payload.opened(_SET)),
            "change": fn.when(kind == _LEADER, payload.opened(_LEADER, "leaderId", "voters")),
            "quorum": fn.when(kind == _VOTERS, payload.opened(_VOTERS, "voters")),
        }
    )
    changed = fn.transform("change.voters", lambda one: one["voterId"])
    voting = fn.transform("quorum.voters", lambda one: one["voterId"])
    own, leader = fn.col("registered.controllerId"), fn.col("change.leaderId")
    mentioned = fn.filter(
        fn.flatten(fn.array(_listed(fn.array(own)), _listed(changed), _listed(voting), _listed(fn.array(leader)))),
        lambda one: one >= 0,
    )
    ids = rows.select("clusterId", fn.explode(mentioned).alias("id")).unionByName(before.select("clusterId", "id"))
    named = rows.join(fn.broadcast(ids.distinct()), "clusterId").where(own.isNull() | (own == fn.col("id")))
    return named.select(*_MOMENT, *_columns(changed, voting)).unionByName(_was(before, ids))


_MOMENT = ("clusterId", "id", "atOffset", "atMs", "sequence")


def _listed(ids: Column) -> Column:
    from pyspark.sql import functions as fn

    return fn.coalesce(ids, fn.array().cast("array<int>"))


def _columns(changed: Column, voting: Column) -> list[Column]:
    """What an event says of the controller ``id``; null is nothing."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.registration import features, listeners

    kind, one_id = fn.col("type"), fn.col("id")
    registered = fn.struct(
        listeners(fn.col("registered.endPoints")).alias("listeners"),
        fn.col("registered.incarnationId"),
        fn.col("registered.zkMigrationReady"),
        features(fn.col("registered.features")).alias("supportedFeatures"),
    )
    voter = fn.get(fn.filter("quorum.voters", lambda one: one["voterId"] == one_id), fn.lit(0))
    points = fn.transform(
        voter["endpoints"],
        lambda one: fn.struct(one["name"], one["host"], one["port"], fn.lit(None).cast("string")),
    )
    is_voter = fn.array_contains(voting, one_id)
    return [
        fn.lit(False).alias("isNew"),
        fn.when(kind.isin(_SET, _REMOVED), registered).alias("_registered"),
        fn.when(kind == _VOTERS, fn.struct(is_voter.alias("votes"), points.cast(_LISTENER).alias("points"))).alias(
            "_voter"
        ),
        fn.when(kind == _LEADER, fn.array_contains(changed, one_id)).alias("_named"),
        fn.when(kind == _LEADER, fn.col("change.leaderId") == one_id).alias("_leads"),
    ]


def _was(before: DataFrame, ids: DataFrame) -> DataFrame:
    """What was so before, of each controller that is named anywhere: of others, only whether there is a voter set."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.states import BEFORE

    sets = before.where(fn.col("voterListeners").isNotNull()).select("clusterId").distinct()
    sets = sets.withColumn("_hasSet", fn.lit(True))
    known = ids.distinct().join(before.drop("isCurrent"), ["clusterId", "id"], "left")
    known = known.join(fn.broadcast(sets), "clusterId", "left")
    has_set = fn.coalesce("_hasSet", fn.lit(False))
    is_there = fn.col("validFromOffset").isNotNull()
    registered = fn.struct("listeners", *_KEPT)
    return known.where(is_there | has_set).select(
        "clusterId",
        "id",
        fn.coalesce("validFromOffset", fn.lit(_ALWAYS)).alias("atOffset"),
        fn.col("validFromMs").alias("atMs"),
        fn.lit(BEFORE).cast("long").alias("sequence"),
        fn.lit(False).alias("isNew"),
        fn.when(fn.col("incarnationId").isNotNull(), registered).alias("_registered"),
        fn.when(
            has_set,
            fn.struct(
                fn.col("voterListeners").isNotNull().alias("votes"),
                fn.col("voterListeners").alias("points"),
            ),
        ).alias("_voter"),
        fn.when(is_there, fn.col("isVoter")).alias("_named"),
        fn.when(is_there, fn.col("isLeader")).alias("_leads"),
    )


_ALWAYS = -(1 << 63)
"""Since when something is not there that never was."""

SILVER = silver(
    "controllers",
    "the controllers that the log names: registered, voters, the leader",
    (
        *without("controllers", "address"),
        Field("isVoter", "boolean", "whether the log names it as a voter"),
        Field(
            "voterListeners",
            _LISTENERS,
            "where the voter set says that it can be reached; null where no voter set names it (kraft.version 0)",
            True,
        ),
    ),
    ("id",),
    (_SET, _REMOVED, _LEADER, _VOTERS),
    versions,
)
