"""Finalized features and the metadata.version (``org.apache.kafka.image.FeaturesDelta``)."""

from __future__ import annotations

from typing import Any

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE
from kshell.metadata.records import record
from kshell.metadata.values import Origin

FEATURES = family(Family("features", ("features",), (lambda name: f"finalized_{name}",), "feature"))
ZK_MIGRATION = "zkMigrationState"


@record(
    12,
    "FeatureLevelRecord",
    "0",
    """
  name          string
  featureLevel  int16
""",
)
def feature_level(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """Level 0 takes a feature back, except the metadata.version, which has no such level.

    A controller of 4.0 writes a record for kraft.version, too, and every ``FeaturesDelta`` passes it over: that level
    is told by a control record.
    """
    if data["name"] == KRAFT_FEATURE:
        return
    if data["featureLevel"] == 0 and data["name"] != FEATURE:
        delta.drop("features", data["name"])
    else:
        delta.put("features", data["name"], data["featureLevel"], origin)


@record(21, "ZkMigrationStateRecord", "0", "  zkMigrationState  int8")
def zk_migration_state(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """Kept for ``info``; Kafka's tree no longer shows it."""
    delta.put(ZK_MIGRATION, ZK_MIGRATION, data["zkMigrationState"], origin)
