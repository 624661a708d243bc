"""The table of config keys knows what Kafka's own classes define."""

from __future__ import annotations

import pytest

from kshell.metadata import config_keys
from tests.kafka import jars

pytestmark = pytest.mark.live


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1"])
def test_every_key_of_a_release(release: str) -> None:
    jars.require(release)
    rows = [line.split("\t") for line in jars.run(jars.classes(release, "ConfigKeys"), "ConfigKeys").splitlines()]
    assert len(rows) > 290
    for kind, key, value_type in rows:
        assert key in config_keys.KNOWN[kind]
        assert (key in config_keys.SENSITIVE[kind]) >= (value_type == "PASSWORD"), key
    if release == jars.LATEST:  # what only older releases know is sensitive because they say so
        plain = {(kind, key) for kind, key, value_type in rows if value_type != "PASSWORD"}
        assert not [(kind, key) for kind, key in plain if key in config_keys.SENSITIVE[kind]]
