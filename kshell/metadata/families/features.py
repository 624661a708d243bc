"""Finalized features and the metadata.version (``org.apache.kafka.image.FeaturesDelta``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE
from kshell.metadata.records import record
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

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
def feature_level(delta: Delta, data: Message, origin: Origin) -> None:
    """Set a feature's finalized level; level 0 removes it, except for metadata.version, which has no level 0.

    A controller of 4.0 writes a record for kraft.version, too, which is ignored as in every ``FeaturesDelta``: that
    level comes from a control record.
    """
    if data["name"] == KRAFT_FEATURE:
        return
    if data["featureLevel"] == 0 and data["name"] != FEATURE:
        delta.drop("features", data["name"])
    else:
        delta.put("features", data["name"], data["featureLevel"], origin)


@record(21, "ZkMigrationStateRecord", "0", "  zkMigrationState  int8")
def zk_migration_state(delta: Delta, data: Message, origin: Origin) -> None:
    """Set the state of a migration from ZooKeeper. ``info`` shows it; Kafka's tree no longer does."""
    delta.put(ZK_MIGRATION, ZK_MIGRATION, data["zkMigrationState"], origin)
