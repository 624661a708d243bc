"""Decoding by columns, of any number of values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def every_shape(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A shape that a single value has is decoded by columns, too: else small tests would not get there."""
    pytest.importorskip("numpy")
    for module in ("walk", "values"):
        monkeypatch.setattr(f"kshell.columnar.{module}.LEAST", 1)
    yield
