"""The table of config types says what Kafka's own classes define."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from kshell.tables.config_conflicts import conflicts
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


VALUES = {
    "TOPIC:t": {
        "compression.gzip.level": ["-1", "0", "1", "9", "10", "-2"],
        "compression.lz4.level": ["0", "1", "17", "18"],
        "compression.zstd.level": ["-131072", "22", "23"],
        "leader.replication.throttled.replicas": [
            "*",
            "",
            "1:2",
            "1:2,3:4",
            " 1:2 , 3:4 ",
            "abc",
            "1",
            "*,1:2",
            "1:-2",
        ],
        "follower.replication.throttled.replicas": ["*", "none", "0:0"],
        "cleanup.policy": ["delete", "compact,delete", "wrong"],
        "retention.ms": ["-1", "-2", "x", "9223372036854775808"],
        "min.cleanable.dirty.ratio": ["0", "1", "1.1", "0.5f"],
        "message.timestamp.type": ["CreateTime", "createtime"],
    },
    "CLIENT_METRICS:m": {
        "interval.ms": ["99", "100", "3600000", "3600001", "x"],
        "match": [
            "",
            "client_id=a.*",
            "client_id=a,client_source_port=9.*",
            "a",
            "a=b",
            "client_id=",
            "client_id=a=b",
            "client_id=a=",
        ],
        "metrics": ["org.apache.", "", "*"],
    },
    "GROUP:g": {"consumer.session.timeout.ms": ["45000", "0"], "share.isolation.level": ["read_committed", "wrong"]},
}


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_values_are_taken_that_a_controller_takes(release: str) -> None:
    jars.require(release)
    tried = [(name, key, text) for name, keys in VALUES.items() for key, texts in keys.items() for text in texts]
    words = [f"{name} {key}={text}" for name, key, text in tried]
    taken = jars.run(jars.classes(release, "ConfigValues"), "ConfigValues", *words).split()
    mine = [check(name.partition(":")[0], key, text, None).valid for name, key, text in tried]
    differing = [word for word, theirs, ours in zip(words, taken, mine, strict=True) if theirs != str(ours).lower()]
    assert differing == []
    assert {"true", "false"} == set(taken)


TIERED = {"remote.storage.enable": "true"}
NO_COPIES = TIERED | {"remote.log.copy.disable": "true"}
TOGETHER: list[tuple[str, dict[str, str]]] = [
    *(("TOPIC:t", {"min.compaction.lag.ms": least, "max.compaction.lag.ms": "5"}) for least in ("4", "5", "6")),
    *(
        ("TOPIC:t", switches | {f"local.retention.{unit}": local, f"retention.{unit}": whole})
        for switches in ({}, TIERED, NO_COPIES)
        for unit in ("ms", "bytes")
        for local in ("-2", "-1", "4", "5", "6")
        for whole in ("-1", "5")
    ),
    *(
        ("TOPIC:t", switches | {"local.retention.bytes": local, "retention.bytes": "-5"} | lag)
        for switches in ({}, TIERED, NO_COPIES)
        for local in ("-2", "-1", "4")
        for lag in ({}, {"remote.copy.lag.bytes": "6"})
    ),
    *(
        (
            "TOPIC:t",
            TIERED | {f"remote.copy.lag.{unit}": lag, f"local.retention.{unit}": local, f"retention.{unit}": "7"},
        )
        for unit in ("ms", "bytes")
        for lag in ("-1", "0", "5", "6", "8")
        for local in ("-2", "5")
    ),
    *(("TOPIC:t", TIERED | {"cleanup.policy": policy}) for policy in ("delete", "compact", "compact,delete", "")),
    *(
        ("GROUP:g", {f"{kind}.heartbeat.interval.ms": "5000", f"{kind}.session.timeout.ms": "45000"})
        for kind in ("consumer", "share", "streams")
    ),
    ("TOPIC:t", {"segment.bytes": "2000000", "retention.bytes": "1", "min.insync.replicas": "9"}),
]  # fmt: skip


@pytest.mark.parametrize("was", ["true", "false"])
def test_tiered_storage_is_turned_off_where_a_controller_takes_it(was: str) -> None:
    jars.require("4.4.0")
    present = {"remote.storage.enable": was}
    given = [
        {"remote.storage.enable": enable} | more
        for enable in ("true", "false")
        for more in ({}, {"remote.log.delete.on.disable": "true"}, {"remote.log.delete.on.disable": "false"})
    ]
    lines = [[f"was remote.storage.enable={was}", *map("=".join, configs.items())] for configs in given]
    words = ["TOPIC:t " + "\n".join(configs) for configs in lines]
    taken = jars.run(jars.classes("4.4.0", "ConfigValues"), "ConfigValues", *words).split()
    assert taken == [str(not conflicts("TOPIC", configs, present.get)).lower() for configs in given]
    assert ("false" in taken) == (was == "true")


def test_values_are_taken_together_that_a_controller_takes() -> None:
    jars.require("4.4.0")
    words = [f"{name} {chr(10).join(map('='.join, configs.items()))}" for name, configs in TOGETHER]
    taken = jars.run(jars.classes("4.4.0", "ConfigValues"), "ConfigValues", *words).split()
    mine = [not conflicts(name.partition(":")[0], configs, lambda key: None) for name, configs in TOGETHER]
    differing = [word for word, theirs, ours in zip(words, taken, mine, strict=True) if theirs != str(ours).lower()]
    assert differing == []
    assert {"true", "false"} == set(taken)
