"""The table of feature levels says what Kafka's own classes of each release define."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from kshell.client.releases import release_of, supported_features
from kshell.metadata.feature_levels import LATEST, default_levels, levels, metadata_changed, version_level
from kshell.metadata.metadata_version import version_name
from tests.kafka import jars

pytestmark = pytest.mark.live

RELEASES = ("3.3.2", "3.5.2", "3.7.2", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1")


class Told(NamedTuple):
    """A line of ``FeatureLevels.java``."""

    feature: str
    level: int
    name: str
    version: int
    changed: str
    needs: str


@cache
def told(release: str) -> tuple[list[Told], int]:
    """What a release's classes say, and its newest metadata.version for production."""
    jars.require(release)
    lines = jars.run(jars.classes(release, "FeatureLevels"), "FeatureLevels").splitlines()
    rows = [line.split("\t") for line in lines]
    newest = int(next(row[1] for row in rows if row[0] == "#production"))
    facts = [Told(r[0], int(r[1]), r[2], int(r[3]), r[4], r[5]) for r in rows if not r[0].startswith("#")]
    return facts, newest


def in_production(release: str) -> Iterator[Told]:
    """The levels above 0 that the release supports for production."""
    facts, _ = told(release)
    supported = supported_features()[release_of(release)]
    for one in facts:
        if 1 <= one.level <= supported.get(one.feature, (0, 0))[1]:
            yield one


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_versions(release: str) -> None:
    facts, newest = told(release)
    known = [one for one in facts if one.feature == "metadata.version" and 1 <= one.level <= newest]
    assert len(known) == newest - known[0].level + 1
    for one in known:
        assert (version_name(one.level), version_level(one.name)) == (one.name, one.level)
        assert bool(metadata_changed(one.level, one.level - 1)) is (one.changed == "true"), one
    # The release's own name means the newest: what `kafka-features.sh upgrade --release-version` takes it for.
    assert version_level(release) == version_level(release_of(release)) == newest


@pytest.mark.parametrize("release", [one for one in RELEASES if one >= "4.0"])
def test_other_features(release: str) -> None:
    found = [one for one in in_production(release) if one.feature != "metadata.version"]
    assert len(found) >= 3
    for one in found:
        mine = next(level for level in levels()[one.feature] if level.level == one.level)
        assert mine.version == one.version, one
        needs = "-" if not mine.needs else ",".join(f"{name}={level}" for name, level in mine.needs.items())
        if (release_of(release), one.feature) != ("4.0", "kraft.version"):  # 4.0 alone names what its own MV has anyway
            assert needs == one.needs, one


def test_defaults_of_the_newest() -> None:
    facts, newest = told(jars.LATEST)
    assert newest == LATEST
    for version in range(7, LATEST + 1):
        expected: dict[str, int] = {}
        for one in facts:
            if one.version <= version:
                expected[one.feature] = max(one.level, expected.get(one.feature, 0))
        assert default_levels(version) == expected
