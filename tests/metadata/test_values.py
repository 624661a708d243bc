"""The JSON form of values, and the names of codes."""

from __future__ import annotations

import pytest

from kshell.metadata.metadata_version import version_name
from kshell.metadata.partitions import Partition
from kshell.metadata.values import BatchPosition, Entry, Origin, camel, enum_name, plain
from tests.builders import uuid


def test_plain_is_kafkas_json() -> None:
    partition = Partition((1, 2), (uuid(1), uuid(2)), (1,), (), (), (2,), (), 1, "RECOVERED", 3, 4)
    assert plain(partition) == {
        "replicas": [1, 2],
        "directories": ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"],
        "isr": [1],
        "removingReplicas": [],
        "addingReplicas": [],
        "elr": [2],
        "lastKnownElr": [],
        "leader": 1,
        "leaderRecoveryState": "RECOVERED",
        "leaderEpoch": 3,
        "partitionEpoch": 4,
    }
    assert plain({"a": b"\x00\xff", "b": [uuid(0), None], "c": 2**63}) == {
        "a": "00ff",
        "b": ["AAAAAAAAAAAAAAAAAAAAAA", None],
        "c": 2**63,
    }


def test_names() -> None:
    assert camel("is_migrating_zk_broker") == "isMigratingZkBroker"
    assert enum_name({1: "ONE"}, 1) == "ONE"
    assert enum_name({1: "ONE"}, 99) == "UNKNOWN(99)"


def test_an_entry_is_compared_by_its_value_and_hides_it() -> None:
    one = Origin(1, 2, "CONFIG_RECORD", 0, BatchPosition("a", 0, 1, False))
    assert Entry("secret", one) == Entry("secret", one._replace(offset=9))
    assert Entry("secret", one) != Entry("other", one)
    assert Entry("secret", one) != "secret"
    assert "secret" not in repr(Entry("secret", one))


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (1, "3.0-IV1"),
        (7, "3.3-IV3"),
        (20, "3.8-IV0"),
        (25, "4.0-IV3"),
        (0, "unknown level 0"),
        (999, "unknown level 999"),
    ],
)
def test_metadata_versions(level: int, name: str) -> None:
    assert version_name(level) == name
