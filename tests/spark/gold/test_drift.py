"""Config drift, now and over time, out of a few rows written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.gold.frames import Row, check, made, versions

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_drift_between_clusters_and_between_brokers(spark: Any) -> None:
    def config(cluster: str, kind: str, resource: str, said: str, name: str = "k") -> Row:
        key: Row = {"resourceType": kind, "resourceName": resource, "name": name}
        return {"clusterId": cluster, "value": said, "validFromMs": 5, "isCurrent": True, **key}

    tables: dict[str, list[Row]] = {
        "configs": [
            config("a", "TOPIC", "t", "1"), config("b", "TOPIC", "t", "2"),
            config("a", "TOPIC", "same", "1"), config("b", "TOPIC", "same", "1"), config("a", "TOPIC", "gone", "1"),
            config("a", "BROKER", "", "9"), config("a", "BROKER", "1", "x"),
            config("a", "TOPIC", "t", "old") | {"isCurrent": False},
        ],
        "topics": [
            {"clusterId": cluster, "name": name, "isCurrent": True} for cluster in "abc" for name in ("t", "same")
        ][:5],
        "brokers": [
            *({"clusterId": "a", "id": broker, "isCurrent": True} for broker in (1, 2)),
            *({"clusterId": cluster, "id": 1, "isCurrent": True} for cluster in "bc"),
        ],
    }  # fmt: skip
    topic: Row = {"scope": "clusters", "resourceType": "TOPIC", "resourceName": "t", "members": 3, "values": 3,
                  "usualValue": "1", "agreeing": 1}  # fmt: skip
    default: Row = {"scope": "clusters", "resourceType": "BROKER", "resourceName": "", "members": 3, "values": 2,
                    "usualValue": None}  # fmt: skip
    one: Row = {"scope": "brokers", "clusterId": "a", "resourceType": "BROKER", "members": 2, "values": 2,
                "usualValue": "x", "agreeing": 1}  # fmt: skip
    check(
        made(spark, "config_drift", 0, **tables), "config_drift",
        topic | {"clusterId": "a", "value": "1", "sinceMs": 5, "isUnusual": False},
        topic | {"clusterId": "b", "value": "2", "sinceMs": 5, "isUnusual": True},
        topic | {"clusterId": "c", "value": None, "sinceMs": None, "isUnusual": True},
        default | {"clusterId": "a", "value": "9", "sinceMs": 5, "agreeing": 1, "isUnusual": True},
        default | {"clusterId": "b", "value": None, "sinceMs": None, "agreeing": 2, "isUnusual": False},
        default | {"clusterId": "c", "value": None, "sinceMs": None, "agreeing": 2, "isUnusual": False},
        one | {"resourceName": "1", "value": "x", "sinceMs": 5, "isUnusual": False},
        one | {"resourceName": "2", "value": None, "sinceMs": None, "isUnusual": True},
    )  # fmt: skip


def test_drift_over_time(spark: Any) -> None:
    def config(cluster: str, *rows: Row, ends: tuple[int, int] | None = None) -> list[Row]:
        key: Row = {"clusterId": cluster, "resourceType": "TOPIC", "resourceName": "t", "name": "k"}
        return versions(*rows, ends=ends, **key)

    tables: dict[str, list[Row]] = {
        # Of c the clock steps back: 700, 300, 800.
        "configs": [
            *config("a", {"at": (5, 500), "value": "1"}, ends=(9, 900)),
            *config("b", {"at": (6, 600), "value": "2"}, {"at": (8, 650), "value": "3"}),
            *config("c", {"at": (7, 700), "value": "2"}, {"at": (8, 300), "value": "3"}),
        ],
        "topics": [
            *versions({"at": (1, 100)}, ends=(9, 900), clusterId="a", name="t"),
            *versions({"at": (1, 200)}, clusterId="b", name="t"),
            *versions({"at": (1, 150)}, clusterId="c", name="t"),
        ],
        "brokers": [],
    }
    check(
        made(spark, "config_drift_episodes", 0, **tables), "config_drift_episodes",
        {"clusterId": "a", "scope": "clusters", "resourceType": "TOPIC", "resourceName": "t", "name": "k", "value": "1",
         "usualValue": None, "fromMs": 500, "toMs": 600, "durationMs": 100, "outcome": "followed"},
        *(
            {"scope": "clusters", "resourceType": "TOPIC", "resourceName": "t", "name": "k"} | row for row in (
                {"clusterId": "b", "value": "2", "usualValue": "1", "fromMs": 600, "toMs": 650, "durationMs": 50,
                 "outcome": "changed"},
                {"clusterId": "c", "value": None, "usualValue": "1", "fromMs": 600, "toMs": 700, "durationMs": 100,
                 "outcome": "changed"},
                {"clusterId": "b", "value": "3", "usualValue": "1", "fromMs": 650, "toMs": 700, "durationMs": 50,
                 "outcome": "followed"},
                {"clusterId": "a", "value": "1", "usualValue": "3", "fromMs": 700, "toMs": 900, "durationMs": 200,
                 "outcome": "gone"},
            )
        ),
    )  # fmt: skip
