"""A gold table is one module: it is made here, seen everywhere, and taken away again."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.spark import cli, gold
from kshell.spark.steps.planning import NOW, clusters, reconcile_all, replanner
from kshell.spark.steps.step import advance
from kshell.spark.tables import catalog
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.views.named import named
from tests import docs_reference
from tests.builders import batch, value, write_log

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONFIG_KEYS = '''
"""The table ``config_keys``: how many configs a resource has ever had."""

from kshell.spark.tables.expectations import key
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

FIELDS = (CLUSTER, Field("resourceName", "string", "the resource's name"), Field("keys", "int64", "how many"))
QUERY = "SELECT clusterId, resourceName, count(*) AS keys FROM {configs} GROUP BY resourceName, clusterId"

GOLD = GoldTable(
    "config_keys", "how many configs a resource has ever had", FIELDS, QUERY,
    expect=key("clusterId", "resourceName"),
)
'''


@pytest.fixture
def config_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one module that the package of gold tables has."""
    importlib.import_module("kshell.spark.steps.layers")  # before its package is another: it imports gold.timelines
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold/config_keys.py").write_text(textwrap.dedent(CONFIG_KEYS))
    with monkeypatch.context() as patch:
        patch.setattr(gold, "__path__", [str(tmp_path / "gold")])
        _forget()
        yield
    sys.modules.pop("kshell.spark.gold.config_keys", None)
    _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    gold.tables.cache_clear()
    catalog.tables.cache_clear()


@pytest.mark.usefixtures("config_keys")
def test_a_gold_table_is_one_module(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [("a", "retention.ms", "1"), ("a", "retention.bytes", "2"), ("b", "retention.ms", "3")]
    configs = [
        value("CONFIG", resourceType=2, resourceName=topic, name=name, value=text) for topic, name, text in texts
    ]
    write_log(tmp_path / "node", batch(configs))
    warehouse = Warehouse(spark, str(tmp_path / "tables"))
    copies = clusters([str(tmp_path / "node")])
    with warehouse.writing():
        found = reconcile_all(copies, warehouse.state)
        advance(warehouse, found, replan=replanner(copies, warehouse.state, since=NOW))
    rows = sorted(tuple(row)[1:] for row in named(warehouse, "config_keys").collect())
    assert rows == [("a", 2), ("b", 1)]
    assert cli.main(["tables", "config_keys", "--schema"]) == 0
    columns = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert columns == [["config_keys", name] for name in ("clusterId", "resourceName", "keys")]
    reference = docs_reference.pipeline()
    assert "how many configs a resource has ever had" in reference
    assert "unique (clusterId, resourceName)" in reference


def test_and_gone_again() -> None:
    assert "config_keys" not in gold.tables()
    assert "config_keys" not in catalog.tables()
