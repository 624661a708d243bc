"""Registrations of brokers: replaced, fenced, unfenced and changed under the epoch that they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshell.spark.silver.base.declare import of_the_shell, silver

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SET, _REMOVED = "REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD"
_FENCED, _UNFENCED, _CHANGED = "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"
_KEPT = ("epoch", "rack", "listeners", "incarnationId", "supportedFeatures", "isMigratingZkBroker")
"""What only a registration says."""
_MAY_CHANGE = ("fenced", "inControlledShutdown", "directories", "cordonedDirectories")


def versions(events: DataFrame, before: Mapping[str, DataFrame]) -> DataFrame:
    """One row a broker and how it was registered."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base.states import in_era, until_base, versions_of, was

    own = was(before["brokers"], SILVER, fn.lit(_SET).alias("type"), fn.lit(True).alias("isKnown"))
    rows = until_base(_said(events).unionByName(own), events)
    over = in_era(SILVER)
    whole = fn.col("type") == _SET
    now = fn.when(whole, fn.col("epoch")).when(fn.col("type") == _REMOVED, fn.lit(_NOBODY))
    epoch = fn.last(now, ignorenulls=True).over(over)
    fits = whole | (fn.col("type") == _REMOVED) | (fn.col("isKnown") & (fn.col("epoch") == epoch))
    rows = rows.withColumn("_fits", fits).where("_fits").drop("_fits")
    kept = fn.when(whole, fn.struct(*_KEPT))
    rows = rows.withColumn("_kept", fn.last(kept, ignorenulls=True).over(over))
    for name in _MAY_CHANGE:
        said = fn.when(whole | fn.col(name).isNotNull(), fn.struct(name))
        rows = rows.withColumn(f"_{name}", fn.last(said, ignorenulls=True).over(over))
    values = {name: fn.col(f"_kept.{name}") for name in _KEPT}
    values |= {name: fn.col(f"_{name}.{name}") for name in _MAY_CHANGE}
    return versions_of(rows.withColumns(values), SILVER)


_NOBODY = -(1 << 63)
"""The epoch of a broker that is not registered."""


def _said(events: DataFrame) -> DataFrame:
    """Each event with what it names; the rest is null."""
    from pyspark.sql import functions as fn

    from kshell.spark.silver.base import payload
    from kshell.spark.silver.base.registration import features, listeners

    kind = fn.col("type")
    rows = payload.of_types(events, SILVER).withColumns(
        {
            "registered": fn.when(kind == _SET, payload.opened(_SET)),
            "removed": fn.when(kind == _REMOVED, payload.opened(_REMOVED, "brokerId")),
            "fence": fn.when(kind.isin(_FENCED, _UNFENCED), payload.opened(_FENCED, "id", "epoch")),
            "change": fn.when(kind == _CHANGED, payload.opened(_CHANGED)),
        }
    )
    columns = {
        "id": fn.coalesce("registered.brokerId", "change.brokerId", "fence.id", "removed.brokerId"),
        "epoch": fn.coalesce("registered.brokerEpoch", "change.brokerEpoch", "fence.epoch"),
        "fenced": fn.when(kind == _SET, fn.col("registered.fenced"))
        .when(kind.isin(_FENCED, _UNFENCED), kind == _FENCED)
        .when(fn.col("change.fenced").isin(-1, 1), fn.col("change.fenced") == 1),
        "inControlledShutdown": fn.when(kind == _SET, _or_false("registered.inControlledShutdown")).when(
            fn.col("change.inControlledShutdown") == 1, fn.lit(True)
        ),
        "rack": fn.col("registered.rack"),
        "listeners": listeners(fn.col("registered.endPoints")),
        "incarnationId": fn.col("registered.incarnationId"),
        "supportedFeatures": features(fn.col("registered.features")),
        "directories": fn.when(kind == _SET, fn.coalesce("registered.logDirs", fn.array().cast("array<string>"))).when(
            fn.size("change.logDirs") > 0, fn.col("change.logDirs")
        ),
        "cordonedDirectories": fn.coalesce("registered.cordonedLogDirs", "change.cordonedLogDirs"),
        "isMigratingZkBroker": fn.when(kind == _SET, _or_false("registered.isMigratingZkBroker")),
    }
    known = _within("change.fenced", -1, 0, 1) & _within("change.inControlledShutdown", 0, 1)
    return rows.select(*payload.state(SILVER, columns, gone=kind == _REMOVED), kind, known.alias("isKnown"))


def _or_false(name: str) -> Column:
    from pyspark.sql import functions as fn

    return fn.coalesce(fn.col(name), fn.lit(False))


def _within(name: str, *codes: int) -> Column:
    """Whether a field that a record need not have is one of the codes that are known."""
    from pyspark.sql import functions as fn

    return fn.col(name).isNull() | fn.col(name).isin(*codes)


SILVER = silver(
    "brokers",
    "the registrations of brokers",
    of_the_shell("brokers"),
    ("id",),
    (_SET, _REMOVED, _FENCED, _UNFENCED, _CHANGED),
    versions,
)
