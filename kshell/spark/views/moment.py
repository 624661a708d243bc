"""Translate a point into one offset per cluster: an offset is the same for all, a time is another offset in each.

Tables may begin late, and logs have gaps: a cluster's checkpoint, which says how far its tables are, has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.sources.points import Point
from kshell.spark.tables import catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.spark.tables.warehouse import Warehouse


Span = Sequence[int]
"""One of a checkpoint's ``state_ranges``: first offset, offset after the last one, their times in ms since 1970."""


class Moment(NamedTuple):
    """What a point means in each cluster.

    Attributes:
        offsets: cluster -> the offset after whose record the state is meant, if it is known; ``None``: now, everywhere.
        unknown: the clusters whose state at the point is not known, sorted.
        outdated: the clusters whose last known state is shown, sorted, though their logs go on: damage follows it.
    """

    offsets: Mapping[str, int] | None = None
    unknown: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


NOW = Moment()


def moment_of(warehouse: Warehouse, point: Point) -> Moment:
    """Find what a point means in each cluster of a warehouse. For a time, Spark reads the times of all records."""
    clusters = warehouse.state.clusters
    cut = {name: cluster.reached["state_end"] for name, cluster in clusters.items() if _is_cut(cluster.reached)}
    if point == Point():
        return Moment(outdated=tuple(sorted(cut)))
    if point.time_ms is None:
        assert point.offset is not None
        states = {
            name: point.offset if is_known_at(cluster.reached, point.offset) else None
            for name, cluster in clusters.items()
        }
    else:
        later = first_after(warehouse.read(catalog.RECORDS), point.time_ms)
        states = {name: known_by(cluster.reached, point.time_ms, later.get(name)) for name, cluster in clusters.items()}
    offsets = {name: offset for name, offset in states.items() if offset is not None}
    return Moment(
        offsets,
        tuple(sorted(states.keys() - offsets.keys())),
        tuple(sorted(name for name, end in cut.items() if name in offsets and offsets[name] >= end)),
    )


def _is_cut(checkpoint: Mapping[str, Any]) -> bool:
    """Whether the log goes on after the last state that is known."""
    return bool(checkpoint["state_ranges"]) and checkpoint["state_end"] < checkpoint["offset"]


def first_after(records: DataFrame, time_ms: int) -> dict[str, int]:
    """Return cluster -> first offset of a record in its log that was written after a time (ms since 1970).

    Unlike in the shell, the record may be inside a batch; but controllers give all records of a batch the same time.
    """
    later = records.where(f"NOT isSnapshot AND timestampMs > {time_ms:d}").groupBy("clusterId").agg({"offset": "min"})
    return dict(map(tuple, later.collect()))


def is_known_at(checkpoint: Mapping[str, Any], offset: int) -> bool:
    """Whether the state after the record at an offset is known.

    If the tables begin with offset 0, so is the state before: a cluster without topics and brokers.
    """
    ranges: Sequence[Span] = checkpoint["state_ranges"]
    if not ranges:
        return False
    spans = [(since - 1, to - 1) for since, to, *_ in ranges]
    if offset < spans[0][0]:
        return ranges[0][0] <= 0
    gaps = [(earlier[1], later[0]) for earlier, later in pairwise(spans)]
    if _is_cut(checkpoint):
        gaps.append((spans[-1][1], checkpoint["offset"] - 1))
    return not any(before < offset < after for before, after in gaps)


def known_by(checkpoint: Mapping[str, Any], time_ms: int, after: int | None) -> int | None:
    """Find the offset after whose record the state is that of a time; ``None`` if that state is not known.

    The rule is the shell's (:func:`kshell.sources.points.offset_at`): records before the offset ``after`` count. So
    does a snapshot that contains more than the log before it, if it was written by that time. Where a gap follows what
    counts, the state is known only at exactly the time of the last record before the gap.

    Args:
        after: the first offset of a record that was written after the time; ``None``: there is none.
    """
    ranges: Sequence[Span] = checkpoint["state_ranges"]
    at = (checkpoint["offset"] if after is None else after) - 1
    counted = [span for span in ranges if _has_begun(span, time_ms, at, is_open=after is None)]
    if not counted:
        return None
    since, to, _, last_ms = counted[-1]
    if after is not None and since - 1 <= at < to:
        return at
    if after is None and not any(span[0] > max(at + 1, to) and span[2] > time_ms for span in ranges):
        return max(at, to - 1)  # no later state is known: this one is still valid
    is_last = at < to or any(first <= to and at < end for first, end in checkpoint["gaps"])
    return to - 1 if is_last and time_ms == last_ms else None


def _has_begun(span: Span, time_ms: int, at: int, *, is_open: bool) -> bool:
    """Whether a state range counts at a time up to which the log counts to offset ``at``: the log reaches into it, or
    the snapshot that it begins with was written by then. ``is_open``: snapshots that end after ``at`` count, too.
    """
    since, to, first_ms, _ = span
    if since == 0 or (since <= at and since < to):
        return True
    return 0 <= first_ms <= time_ms and (is_open or since - 1 <= at)
