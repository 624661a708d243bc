"""``skew``, ``drain-check``, ``registrations``: what brokers carry, and what would be lost without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.commands.drain_check import LAST_IN_SYNC, UNDER_MIN_ISR
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.render import render
from tests.builders import uuid, value
from tests.commands import cluster, healthy
from tests.commands.shell import lines, opened, rows, run


@pytest.fixture
def racks(tmp_path: Path) -> Session:
    """Brokers 1, 2 in rack a, 3 in b, 4 fenced and without a rack; 9 is not registered any more."""
    return cluster.cluster(
        tmp_path,
        *(cluster.broker(number, rack=rack) for number, rack in ((1, "a"), (2, "a"), (3, "b"))),
        cluster.broker(4, fenced=True),
        cluster.topic(1, "t"),
        cluster.partition(1, 0, [1, 2], [1, 2], 1),
        cluster.partition(1, 1, [1, 3], [1, 3], 1),
        cluster.partition(1, 2, [2, 3], [3], 3),
        cluster.partition(1, 3, [1], [1], 1),
        cluster.partition(1, 4, [9, 1], [1], 1),
    )


class TestSkew:
    def test_by_broker(self, racks: Session) -> None:
        found = {row["broker"]: row for row in rows(racks, "skew")}
        assert list(found) == [1, 2, 3, 4, 9]
        assert [(one["leaders"], one["replicas"], one["preferredLeaders"]) for one in found.values()] == [
            (4, 4, 3), (0, 2, 1), (1, 2, 0), (0, 0, 0), (0, 1, 1),
        ]  # fmt: skip
        # 5 leaders over 3 brokers that run, 9 replicas over 4 that are registered.
        assert [one["leaderSkew"] for one in found.values()] == [2.4, 0.0, 0.6, None, None]
        assert [one["replicaSkew"] for one in found.values()] == [1.778, 0.889, 0.889, 0.0, None]
        assert (found[9]["fenced"], found[4]["fenced"], found[9]["rack"]) == (None, True, None)

    def test_by_rack(self, racks: Session) -> None:
        found = {row["rack"]: row for row in rows(racks, "skew --rack")}
        assert [(rack, one["brokers"], one["leaders"], one["soleRack"]) for rack, one in found.items()] == [
            (None, 1, 0, 0), ("a", 2, 4, 1), ("b", 1, 1, 0),
        ]  # fmt: skip
        assert found["a"]["leaderSkew"] == 1.2

    def test_people_see_the_spread(self, racks: Session) -> None:
        shown = lines(racks, "skew")
        assert any("deviation" in line for line in shown)
        assert not any("Spread" in line for line in lines(racks, "skew --columns broker"))

    def test_nothing_is_spread(self, tmp_path: Path) -> None:
        session = cluster.cluster(tmp_path, cluster.broker(1))
        assert rows(session, "skew")[0]["leaderSkew"] is None
        assert rows(cluster.cluster(tmp_path / "none", cluster.topic(1, "t")), "skew") == []


class TestDrainCheck:
    @pytest.fixture
    def session(self, tmp_path: Path) -> Session:
        return cluster.cluster(
            tmp_path,
            *(cluster.broker(number) for number in (1, 2, 3)),
            cluster.broker(4, fenced=True),
            cluster.broker(5),
            cluster.config(cluster.TOPIC, "two", "min.insync.replicas", "2"),
            cluster.topic(1, "two"),
            cluster.topic(2, "unset"),
            cluster.partition(1, 0, [1, 2, 3], [1, 2, 3], 1),
            cluster.partition(1, 1, [1, 2, 3], [1, 2], 1),
            cluster.partition(1, 2, [2, 3, 1], [2, 3], 2),
            cluster.partition(1, 3, [1, 4], [1, 4], 1),  # the other one in sync is fenced
            cluster.partition(2, 0, [1], [1], 1),
            cluster.partition(2, 1, [1, 2], [1, 2], 1),
            cluster.partition(2, 2, [3, 1], [3], -1),
        )

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("1", [("two", 1, UNDER_MIN_ISR), ("two", 3, LAST_IN_SYNC), ("unset", 0, LAST_IN_SYNC)]),
            ("3", [("two", 2, UNDER_MIN_ISR), ("unset", 2, LAST_IN_SYNC)]),
            ("5", []),
            ("1 2", [("two", 0, UNDER_MIN_ISR), ("two", 1, LAST_IN_SYNC), ("two", 2, UNDER_MIN_ISR),
                     ("two", 3, LAST_IN_SYNC), ("unset", 0, LAST_IN_SYNC), ("unset", 1, LAST_IN_SYNC)]),
            ("2 --min-isr-default 2", [("two", 1, UNDER_MIN_ISR), ("two", 2, UNDER_MIN_ISR),
                                       ("unset", 1, UNDER_MIN_ISR)]),
        ],
    )  # fmt: skip
    def test_risks(self, session: Session, words: str, expected: list[tuple[str, int, str]]) -> None:
        result = run(session, f"drain-check {words}")
        found = [(row["topic"], row["partition"], row["risk"]) for row in result]  # type: ignore[attr-defined]
        assert found == expected
        assert result.exit_code == bool(expected)

    def test_brokers_may_be_a_list(self, session: Session) -> None:
        assert rows(session, "drain-check 1,2") == rows(session, "drain-check 1 2") != []

    def test_what_is_shown_does_not_decide(self, session: Session) -> None:
        assert run(session, "drain-check 1 --where 'topic == nothing'").exit_code == 1

    def test_what_is_unknown_is_said(self, session: Session) -> None:
        rows(session, "drain-check 5")
        assert "of 1 topic is not in the log: --min-isr-default" in session.remarks[0]
        assert not rows(session, "drain-check 5 --min-isr-default 1")
        assert not session.remarks

    @pytest.mark.parametrize(
        ("more", "code"),
        [
            ("", 3),
            ("--columns topic", 3),
            ("--min-isr-default 1", 0),
            ("--min-isr-default 2", 1),
            ("--where 'risk == last-in-sync'", 0),
            ("--where 'risk == under-min-isr'", 3),
            ("--where 'minIsr > 1'", 3),
            ("--where 'partition == 0'", 0),
        ],
    )
    @pytest.mark.parametrize("output", ["text", "jsonl"])
    def test_no_row_is_no_answer_where_the_minimum_is_unknown(
        self, tmp_path: Path, more: str, code: int, output: str
    ) -> None:
        session = cluster.cluster(
            tmp_path,
            *(cluster.broker(number) for number in (1, 2, 3)),
            cluster.topic(2, "unset"),
            cluster.partition(2, 0, [1], [1], 1),
            cluster.partition(2, 1, [1, 2], [1, 2], 1),
        )
        result = run(session, f"drain-check 2 --fail-if-any {more}")
        "".join(render(result, output))
        assert result.exit_code == code
        assert run(session, "drain-check 3 --fail-if-any").exit_code == 0, "it carries nothing"
        assert run(session, "drain-check 2").exit_code == 0, "only alerts say so"

    def test_wrong_brokers(self, session: Session) -> None:
        with pytest.raises(CommandError) as raised:
            run(session, "drain-check 1 77")
        assert raised.value.message.startswith("broker 77")
        assert raised.value.hint == "registered: 1, 2, 3, 4, 5"
        with pytest.raises(UsageError):
            run(session, "drain-check one")

    def test_a_broker_that_only_partitions_name_is_known(self, racks: Session) -> None:
        assert rows(racks, "drain-check 9") == []


class TestRegistrations:
    def test_stale_ones(self, tmp_path: Path) -> None:
        change = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=4, brokerEpoch=4, fenced=1, inControlledShutdown=1)
        session = cluster.cluster(
            tmp_path,
            *(cluster.broker(number, fenced=number > 1) for number in (1, 2, 3, 4)),
            change,
            cluster.topic(1, "t"),
            cluster.partition(1, 0, [1, 2], [1], 1),
        )
        found = {row["id"]: row for row in rows(session, "registrations")}
        assert [row["stale"] for row in found.values()] == [False, True, True, True]  # 4 has shut down: it is gone, too
        assert [row["id"] for row in rows(session, "registrations --stale")] == [2, 3, 4]
        assert "1 replica is placed on it" in found[2]["reason"]
        unregister = "kafka-cluster.sh unregister --bootstrap-server 127.0.0.1:9001 --id 3"
        assert found[3]["reason"] == f"fenced, and has no replicas; if it is gone for good: {unregister}"
        assert found[1]["reason"] is None
        assert found[4]["changed"] == "2023-11-14T22:13:20.000Z"

    def test_a_controller_that_is_no_voter(self, sample: Session, tmp_path: Path) -> None:
        assert not any(row["stale"] for row in rows(sample, "registrations --where 'kind == controller'"))
        session = cluster.cluster(
            tmp_path,
            value("REGISTER_CONTROLLER", controllerId=7, incarnationId=uuid(1), zkMigrationReady=False, endPoints=[],
                  features=[]),
        )  # fmt: skip
        assert [(row["id"], row["stale"]) for row in rows(session, "registrations")] == [(7, False)]  # voters: unknown

    def test_from_4_4_on_a_controllers_registration_can_be_removed(self, tmp_path: Path) -> None:
        gone = "no voter of the quorum: it was removed, or is an observer"
        for level, more in (
            (
                32,
                "; no tool of this release removes it: if it is gone for good, upgrade all nodes to Kafka 4.4 and"
                " finalize metadata.version 4.4-IV2, which brings kafka-cluster.sh unregister-controller",
            ),
            (
                33,
                "; if it is gone for good: kafka-cluster.sh unregister-controller --bootstrap-controller h:9093"
                " --id 14",
            ),
        ):
            version = value("FEATURE_LEVEL", name="metadata.version", featureLevel=level)
            session = opened(healthy.write(tmp_path / str(level), version, healthy.controller(14)))
            told = {row["id"]: row["reason"] for row in rows(session, "registrations --stale")}
            assert told == {14: gone + more}
