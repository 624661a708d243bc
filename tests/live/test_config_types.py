"""The table of config types says what Kafka's own classes define."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from kshell.tables.configs import check
from tests.kafka import comparison, jars

pytestmark = pytest.mark.live
RELEASES = ["3.3.2", "3.9.2", "4.3.1", "4.4.0"]


@pytest.mark.parametrize("release", RELEASES)
def test_every_key_of_a_release(release: str) -> None:
    jars.require(release)
    assert list(comparison.config_rules(comparison.declared(), release)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_every_default_is_valid(release: str) -> None:
    jars.require(release)
    for kind, key, _, _, default in comparison.rows(release, "ConfigTypes"):
        if default != "-":
            assert check(kind, key, unquote(default), None).valid, key
