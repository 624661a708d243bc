"""What is new of a cluster: in its reconciled log, beside the state of a warehouse, and in its records. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.tables.steps import ClusterState, WarehouseState

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog


class TimeRange(NamedTuple):
    """The earliest and the latest time among new records of a cluster, in milliseconds; of one without any, after the
    last that calendars have."""

    earliest: int
    latest: int


class RecordCounts(NamedTuple):
    """Of a cluster's new records: how many of each type, how many were not decoded, and their times."""

    types: Mapping[str, int]
    undecoded: int
    times: TimeRange


class ClusterChange(NamedTuple):
    """A cluster of which something is new."""

    log: ReconciledLog
    before: ClusterState | None
    """Its state until now; ``None`` where nothing counts any more."""

    @property
    def cluster_id(self) -> str:
        """The cluster."""
        return self.log.cluster_id

    @property
    def open_transaction(self) -> int | None:
        """Where a transaction begins that was open until now."""
        return None if self.before is None else self.before.held


def change_of(log: ReconciledLog, state: WarehouseState) -> ClusterChange | None:
    """Return what is new in a reconciled log; ``None`` for nothing, whatever copies report if they end as before."""
    before = None if log.restart else state.clusters.get(log.cluster_id)
    is_same = before is not None and not log.slices and not log.findings and not log.ranges
    if is_same and before is not None and _plain(log.checkpoint._asdict()) == _plain(before.reached):
        return None
    return ClusterChange(log, before)


def _plain(values: Mapping[str, Any]) -> str:
    """Encode values so that they compare equal before and after JSON."""
    return json.dumps(values, sort_keys=True)
