"""Points in the logs of a fleet as offsets: an offset is the same in all of them, a time is another one in each."""

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
    """``offsets``: cluster -> the offset after whose record its state is meant, of those whose state is known then;
    ``None``: now. ``unknown``: the other clusters, sorted.
    """

    offsets: Mapping[str, int] | None = None
    unknown: tuple[str, ...] = ()


NOW = Moment()


def moment_of(warehouse: Warehouse, point: Point) -> Moment:
    """What a point means in each cluster of a warehouse. For a time, the times of all their records are looked at."""
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
    """Cluster -> the first offset of a record of its log that was written after a time in milliseconds since 1970.

    Unlike in the shell, it may lie within a batch; but controllers give all records of a batch one time.
    """
    later = records.where(f"NOT isSnapshot AND timestampMs > {time_ms:d}").groupBy("clusterId").agg({"offset": "min"})
    return dict(map(tuple, later.collect()))
