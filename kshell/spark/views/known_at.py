"""Of which clusters no state is known at a point: their log begins later, or what is there then is missing or damaged.

Free of Spark: how far tables are says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kshell.sources.points import Point

if TYPE_CHECKING:
    from kshell.spark.warehouse.commits import ClusterState


def unknown(clusters: Mapping[str, ClusterState], point: Point) -> list[str]:
    """Their ids, sorted. Before its first record a cluster has no topics and no brokers, and that is known."""
    return sorted(name for name, one in clusters.items() if _is_unknown(one.reached, point))


def _is_unknown(reached: Mapping[str, Any], point: Point) -> bool:
    known: Sequence[Sequence[Any]] = reached.get("known", ())
    if not known or point == Point():
        return False
    if point.offset is not None:
        spans = [(since - 1, to - 1) for since, to, *_ in known]
        end, at = max(reached["offset"], reached["state"] or 0) - 1, point.offset
    else:
        assert point.time_ms is not None
        spans, end, at = [(first, last) for _, _, first, last in known], reached["last_ms"], point.time_ms
    if at < spans[0][0]:
        return bool(known[0][0] > 0)
    gaps = [(one[1], later[0]) for one, later in pairwise(spans)]
    if reached["state"] < reached["offset"]:
        gaps.append((spans[-1][1], end))
    return any(before < at < after for before, after in gaps)
