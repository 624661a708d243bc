"""What tests of whole steps share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kshell.spark.warehouse import catalog


@pytest.fixture
def without_gold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is made of these tables is tested by itself."""
    catalog.tables.cache_clear()
    monkeypatch.setattr("kshell.spark.gold.tables", dict)
    yield
    catalog.tables.cache_clear()
