"""What the tests of tables share."""

from __future__ import annotations

import pytest

from kshell.spark.tables import catalog
from tests.spark.tables.small import TABLES


@pytest.fixture
def small_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tables instead of those of the pipeline."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("deltalake")
    monkeypatch.setattr(catalog, "tables", lambda: TABLES)
