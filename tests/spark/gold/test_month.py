"""Gold tables of a generated month of churn and of two recorded clusters, against plain Python over ``dump``."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from kshell.spark import gold
from kshell.spark.schemas import spark_schema
from tests.builders import FIXTURES
from tests.spark.gold import churn, expected
from tests.spark.gold.expected.drift import config_drift_episodes
from tests.spark.gold.expected.spans import Cluster
from tests.spark.gold.frames import cluster, comparable, frame, tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> list[Cluster]:
    """The month, a 3.9.2 and a 4.3.1 cluster."""
    month = cluster(churn.CLUSTER, churn.month(tmp_path_factory.mktemp("month")))
    return [month, *(cluster(name, FIXTURES / name / "broker-0") for name in ("3.9.2", "4.3.1"))]


@pytest.fixture(scope="module")
def inputs(spark: Any, clusters: list[Cluster]) -> dict[str, Any]:
    """Bronze and silver of all three; and of gold, by plain Python, what other gold tables are made of."""
    needed = {need for table in gold.tables().values() for need in table.needs if need in gold.tables()}
    of_gold = {
        name: frame(spark, name, [row for one in clusters for row in expected.TABLES[name](one)]) for name in needed
    }
    return {name: one.localCheckpoint() for name, one in {**tables(spark, *clusters), **of_gold}.items()}


@pytest.mark.parametrize("name", expected.TABLES)
def test_numbers_are_those_of_plain_python(
    spark: Any, name: str, clusters: list[Cluster], inputs: dict[str, Any]
) -> None:
    table = gold.tables()[name]
    given = {needed: inputs[needed] for needed in table.needs if needed != name}
    made = table.made_of(given | ({name: frame(spark, name, [])} if name in table.needs else {}))
    if table.final_by:
        assert made.schema["untilMs"].dataType.simpleString() == "bigint"
        made = made.drop("untilMs")
    types = [(field.name, field.dataType) for field in spark_schema(table.fields)]
    assert [(field.name, field.dataType) for field in made.schema] == types
    wanted = [row for one in clusters for row in expected.TABLES[name](one)]
    assert comparable(row.asDict(recursive=True) for row in made.collect()) == comparable(wanted)


def test_drift_over_time_is_that_of_plain_python(
    spark: Any, clusters: list[Cluster], tmp_path_factory: pytest.TempPathFactory
) -> None:
    fleet = [*clusters, cluster("another month", churn.month(tmp_path_factory.mktemp("another"), seed=9))]
    table = gold.tables()["config_drift_episodes"]
    inputs = {name: one.localCheckpoint() for name, one in tables(spark, *fleet).items() if name in table.needs}
    made = table.make(inputs)
    found, wanted = [row.asDict() for row in made.collect()], config_drift_episodes(fleet)
    assert comparable(found) == comparable(wanted)
    assert {row["outcome"] for row in wanted} == {"changed", "followed", "gone", None}
    assert {row["scope"] for row in wanted} == {"clusters", "brokers"}
    assert {row["resourceType"] for row in wanted} == {"TOPIC", "BROKER"}
    key = ("clusterId", "scope", "resourceType", "resourceName", "name", "value", "usualValue")
    now = gold.tables()["config_drift"].make(inputs).where("isUnusual").select(*key).collect()
    still = [{name: row[name] for name in key} for row in wanted if row["toMs"] is None]
    assert comparable(row.asDict() for row in now) == comparable(still)
    assert still


def test_the_month_has_all_that_tables_tell_apart(clusters: list[Cluster]) -> None:
    month = clusters[0]
    empty = [name for name, rows in expected.TABLES.items() if not rows(month)]
    assert empty == [], "two empty tables are equal: tests/spark/gold/churn.py writes nothing of which these have a row"

    def kinds(name: str, column: str) -> Counter[Any]:
        return Counter(row[column] for row in expected.TABLES[name](month))

    assert set(kinds("reassignments", "outcome")) == {"completed", "cancelled", "deleted", "at-once", None}
    assert set(kinds("isr_episodes", "outcome")) == {"full", "deleted", None}
    assert set(kinds("unclean_elections", "evidence")) == {"recovery-state", "isr"}
    assert set(kinds("broker_sessions", "outcome")) == {"reregistered", "unregistered", None}
    assert set(kinds("broker_sessions", "isClean")) == {True, False, None}
    assert len(kinds("broker_states", "state")) == 5
    assert set(kinds("access_audit", "change")) == {"added", "changed", "removed"}
    assert set(kinds("access_audit", "isWideOpen")) == {True, False}
    assert set(kinds("config_changes", "change")) == {"set", "changed", "removed"}
    assert set(kinds("upgrades", "change")) == {"first", "upgrade", "downgrade", "removed"}
    assert set(kinds("anomalies", "measure")) == {"leaderChanges", "isrShrinks"}
    assert len(kinds("partition_availability", "month")) == 3
    for name in ("offlineMs", "underMinIsrMs", "unwritableMs", "atMinIsrMs", "underReplicatedMs", "assumedMs"):
        assert any(row[name] for row in expected.TABLES["partition_availability"](month)), name
    times = [record.ms for record in month.records]
    assert any(later < earlier for earlier, later in pairwise(times)), "times run backwards"
