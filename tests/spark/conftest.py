"""What tests of whole steps share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.gold.only import only_gold


@pytest.fixture
def without_gold() -> Iterator[None]:
    """What is made of these tables is tested by itself."""
    with only_gold({}):
        yield
