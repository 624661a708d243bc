"""What the tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.canaries.planted import Canaries, write_sample


@pytest.fixture(scope="module")
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, canaries: Canaries) -> Path:
    """A directory with what is planted."""
    return write_sample(tmp_path_factory.mktemp("planted") / "sample", canaries)
