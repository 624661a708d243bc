"""The table of config keys knows what Kafka's own classes define."""

from __future__ import annotations

import pytest

from tests.kafka import comparison, jars

pytestmark = pytest.mark.live


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1", "4.4.0"])
def test_every_key_of_a_release(release: str) -> None:
    jars.require(release)
    assert list(comparison.config_key_names(comparison.declared(), release)) == []
