"""What is wrong with a partition, and how many in-sync replicas it needs."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.metadata import partition_state
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partial import MISSING, UNREPORTED
from kshell.metadata.partition_state import MinIsr, Verdicts, problems, replication_factor, state
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
        # What brokers do not report.
        ({"leader": UNREPORTED, "adding_replicas": UNREPORTED, "removing_replicas": UNREPORTED,
          "leader_recovery_state": UNREPORTED}, 2, [], "online"),
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


def test_verdicts_are_decided_once_for_a_value_and_what_its_topic_asks_for() -> None:
    image, _ = replayed(
        value("CONFIG", resourceType=2, resourceName="strict", name="min.insync.replicas", value="3"),
        value("CONFIG", resourceType=4, resourceName="2", name="min.insync.replicas", value="2"),
    )
    decided: list[tuple[int, int | None]] = []

    def decide(partition: Partition, min_isr: int | None) -> int | None:
        decided.append((partition.leader, min_isr))
        return min_isr

    verdicts = Verdicts(decide, MinIsr(image))
    led_by_2 = FINE._replace(leader=2)
    for topic, partition, expected in [("a", FINE, None), ("b", FINE, None), ("b", led_by_2, 2), ("strict", FINE, 3)]:
        known = verdicts.of_topic(topic)
        verdict = known.get(id(partition)) or verdicts.add(topic, partition)
        assert verdict == (expected, partition)
        assert known[id(partition)] is verdict
    assert decided == [(1, None), (2, 2), (1, 3)]


@pytest.mark.parametrize(("by_epochs", "decisions"), [(False, 1), (True, 3)])
def test_values_that_differ_in_epochs_share_a_verdict_that_does_not_depend_on_them(
    by_epochs: bool, decisions: int
) -> None:
    decided: list[tuple[int, int]] = []

    def decide(partition: Partition, _: int | None) -> tuple[int, int]:
        decided.append((partition.leader_epoch, partition.partition_epoch))
        return decided[-1]

    verdicts = Verdicts(decide, MinIsr(replayed()[0]), by_epochs=by_epochs)
    epochs = [(1, 1), (2, 1), (1, 2)]
    made = [
        verdicts.add("t", FINE._replace(leader_epoch=leader_epoch, partition_epoch=partition_epoch))
        for leader_epoch, partition_epoch in epochs
    ]
    assert len(decided) == decisions
    assert [verdict for verdict, _ in made] == (epochs if by_epochs else [(1, 1)] * 3)
    assert [(value.leader_epoch, value.partition_epoch) for _, value in made] == epochs


@pytest.mark.parametrize("field", [name for name in Partition._fields if not name.endswith("_epoch")])
def test_every_other_field_may_change_a_verdict(field: str) -> None:
    verdicts = Verdicts(lambda partition, _: getattr(partition, field), MinIsr(replayed()[0]))
    changed: dict[str, Any] = {field: ("another",)}
    assert verdicts.add("t", FINE)[0] == getattr(FINE, field)
    assert verdicts.add("t", FINE._replace(**changed))[0] == ("another",)


def test_verdicts_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_state, "_MOST_VERDICTS", 10)
    monkeypatch.setattr(partition_state, "_MOST_MIN_ISRS", 2)
    configs = [
        value("CONFIG", resourceType=2, resourceName=f"t{number}", name="min.insync.replicas", value=str(number))
        for number in range(1, 5)
    ]
    verdicts = Verdicts(lambda partition, min_isr: (partition.leader, min_isr), MinIsr(replayed(*configs)[0]))
    for number in range(1, 5):
        known = verdicts.of_topic(f"t{number}")
        for leader in range(25):
            partition = FINE._replace(leader=leader)
            assert verdicts.add(f"t{number}", partition) == ((leader, number), partition)
            assert known[id(partition)][1] is partition
            assert len(known) <= 10
        assert len(verdicts._by_own) <= 2
        assert len(verdicts._decided) <= 10


@pytest.mark.parametrize(
    ("missing", "known"),
    [("TOPIC:b", {"a": 3, "b": None}), ("GROUP", {"a": 3, "b": 3}), (None, {"a": None, "b": None})],
)
def test_a_topic_whose_configs_are_refused_may_have_a_value_of_its_own(
    missing: str | None, known: dict[str, int | None]
) -> None:
    """Neither the brokers' value nor the given one is known to count for it; verdicts tell such topics apart."""
    path = ("configs",) if missing is None else ("configs", missing)
    image = Image({MISSING: {path: "not available from brokers: refused"}}, EMPTY.provenance)
    least = MinIsr(image, 3)
    assert {topic: least.of(topic, 1) for topic in known} == known
    verdicts = Verdicts(lambda partition, min_isr: min_isr, least)
    for topic, least_of_topic in known.items():
        verdicts.of_topic(topic)
        assert verdicts.add(topic, FINE)[0] == least_of_topic
        assert verdicts.of_topic(topic)[id(FINE)][0] == least_of_topic
