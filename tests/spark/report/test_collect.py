"""What a report asks Spark: every question on tables of the declared columns, empty ones and some with rows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kshell.spark.report.collect import collect, renamed
from kshell.spark.report.compose import compose
from kshell.spark.report.section import Answers, Scope
from kshell.spark.report.sections import sections
from kshell.spark.schemas import spark_schema
from kshell.spark.tables import catalog
from kshell.spark.tables.gold_table import tables_of
from tests.notebooks import sparks
from tests.spark.report.answers import CLUSTER, DAY, NOW, made, nothing

FLEET, ONE = Scope(), Scope(CLUSTER)


def test_questions_name_tables_that_there_are() -> None:
    for scope in (FLEET, ONE):
        for section in sections():
            asked = {table for sql in section.queries(scope).values() for table in tables_of(sql)}
            assert asked <= {*catalog.tables(), *catalog.current_views()}
            assert asked <= {*section.sources, "clusters"}


def test_made_up_answers_are_to_the_questions_that_are_asked() -> None:
    for scope in (FLEET, ONE):
        expected = {section.name: set(section.queries(scope)) for section in sections()}
        for answers in (made(scope), nothing(scope)):
            assert {section: set(told) for section, told in answers.items()} == expected


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


def reader(spark: Any, rows: dict[str, list[dict[str, Any]]]) -> Callable[[str], Any]:
    """Tables that hold some rows, of which most columns may be left out, or none."""
    views: Any = importlib.import_module("kshell.spark.views")

    def read(name: str) -> Any:
        base = catalog.current_views().get(name)
        schema = spark_schema(views.view_fields(base) if base else catalog.table(name).fields)
        return spark.createDataFrame(
            [tuple(row.get(one) for one in schema.names) for row in rows.get(name, [])], schema
        )

    return read


def columns(answers: dict[str, Answers]) -> dict[tuple[str, str], set[str]]:
    """Of every answer that has a row."""
    return {(part, name): set(rows[0]) for part, told in answers.items() for name, rows in told.items() if rows}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("scope", [FLEET, ONE], ids=["fleet", "cluster"])
def test_empty_tables(spark: Any, scope: Scope) -> None:
    answers = collect(spark, reader(spark, {}), scope)
    assert answers == nothing(scope)
    assert compose(scope, answers, ()).attention == ()


@pytest.mark.spark
@pytest.mark.slow
def test_few_rows_whatever_there_is(spark: Any) -> None:
    """250 clusters and 500 days."""
    clusters = [f"c{number:03}" for number in range(250)]
    records = [{"clusterId": name, "day": "2026-02-01", "type": "NO_OP_RECORD", "records": place + 1, "undecoded": 0}
               for place, name in enumerate(clusters)]  # fmt: skip
    days = [{"clusterId": "c249", "day": f"{2024 + day // 360}-{day // 30 % 12 + 1:02}-{day % 28 + 1:02}", "records": 1,
             "type": "TOPIC_RECORD"} for day in range(500)]  # fmt: skip
    topics = [{"clusterId": name, "name": f"t{name}", "partitions": 4, "offline": place % 3, "underMinIsr": 0,
               "underReplicated": 0} for place, name in enumerate(clusters)]  # fmt: skip
    tables = {
        "metadata_growth": records + days,
        "current_topics": topics,
        "clusters": [{"clusterId": name, "lastTimestampMs": NOW} for name in clusters],
        "isr_episodes": [
            {"clusterId": "c000", "topic": "a", "partition": at, "toOffset": 9 if at else None, "durationMs": 10**at,
             "leaderlessMs": at % 2} for at in range(9)
        ],
        "unclean_elections": [{"clusterId": "c001", "topic": "a", "day": "2026-02-01", "ms": NOW - DAY, "offset": 7}],
    }  # fmt: skip
    answers = collect(spark, reader(spark, tables), FLEET)
    growth, overview, episodes = answers["growth"], answers["overview"], answers["episodes"]
    assert {row["clusterId"] for row in growth["days"]} == {f"c{number}" for number in range(230, 250)}
    assert all(row["of"] == 250 for row in growth["days"])
    assert min(row["day"] for row in growth["days"]) > "2025-01-31"
    assert growth["all"] == [{"records": sum(range(1, 251)) + 500, "types": 2}]
    assert len(growth["who"]) == 12 and growth["who"][0]["clusterId"] == "c249"
    assert [row["offline"] for row in overview["worst"]] == [2] * 15
    assert overview["worst"][0]["of"] == 166
    places = {row["place"]: (row["episodes"], row["leaderless"], row["lasting"]) for row in episodes["ranges"]}
    assert places == {0: (3, 1, 1), 1: (1, 1, 0), 2: (1, 0, 0), 3: (1, 1, 0), 4: (1, 0, 0), 5: (1, 1, 0), 6: (1, 0, 0)}
    assert episodes["longest"][0]["ended"] == "lasts" and episodes["longest"][0]["partition"] == 0
    assert answers["elections"]["days"] == [{"day": "2026-02-01", "clusterId": "c001", "elections": 1, "of": 1}]
    expected = columns(made(FLEET))
    for place, names in columns(answers).items():
        assert names <= expected[place] | {"fromMs", "offset"}, place
    assert compose(FLEET, answers, ()).parts[0].content.lead == "250 clusters, 0 brokers, 250 topics, 1,000 partitions."


@pytest.mark.spark
@pytest.mark.slow
def test_a_fenced_broker_that_has_replicas_is_told_from_one_that_has_none(spark: Any) -> None:
    """As ``health`` tells them apart: nobody misses the second one."""
    brokers = [{"clusterId": CLUSTER, "id": number, "fenced": number > 1} for number in (1, 2, 3)]
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [{"clusterId": CLUSTER, "lastTimestampMs": NOW}],
        "current_brokers": [*brokers, {"clusterId": "other", "id": 3, "fenced": False}],
        "current_partitions": [
            {"clusterId": CLUSTER, "partition": at, "replicas": [1, 2], "isr": [1]} for at in range(3)
        ] + [{"clusterId": "other", "partition": 0, "replicas": [3], "isr": [3]}],
    }  # fmt: skip
    answers = collect(spark, reader(spark, tables), ONE)
    found = [(one.level, one.figure, one.message, one.where) for one, _ in compose(ONE, answers, ()).attention]
    assert ("error", "1", "broker is fenced now", "broker 2") in found
    assert ("info", "1", "broker is fenced now, without replicas", "broker 3") in found


@pytest.mark.spark
@pytest.mark.slow
def test_all_that_needs_attention_in_a_fleet_has_the_names_of_clusters(spark: Any) -> None:
    """A copy is damaged whatever its state is; what no copy has is an error of its own."""
    tables: dict[str, list[dict[str, Any]]] = {
        "clusters": [{"clusterId": CLUSTER, "lastTimestampMs": NOW}],
        "availability": [{"month": "2026-02", "scope": "cluster", "name": CLUSTER, "availability": 0.5}],
        "copies": [{"clusterId": CLUSTER, "copy": "/a", "state": "reference", "damage": ["byte 61: …"]},
                   {"clusterId": CLUSTER, "copy": "/b", "state": "damaged", "damage": ["byte 61: …"]}],
        "quarantine": [{"clusterId": CLUSTER, "kind": "gap", "offset": at, "reason": f"offset {at} is missing"}
                       for at in (65, 7)] + [{"clusterId": CLUSTER, "kind": "torn", "reason": "half"}],
    }  # fmt: skip
    answers = renamed(collect(spark, reader(spark, tables), FLEET), {CLUSTER: "orders"})
    assert [(one.level, one.figure, one.message, one.where) for one, _ in compose(FLEET, answers, ()).attention] == [
        ("error", "2", "copies are damaged", "/a"),
        ("error", "2", "gaps in logs", "orders: offset 7 is missing"),
        ("warning", "50.000 %", "of partition time had a leader", "in 2026-02: orders"),
    ]
