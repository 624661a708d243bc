"""Translate a point into one offset per cluster: an offset is the same for all, a time is another offset in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.sources.points import Point
from kshell.spark.tables import catalog
from kshell.spark.views.known_at import known_at, known_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.spark.tables.warehouse import Warehouse


class Moment(NamedTuple):
    """What a point means in each cluster.

    Attributes:
        offsets: cluster -> the offset after whose record the state is meant, if it is known; ``None``: now, everywhere.
        unknown: the clusters whose state at the point is not known, sorted.
    """

    offsets: Mapping[str, int] | None = None
    unknown: tuple[str, ...] = ()


NOW = Moment()


def moment_of(warehouse: Warehouse, point: Point) -> Moment:
    """Find what a point means in each cluster of a warehouse. For a time, Spark reads the times of all records."""
    if point == Point():
        return NOW
    clusters = warehouse.state.clusters
    if point.time_ms is None:
        assert point.offset is not None
        states = {name: known_at(cluster.reached, point.offset) for name, cluster in clusters.items()}
    else:
        later = first_after(warehouse.read(catalog.RECORDS), point.time_ms)
        states = {name: known_by(cluster.reached, point.time_ms, later.get(name)) for name, cluster in clusters.items()}
    return Moment(
        {name: then.offset for name, then in states.items() if then.is_known},
        tuple(sorted(name for name, then in states.items() if not then.is_known)),
    )


def first_after(records: DataFrame, time_ms: int) -> dict[str, int]:
    """Return cluster -> first offset of a record in its log that was written after a time (ms since 1970).

    Unlike in the shell, the record may be inside a batch; but controllers give all records of a batch the same time.
    """
    later = records.where(f"NOT isSnapshot AND timestampMs > {time_ms:d}").groupBy("clusterId").agg({"offset": "min"})
    return dict(map(tuple, later.collect()))
