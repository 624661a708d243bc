"""Which copies are of one cluster, as far as what lies beside them says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from kshell.spark.files.scan import Found, Origin, identity


def by_cluster(found: Iterable[Found], given: str | None = None) -> dict[str, list[Found]]:
    """Cluster id -> its copies, in their order.

    A copy without ``meta.properties`` is of the cluster ``given``; without that each is one of its own.
    """
    clusters: dict[str, list[Found]] = {}
    for one in found:
        clusters.setdefault(cluster_of(one.path, one.origin, given), []).append(one)
    return clusters


def cluster_of(path: str, origin: Origin, given: str | None = None) -> str:
    """The cluster of a copy, likewise."""
    return origin.cluster_id or given or _unknown(path)


def _unknown(path: str) -> str:
    return f"unknown-{hashlib.sha256(os.fsencode(identity(path))).hexdigest()[:8]}"
