"""What is wrong with a partition, and how many in-sync replicas it needs."""

from __future__ import annotations

import pytest

from kshell.metadata.image import EMPTY
from kshell.metadata.min_isr import MinIsr
from kshell.metadata.partial import UNTOLD
from kshell.metadata.partition_state import problems, replication_factor, state
from kshell.metadata.partitions import Partition
from kshell.metadata.records import RecordType
from tests.builders import kind, replayed, value

FINE = Partition((1, 2, 3), (), (1, 2, 3), (), (), (), (), 1, "RECOVERED", 0, 0)


@pytest.mark.parametrize(
    ("changes", "min_isr", "expected", "worst"),
    [
        ({}, 2, [], "online"),
        ({}, 3, ["at-min-isr"], "online"),
        ({}, 4, ["under-min-isr"], "under-min-isr"),
        ({}, None, [], "online"),
        ({"isr": (1, 2)}, 2, ["at-min-isr", "under-replicated"], "under-replicated"),
        ({"isr": (1,)}, 2, ["under-min-isr", "under-replicated"], "under-min-isr"),
        ({"isr": (1,)}, None, ["under-replicated"], "under-replicated"),
        ({"isr": (3,), "leader": -1}, 1, ["offline", "under-min-isr", "at-min-isr", "under-replicated"], "offline"),
        ({"isr": (), "leader": -1}, None, ["offline", "under-min-isr", "under-replicated"], "offline"),
        ({"leader": 2}, 2, ["non-preferred"], "online"),
        ({"leader_recovery_state": "RECOVERING"}, 2, ["unclean"], "online"),
        ({"replicas": (1, 2, 3, 4), "adding_replicas": (4,)}, 2, ["reassigning"], "online"),
        ({"replicas": (1, 2, 3, 4), "removing_replicas": (4,)}, 2, ["under-replicated", "reassigning"],
         "under-replicated"),
        # What brokers do not tell.
        ({"leader": UNTOLD, "adding_replicas": UNTOLD, "removing_replicas": UNTOLD, "leader_recovery_state": UNTOLD},
         2, [], "online"),
    ],
)  # fmt: skip
def test_problems(changes: dict[str, object], min_isr: int | None, expected: list[str], worst: str) -> None:
    found = problems(FINE._replace(**changes), min_isr)  # type: ignore[arg-type]
    assert found == expected
    assert state(found) == worst


def test_the_replication_factor_is_the_one_to_come() -> None:
    assert replication_factor(FINE) == 3
    assert replication_factor(FINE._replace(replicas=(1, 2, 3, 4), adding_replicas=(4,))) == 3


def config(resource_type: int, name: str, text: str) -> bytes:
    return value("CONFIG", resourceType=resource_type, resourceName=name, name="min.insync.replicas", value=text)


class TestMinIsr:
    def test_the_topics_own_wins_then_the_leaders_then_the_brokers(self) -> None:
        image, _ = replayed(config(2, "own", "3"), config(4, "7", "4"), config(4, "", "2"))
        least = MinIsr(image, default=9)
        assert [least.of("own", 7), least.of("other", 7), least.of("other", 8), least.of("other")] == [3, 4, 2, 2]

    def test_what_the_log_lacks_is_unknown_or_given(self) -> None:
        assert MinIsr(EMPTY).of("t", 1) is None
        assert MinIsr(EMPTY, 2).of("t", 1) == 2

    @pytest.mark.parametrize("text", ["x", "", "-1", "99999999999", "²", "3\u2003", "3 4", "++3"])
    def test_what_is_no_number_does_not_count(self, text: str) -> None:
        image, _ = replayed(config(2, "t", text), config(4, "", "2"))
        assert MinIsr(image).of("t") == 2

    @pytest.mark.parametrize("text", ["3", " 3", "3\n", "\t+03\r\n", "\x003\x1f", "00000000000003"])
    def test_a_number_is_what_a_broker_takes_for_one(self, text: str) -> None:
        image, _ = replayed(config(2, "t", text), config(4, "", "2"))
        assert MinIsr(image).of("t") == 3

    def test_groups_have_none(self) -> None:
        image, _ = replayed(config(32, "", "5"))
        assert MinIsr(image).of("t") is None


def test_the_short_way_of_decoding_knows_the_records_name() -> None:
    found: RecordType = kind("PARTITION")
    assert found.name == "PARTITION_RECORD"
