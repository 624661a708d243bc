"""What is new of a cluster: in a truth, held against the state of a warehouse, and in its records. Free of Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.tables.steps import ClusterState, State

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog


class Times(NamedTuple):
    """The earliest and the latest time among new records of a cluster, in milliseconds; of one without any, after the
    last that calendars have."""

    earliest: int
    latest: int


class Counted(NamedTuple):
    """Of a cluster's new records: how many of each type, how many were not decoded, and their times."""

    types: Mapping[str, int]
    undecoded: int
    times: Times


class Fresh(NamedTuple):
    """A cluster of which something is new."""

    truth: ReconciledLog
    before: ClusterState | None
    """Its state until now; ``None`` where nothing counts any more."""

    @property
    def cluster_id(self) -> str:
        """The cluster."""
        return self.truth.cluster_id

    @property
    def open_transaction(self) -> int | None:
        """Where a transaction begins that was open until now."""
        return None if self.before is None else self.before.held


def fresh_of(truth: ReconciledLog, state: State) -> Fresh | None:
    """What is new in it; ``None`` for nothing: whatever is told of copies, where they end is as it was."""
    before = None if truth.restart else state.clusters.get(truth.cluster_id)
    is_same = before is not None and not truth.slices and not truth.findings and not truth.ranges
    if is_same and before is not None and _plain(truth.checkpoint._asdict()) == _plain(before.reached):
        return None
    return Fresh(truth, before)


def _plain(values: Mapping[str, Any]) -> str:
    """The same before and after JSON."""
    return json.dumps(values, sort_keys=True)
