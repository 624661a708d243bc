"""Steps that make some of the gold tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import pytest

from kshell.spark.tables import catalog
from kshell.spark.tables.gold_table import GoldTable


@contextlib.contextmanager
def only_gold(tables: Mapping[str, GoldTable]) -> Iterator[None]:
    """No others are in the catalog, which keeps what it has seen, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kshell.spark.gold.tables", lambda: dict(tables))
        catalog.tables.cache_clear()
        try:
            yield
        finally:
            catalog.tables.cache_clear()
