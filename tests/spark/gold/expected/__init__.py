"""Gold tables computed a second time, in plain Python, out of replayed versions and the lines of ``dump``.

Written after the docs of the columns, not after the pipeline's expressions: loops over versions, day by day.
"""

from __future__ import annotations

from tests.spark.gold.expected.brokers import broker_load, broker_sessions, broker_states, rack_spread, skew
from tests.spark.gold.expected.changes import access_audit, config_changes, upgrades
from tests.spark.gold.expected.counts import anomalies, hourly_churn, metadata_growth
from tests.spark.gold.expected.partitions import (
    availability,
    isr_episodes,
    leadership,
    partition_availability,
    reassignments,
    unclean_elections,
)

TABLES = {
    make.__name__: make
    for make in (
        access_audit, anomalies, availability, broker_load, broker_sessions, broker_states, config_changes,
        hourly_churn, isr_episodes, leadership, metadata_growth, partition_availability, rack_spread, reassignments,
        skew, unclean_elections, upgrades,
    )
}  # fmt: skip
"""Every gold table of a cluster."""
