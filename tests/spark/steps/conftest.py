"""A session for whole steps, and steps without gold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.spark.warehouse import catalog
from tests.notebooks import sparks


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone, for little data."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def without_gold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is made of these tables is tested by itself."""
    catalog.tables.cache_clear()
    monkeypatch.setattr("kshell.spark.gold.tables", dict)
    yield
    catalog.tables.cache_clear()
