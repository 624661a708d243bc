"""Gold tables out of a few rows written by hand."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kshell.spark import gold
from tests.spark.gold.frames import Row, check, frame, made, versions

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAY = 86_400_000
MIDNIGHT = 20_000 * DAY
"""The day 2024-10-04 begins (UTC)."""


def partition(*rows: Row, ends: tuple[int, int] | None = None, **common: Any) -> list[Row]:
    """Those of a partition."""
    none: Row = {"elr": [], "addingReplicas": [], "removingReplicas": [], "leaderRecoveryState": "RECOVERED"}
    plain: Row = {"topic": "t", "topicId": "T", "partition": 0, "replicas": [1, 2], "isr": [1, 2], "leader": 1}
    return versions(*rows, ends=ends, **(plain | none | common))


def test_leadership_is_split_at_midnight_and_passes_over_time_without_a_leader(spark: Any) -> None:
    rows = partition(
        {"at": (1, MIDNIGHT - 100)},
        {"at": (2, MIDNIGHT + 10), "leader": -1},
        {"at": (3, MIDNIGHT + 20), "leader": 2},
        {"at": (4, MIDNIGHT + 50), "leader": -1},
        {"at": (5, MIDNIGHT + 60), "leader": 2},
    )
    found = made(spark, "leadership", MIDNIGHT + 3 * DAY + 7, partitions=rows)
    of_2: Row = {"broker": 2, "preferredMs": 0, "gained": 0, "lost": 0}
    check(
        found, "leadership",
        {"day": "2024-10-03", "broker": 1, "leaderMs": 100, "preferredMs": 100, "gained": 0, "lost": 0},
        {"day": "2024-10-04", "broker": 1, "leaderMs": 10, "preferredMs": 10, "gained": 0, "lost": 1},
        of_2 | {"day": "2024-10-04", "leaderMs": 30 + DAY - 60, "gained": 1},
        of_2 | {"day": "2024-10-05", "leaderMs": DAY},
        of_2 | {"day": "2024-10-06", "leaderMs": DAY},
        of_2 | {"day": "2024-10-07", "leaderMs": 7},
    )  # fmt: skip


def test_time_that_runs_backwards_counts_once_and_never_below_zero(spark: Any) -> None:
    rows = partition({"at": (1, 1000)}, {"at": (2, 400), "leader": 2}, {"at": (3, 1500)}, {"at": (4, 3000)})
    found = made(spark, "leadership", 2000, partitions=rows)
    check(
        found, "leadership", {"broker": 1, "leaderMs": 500, "gained": 1}, {"broker": 2, "leaderMs": 500, "gained": 1}
    )  # fmt: skip


def test_times_that_no_clock_had_make_nothing_longer(spark: Any) -> None:
    rows = partition({"at": (-1, 0)}, {"at": (1, MIDNIGHT)}, {"at": (2, 1 << 62), "leader": 2})
    found = made(spark, "leadership", MIDNIGHT + 5, partitions=rows)
    check(
        found, "leadership",
        {"day": "2024-10-04", "broker": 1, "leaderMs": 5, "gained": 0},
        {"day": "9999-12-31", "broker": 1, "leaderMs": 0, "gained": 0},
        {"day": "9999-12-31", "broker": 2, "leaderMs": 0, "gained": 1},
    )  # fmt: skip


def test_nothing_lasts_into_days_that_are_to_come(spark: Any) -> None:
    before = time.time_ns() // 1_000_000
    rows = partition({"at": (1, before - 2 * DAY)}, {"at": (2, 1 << 42)})  # the year 2109
    found = made(spark, "leadership", 1 << 42, partitions=rows).collect()
    lasts = sum(row["leaderMs"] for row in found if row["broker"] == 1)
    assert 3 * DAY <= lasts <= 3 * DAY + time.time_ns() // 1_000_000 - before
    assert len(found) <= 5


def test_an_episode_is_from_the_first_broker_missing_to_the_last_one_back(spark: Any) -> None:
    rows = partition(
        {"at": (1, 100), "replicas": [1, 2, 3], "isr": [1, 2, 3]},
        {"at": (2, 200), "replicas": [1, 2, 3], "isr": [1, 3]},
        {"at": (3, 300), "replicas": [1, 2, 3], "isr": [1], "leader": -1},
        {"at": (4, 350), "replicas": [1, 2, 3], "isr": [1, 2]},
        {"at": (5, 400), "replicas": [1, 2, 3], "isr": [1, 2, 3]},
        {"at": (6, 500), "replicas": [1, 2, 3, 4], "isr": [1, 2, 3], "addingReplicas": [4]},
        {"at": (7, 600), "replicas": [1, 2, 3], "isr": [1, 2]},
    )
    check(
        made(spark, "isr_episodes", 1000, partitions=rows), "isr_episodes",
        {"fromOffset": 2, "toOffset": 5, "toMs": 400, "durationMs": 200, "outcome": "full", "leastInSync": 1,
         "shrinks": 2, "expands": 2, "missing": [2, 3], "leaderlessMs": 50},
        {"fromOffset": 7, "toOffset": None, "toMs": None, "durationMs": 400, "outcome": None, "leastInSync": 2,
         "shrinks": 1, "expands": 0, "missing": [3], "leaderlessMs": 0},
    )  # fmt: skip


def test_min_isr_is_the_topics_else_the_leaders_else_that_of_all_brokers(spark: Any) -> None:
    key: Row = {"name": "min.insync.replicas"}
    configs = [
        *versions({"at": (2, 200), "value": "2"}, resourceType="BROKER", resourceName="", **key),
        *versions({"at": (3, 300), "value": " +03\n"}, resourceType="BROKER", resourceName="1", ends=(5, 500), **key),
        *versions({"at": (4, 400), "value": "1"}, resourceType="TOPIC", resourceName="t", ends=(6, 600), **key),
        *versions({"at": (1, 100), "value": "many"}, resourceType="TOPIC", resourceName="t", ends=(4, 400), **key),
    ]
    rows = partition({"at": (1, 100)})
    found = made(spark, "partition_availability", 1000, partitions=rows, configs=configs)
    # 100-200 assumed 1, 200-300 all brokers' 2, 300-400 the leader's 3, 400-600 the topic's 1, 600-1000 again 2
    check(
        found, "partition_availability",
        {"month": "1970-01", "existedMs": 900, "offlineMs": 0, "underMinIsrMs": 100, "atMinIsrMs": 500,
         "unwritableMs": 0, "assumedMs": 100, "writeAvailability": 1.0},
    )  # fmt: skip


def test_brokers_ask_for_no_more_replicas_than_there_are(spark: Any) -> None:
    """Of one replica with min.insync.replicas=2 each write succeeds (``Partition.effectiveMinIsr``); of two not."""
    configs = versions({"at": (1, 100), "value": "2"}, resourceType="BROKER", resourceName="",
                       name="min.insync.replicas")  # fmt: skip
    rows = [
        *partition({"at": (1, 100), "replicas": [1], "isr": [1]}, {"at": (2, 600), "replicas": [1], "leader": -1}),
        *partition({"at": (1, 100), "isr": [1]}, {"at": (2, 350), "isr": [1, 2]}, topic="u", topicId="U"),
        *partition(
            {"at": (1, 100), "replicas": [1], "isr": [1]},
            {"at": (2, 600), "replicas": [1, 2], "isr": [1], "addingReplicas": [2]},
            topic="v",
            topicId="V",
        ),
    ]
    found = made(spark, "partition_availability", 1100, partitions=rows, configs=configs)
    check(
        found, "partition_availability",
        {"topic": "t", "underMinIsrMs": 1000, "unwritableMs": 500, "offlineMs": 500, "writeAvailability": 0.5},
        {"topic": "v", "underMinIsrMs": 1000, "unwritableMs": 500, "offlineMs": 0, "writeAvailability": 0.5},
        {"topic": "u", "underMinIsrMs": 250, "unwritableMs": 250, "offlineMs": 0, "writeAvailability": 0.75},
    )  # fmt: skip


def test_availability_of_a_broker_is_that_of_what_it_holds(spark: Any) -> None:
    rows = [
        *partition({"at": (1, 100)}, {"at": (2, 600), "leader": -1}),
        *partition({"at": (1, 100), "replicas": [2], "isr": [2], "leader": 2}, topic="u", topicId="U"),
    ]
    found = made(spark, "availability", 1100, partitions=rows, configs=[])
    half: Row = {"partitions": 1, "partitionMs": 1000, "offlineMs": 500}
    both: Row = {"partitions": 2, "partitionMs": 2000, "offlineMs": 500}
    check(
        found, "availability",
        half | {"scope": "topic", "name": "t"}, half | {"scope": "topic", "name": "u", "offlineMs": 0},
        half | {"scope": "broker", "name": "1"}, both | {"scope": "broker", "name": "2"},
        both | {"scope": "cluster", "name": "c"},
    )  # fmt: skip


def test_broker_states_and_sessions(spark: Any) -> None:
    down: Row = {"fenced": True, "inControlledShutdown": True, "epoch": 1}
    rows = versions(
        {"at": (1, 100), "fenced": True, "epoch": 1},
        {"at": (2, 150), "fenced": False, "epoch": 1},
        {"at": (3, 400), "fenced": False, "inControlledShutdown": True, "epoch": 1},
        {"at": (4, 410), **down},
        id=1, inControlledShutdown=False, incarnationId="i", rack="a", ends=(5, 500),
    )  # fmt: skip
    again = versions({"at": (9, 900), "fenced": True, "epoch": 9}, id=1, inControlledShutdown=False)
    states = made(spark, "broker_states", 1000, brokers=rows + again)
    check(
        states, "broker_states",
        {"epoch": 1, "state": "registered", "fromOffset": 1, "toOffset": 2, "durationMs": 50, "next": "unfenced"},
        {"epoch": 1, "state": "unfenced", "fromOffset": 2, "toOffset": 3, "durationMs": 250,
         "next": "controlled-shutdown"},
        {"epoch": 1, "state": "controlled-shutdown", "fromOffset": 3, "toOffset": 4, "durationMs": 10,
         "next": "fenced"},
        {"epoch": 1, "state": "fenced", "fromOffset": 4, "toOffset": 5, "durationMs": 90, "next": "unregistered"},
        {"epoch": None, "state": "unregistered", "fromOffset": 5, "toOffset": 9, "durationMs": 400,
         "next": "registered"},
        {"epoch": 9, "state": "registered", "fromOffset": 9, "toOffset": None, "durationMs": 100, "next": None},
    )  # fmt: skip
    check(
        made(spark, "broker_sessions", 1000, brokers=rows + again), "broker_sessions",
        {"epoch": 1, "outcome": "unregistered", "isClean": True, "startMs": 50, "unfencedMs": 250, "shutdownMs": 10,
         "fencedMs": 140, "fencings": 1, "durationMs": 400},
        {"epoch": 9, "outcome": None, "isClean": None, "startMs": None, "unfencedMs": 0, "shutdownMs": 0,
         "fencedMs": 100, "fencings": 0, "durationMs": 100},
    )  # fmt: skip


def test_skew_counts_brokers_that_hold_nothing(spark: Any) -> None:
    common: Row = {"epoch": 1, "fenced": False, "inControlledShutdown": False}
    brokers = [
        row
        for broker, rack in ((1, "a"), (2, "a"), (10, "b"))
        for row in versions({"at": (1, MIDNIGHT)}, id=broker, rack=rack, **common)
    ]
    rows = partition({"at": (1, MIDNIGHT)})
    tables = {"partitions": rows, "brokers": brokers}
    found = made(spark, "skew", MIDNIGHT + 100, **tables).where("measure = 'leaders'")
    check(
        found, "skew",
        {"level": "broker", "members": 3, "mean": 1 / 3, "least": 0.0, "most": 1.0, "busiest": "1",
         "mostToMean": 3.0},
        {"level": "rack", "members": 2, "mean": 0.5, "least": 0.0, "most": 1.0, "busiest": "a", "mostToMean": 2.0},
    )  # fmt: skip
    check(
        made(spark, "rack_spread", MIDNIGHT + 100, **tables), "rack_spread",
        {"day": "2024-10-04", "racks": 2, "partitionMs": 100, "oneRackMs": 100, "narrowMs": 100, "spread": 0.0,
         "unknownMs": 0},
    )  # fmt: skip


def test_a_mean_of_equal_values_is_that_value(spark: Any) -> None:
    """The sum of three of these is rounded up: without bounds, the mean would be more than the largest."""
    even = 11.304060715415094
    assert (even + even + even) / 3 > even
    load = [{"clusterId": "c", "day": "2024-10-04", "broker": number, "leaders": even} for number in (1, 2, 3)]
    (row,) = gold.tables()["skew"].made_of({"broker_load": frame(spark, "broker_load", load)}).collect()
    assert (row.least, row.mean, row.most, row.deviation, row.mostToMean) == (even, even, even, 0, 1)


def test_what_a_snapshot_had_first_was_found_and_not_added(spark: Any) -> None:
    path = "/x/00000000000000000008-0000000001.checkpoint"
    header: Row = {"clusterId": "c", "isSnapshot": True, "file": path, "type": "SNAPSHOT_HEADER"}
    head = header | {"offset": 0, "data": '{"version":0,"lastContainedLogTimestamp":700}'}
    kraft = header | {"offset": 1, "type": "KRAFT_VERSION", "data": '{"version":0,"kRaftVersion":1}'}
    acl: Row = {
        "resourceType": "CLUSTER", "resourceName": "kafka-cluster", "patternType": "LITERAL", "principal": "User:*",
        "host": "*", "operation": "ALTER", "permissionType": "ALLOW",
    }  # fmt: skip
    acls = [
        *versions({"at": (7, 700)}, id="x", ends=(9, 900), **acl),
        *versions({"at": (8, 800)}, id="y", **(acl | {"operation": "DESCRIBE"})),
    ]
    records = [head, kraft, header | {"isSnapshot": False, "file": "y.log", "type": "NO_OP_RECORD", "offset": 8}]
    check(
        made(spark, "access_audit", 1000, acls=acls, control_records=records), "access_audit",
        {"offset": 7, "id": "x", "change": "found", "isWideOpen": True, "heldMs": None, "isCurrent": False},
        {"offset": 9, "id": "x", "change": "removed", "isWideOpen": True, "heldMs": 200, "isCurrent": False},
        {"offset": 8, "id": "y", "change": "added", "isWideOpen": False, "heldMs": None, "isCurrent": True},
    )  # fmt: skip
    features = versions({"at": (7, 700), "level": 99}, name="metadata.version", ends=(8, 800)) + versions(
        {"at": (8, 800), "level": 30}, name="metadata.version"
    )
    check(
        made(spark, "upgrades", 1000, features=features, control_records=records), "upgrades",
        {"offset": 7, "ms": 700, "feature": "metadata.version", "change": "found", "newLevel": 99,
         "newName": "unknown level 99"},
        {"offset": 8, "ms": 800, "feature": "metadata.version", "change": "downgrade", "newLevel": 30,
         "newName": "4.3-IV0"},
        {"offset": 7, "ms": 700, "feature": "kraft.version", "change": "found", "newLevel": 1, "newName": None},
    )  # fmt: skip


@pytest.mark.soak  # planning them all takes longer than all else here
@pytest.mark.parametrize("name", gold.tables())
def test_nothing_makes_no_row(spark: Any, name: str) -> None:
    table = gold.tables()[name]
    assert table.made_of({need: frame(spark, need, []) for need in table.needs}).isEmpty()
