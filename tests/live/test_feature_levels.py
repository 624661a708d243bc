"""The tables of feature levels say what Kafka's own classes of each release define."""

from __future__ import annotations

import pytest

from kshell.client.releases import release_of
from kshell.metadata.feature_levels import LATEST, default_levels, version_level
from tests.kafka import comparison, jars
from tests.kafka.comparison import declared

pytestmark = pytest.mark.live

RELEASES = ("3.3.2", "3.5.2", "3.7.2", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1", "4.4.0")


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_versions(release: str) -> None:
    jars.require(release)
    assert list(comparison.metadata_versions(declared(), release)) == []
    # The release's own name means the newest: what `kafka-features.sh upgrade --release-version` takes it for.
    _, _, newest = comparison.feature_facts(release)
    assert version_level(release) == version_level(release_of(release)) == newest


@pytest.mark.parametrize("release", RELEASES)
def test_other_features_and_what_servers_support(release: str) -> None:
    jars.require(release)
    assert list(comparison.feature_levels(declared(), release)) == []
    assert list(comparison.supported_ranges(declared(), release)) == []


def test_defaults_of_the_newest() -> None:
    jars.require()
    facts, _, newest = comparison.feature_facts(jars.LATEST)
    assert newest == LATEST
    for version in range(7, LATEST + 1):
        expected: dict[str, int] = {}
        for fact in facts:
            if fact.version <= version:
                expected[fact.feature] = max(fact.level, expected.get(fact.feature, 0))
        assert default_levels(version) == expected
