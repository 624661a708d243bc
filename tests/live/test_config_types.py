"""The table of config types says what Kafka's own classes define."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from kshell.commands.base.config_check import check
from kshell.metadata.config_types import known_types
from tests.kafka import jars
from tests.tools.config_types import ANYTHING

pytestmark = pytest.mark.live


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1"])
def test_every_key_of_a_release(release: str) -> None:
    jars.require(release)
    rows = [line.split("\t") for line in jars.run(jars.classes(release, "ConfigTypes"), "ConfigTypes").splitlines()]
    assert len(rows) > 290
    for kind, key, value_type, stated, default in rows:
        known = known_types(kind)[key]
        rule = "*" if stated in ANYTHING else stated
        assert rule in known.rules or (rule, known.rules) == ("*", ()), key
        if release == jars.LATEST:
            assert known.type == value_type, key
            assert known.default == (None if default == "-" else unquote(default)), key
            assert (known.rules or ("*",))[0] == rule, key
        if default != "-":
            assert check(kind, key, unquote(default), None).valid, key
