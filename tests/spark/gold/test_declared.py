"""What gold tables declare, without Spark."""

from __future__ import annotations

import importlib

import pytest

from kshell.spark import gold, silver
from kshell.spark.tables.gold_table import tables_of
from tests.spark.gold import expected

BRONZE = {"records", "control_records", "clusters"}


def test_a_table_is_a_module_and_nothing_lists_them() -> None:
    assert len(gold.tables()) > 15
    for name, table in gold.tables().items():
        assert table.name == name
        assert importlib.import_module(f"kshell.spark.gold.{name}").GOLD is table


@pytest.mark.parametrize("name", gold.tables())
def test_a_declaration_is_whole(name: str) -> None:
    table = gold.tables()[name]
    assert table.fields[0].name == "clusterId"
    assert len({field.name.lower() for field in table.fields}) == len(table.fields)
    assert all(field.doc and not field.doc.endswith(".") for field in table.fields)
    assert set(table.needs) <= BRONZE | {*silver.tables(), *gold.tables()}
    assert not table.final_by or "clusters" in table.needs  # so that it goes on with every step that has records
    assert name not in table.needs or table.final_by


def test_a_table_is_made_again_when_what_it_shares_may_change() -> None:
    table = gold.tables()["leadership"]
    assert table.needs == {"partitions", "clusters"}
    assert tables_of(table.query) == {"partition_spans"}


def test_what_others_are_made_of_is_made_before() -> None:
    made = [{table.name for table in wave} for wave in gold.waves()]
    assert sorted(name for wave in made for name in wave) == list(gold.tables())
    for number, wave in enumerate(made):
        later = set().union(*made[number:])
        assert all(later.isdisjoint({*gold.tables()[name].needs} - {name}) for name in wave)
    assert len(made) > 1


def test_only_what_compares_clusters_needs_all_of_them() -> None:
    assert [name for name, table in gold.tables().items() if table.is_fleet] == [
        "config_drift",
        "config_drift_episodes",
    ]


def test_every_table_of_a_cluster_is_computed_twice() -> None:
    of_a_cluster = {name for name, table in gold.tables().items() if not table.is_fleet}
    what_to_do = "write NAME(cluster) in tests/spark/gold/expected/, and list it in its TABLES"
    assert set(expected.TABLES) == of_a_cluster, what_to_do
