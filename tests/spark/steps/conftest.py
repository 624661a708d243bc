"""A session for whole steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notebooks import sparks


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone, for little data."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session
