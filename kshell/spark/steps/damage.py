"""Evaluate the findings of a step, rows of the view ``quarantine``: whether to fail, and which batches to leave out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.errors import UnreadError
from kshell.spark.files.plan import UNREAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.spark.reconcile import BadBatches

HINT = "the step is not committed; executors on other machines must reach the same paths"
_IN_LOG = "kind = 'batch' and not isSnapshot"
_PLACE = ["file", "position", "kind"]


def check(findings: DataFrame) -> None:
    """Raise UnreadError if files could not be read; it names each cluster that this concerns, with one example."""
    rows = (
        findings.where(fn.col("kind") == UNREAD)
        .groupBy("clusterId")
        .agg(fn.min_by(fn.struct("file", "reason"), "file"))
    )
    clusters = {name: f"{example.file}: {example.reason}" for name, example in rows.collect()}
    if clusters:
        raise UnreadError(next(iter(clusters.values())), hint=HINT, clusters=clusters)


def bad_of(findings: DataFrame) -> dict[str, BadBatches]:
    """Return the damaged batches of logs (not of snapshots), by cluster; planning then leaves them out."""
    bad: dict[str, list[tuple[str, int, str]]] = {}
    rows = findings.where(_IN_LOG).select("clusterId", "file", "position", "reason")
    for row in rows.collect():
        bad.setdefault(row["clusterId"], []).append((row["file"], row["position"], row["reason"]))
    return {**bad}


def without_logs(findings: DataFrame) -> DataFrame:
    """Return the findings without damaged batches of logs, which planning reports itself once it leaves them out."""
    return findings.where(f"not ({_IN_LOG})")


def of_all(frames: Sequence[DataFrame]) -> DataFrame | None:
    """Merge the findings of several reads of the same files, each finding once; ``None`` if there was no read."""
    return reduce(lambda merged, frame: merged.unionByName(frame), frames).dropDuplicates(_PLACE) if frames else None
