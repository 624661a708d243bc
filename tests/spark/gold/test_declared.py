"""What gold tables declare, without Spark."""

from __future__ import annotations

import importlib
import string

import pytest

from kshell.spark import gold, silver
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


@pytest.mark.parametrize("name", gold.tables())
def test_a_query_reads_what_is_declared(name: str) -> None:
    table = gold.tables()[name]
    assert _read_by(table.query) <= {*table.needs, *(shared.name for shared in table.shares)}
    for shared in table.shares:
        assert _read_by(shared.query) == {*shared.needs} <= {*table.needs}


def _read_by(query: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(query) if name is not None}


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
