"""What a step changes of one cluster: its reconciled log compared with the state of the warehouse. Free of Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.tables.steps import ClusterState, WarehouseState

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog


class TimeRange(NamedTuple):
    """The earliest and the latest time of new records in ms since 1970; a record without one is after the year 9999."""

    earliest: int
    latest: int


class RecordCounts(NamedTuple):
    """The new records of a cluster: how many there are of each type, how many were not decoded, and their times."""

    types: Mapping[str, int]
    undecoded: int
    times: TimeRange

    def plus(self, other: RecordCounts) -> RecordCounts:
        """Count the records of both, which are of one cluster."""
        types = Counter(self.types)
        types.update(other.types)
        earliest, latest = zip(self.times, other.times, strict=True)
        return RecordCounts(types, self.undecoded + other.undecoded, TimeRange(min(earliest), max(latest)))


class ClusterChange(NamedTuple):
    """A cluster that a step changes, with its reconciled log."""

    log: ReconciledLog
    before: ClusterState | None
    """The cluster's state after the last step; ``None`` if the cluster is new or its tables start from scratch."""

    @property
    def cluster_id(self) -> str:
        """The cluster id."""
        return self.log.cluster_id

    @property
    def open_transaction(self) -> int | None:
        """The offset at which a metadata transaction begins that was open after the last step; ``None``: none was."""
        return None if self.before is None else self.before.held


def change_of(log: ReconciledLog, state: WarehouseState) -> ClusterChange | None:
    """Return what a reconciled log changes; ``None`` if there is nothing to read or report, nor a new checkpoint."""
    before = None if log.restart else state.clusters.get(log.cluster_id)
    is_same = before is not None and not log.slices and not log.findings and not log.ranges
    if is_same and before is not None and _plain(log.checkpoint._asdict()) == _plain(before.reached):
        return None
    return ClusterChange(log, before)


def _plain(values: Mapping[str, Any]) -> str:
    """Encode values so that they compare equal before and after JSON."""
    return json.dumps(values, sort_keys=True)
