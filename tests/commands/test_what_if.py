"""``what-if``: who would lead when brokers die, by the rules of Kafka's controller, and what an unclean election costs.

That the rules are Kafka's own is tested with its classes, and with real crashes, in ``tests/live``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.metadata.feature_update import ClusterFeatures
from kshell.render import render
from tests.builders import uuid, value
from tests.commands import cluster
from tests.commands.shell import lines, opened, rows, run

ELR = value("FEATURE_LEVEL", name="eligible.leader.replicas.version", featureLevel=1)
NEW = value("FEATURE_LEVEL", name="metadata.version", featureLevel=27)
NO_ELR: dict[str, Any] = {"eligibleLeaderReplicas": [], "lastKnownElr": []}


def brokers() -> list[bytes]:
    """1 and 2 in rack a, 3 in b, 4 fenced."""
    return [
        *(cluster.broker(number, rack=rack) for number, rack in ((1, "a"), (2, "a"), (3, "b"))),
        cluster.broker(4, fenced=True),
    ]


def topics() -> list[bytes]:
    """Topics one (min ISR 1), two (2), and lossy (an unclean election is allowed)."""
    names = {1: "lossy", 2: "one", 3: "two"}
    return [
        NEW,
        *(cluster.topic(number, name) for number, name in names.items()),
        cluster.config(cluster.TOPIC, "lossy", "min.insync.replicas", "1"),
        cluster.config(cluster.TOPIC, "lossy", "unclean.leader.election.enable", "true"),
        cluster.config(cluster.TOPIC, "one", "min.insync.replicas", "1"),
        cluster.config(cluster.TOPIC, "two", "min.insync.replicas", "2"),
        cluster.partition(1, 0, [1, 3], [1], 1, **NO_ELR),
        cluster.partition(2, 0, [1, 2, 3], [1, 2, 3], 1, **NO_ELR),
        cluster.partition(2, 1, [2, 1], [2], 2, **NO_ELR),
        cluster.partition(3, 0, [3, 1], [3, 1], 1, **NO_ELR),
        cluster.partition(3, 1, [1, 4, 2], [1, 2], 1, **NO_ELR),
        cluster.partition(3, 2, [4, 3], [3], 3, **NO_ELR),
    ]


@pytest.fixture
def plain(tmp_path: Path) -> Session:
    """Without the ELR."""
    return cluster.cluster(tmp_path, *brokers(), *topics())


@pytest.fixture
def eligible(tmp_path: Path) -> Session:
    """With the ELR."""
    return cluster.cluster(tmp_path, ELR, *brokers(), *topics())


def outcomes(session: Session, line: str) -> dict[str, tuple[Any, ...]]:
    """Partition -> leader, ISR, ELR and effect after."""
    return {
        f"{row['topic']}-{row['partition']}": (row["leaderAfter"], row["isrAfter"], row["elrAfter"], row["what"])
        for row in rows(session, line)
    }


class TestCrashes:
    def test_one_broker(self, plain: Session) -> None:
        assert outcomes(plain, "what-if --kill 1") == {
            "lossy-0": (3, [3], [], "unclean-election"),
            "one-0": (2, [2, 3], [], "leader-moves"),
            "two-0": (3, [3], [], "under-min-isr"),
            "two-1": (2, [2], [], "under-min-isr"),
        }
        assert rows(plain, "what-if --kill 1 --where 'topic == two' --limit 1")[0]["stateAfter"] == "under-min-isr"

    def test_the_active_controllers_own_config_counts(self, plain: Session, tmp_path: Path) -> None:
        """Kafka reads the topic's, then that of the node that is the active controller, then the default of all."""
        found = {
            node: outcomes(
                cluster.cluster(
                    tmp_path / f"node-{node}",
                    *brokers(),
                    *topics(),
                    cluster.config(cluster.BROKER, node, "unclean.leader.election.enable", "true"),
                ),
                "what-if --kill 2,1 --all",
            )
            for node in ("1", "2", "")
        }
        without = outcomes(plain, "what-if --kill 2,1 --all")
        assert found["1"] == found[""] != without == found["2"]

    def test_brokers_are_asked_for_the_quorum_only_if_a_nodes_own_config_may_count(
        self, plain: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Brokers need DESCRIBE on the cluster for it, and a quorum without a leader has no answer."""
        asked: list[Session] = []

        def features(session: Session) -> ClusterFeatures:
            asked.append(session)
            return ClusterFeatures({}, (), 1)

        monkeypatch.setattr("kshell.commands.what_if.cluster_features", features)
        for line in ("what-if --kill 1", "what-if --unclean one-0"):
            run(plain, line)
            assert asked == [], line
        own = cluster.config(cluster.BROKER, "1", "unclean.leader.election.enable", "true")
        assert rows(cluster.cluster(tmp_path / "own", *brokers(), *topics(), own), "what-if --kill 2,1")
        assert len(asked) == 1

    def test_the_last_of_the_isr_stays_in_it_without_the_elr(self, plain: Session) -> None:
        found = outcomes(plain, "what-if --kill 1,2")
        assert found["two-1"] == (-1, [2], [], "offline")
        assert found["one-1"] == (-1, [2], [], "offline")
        assert outcomes(plain, "what-if --kill 2,1")["two-1"] == (-1, [1], [], "offline")

    def test_who_leaves_a_small_isr_is_eligible_with_the_elr(self, eligible: Session) -> None:
        assert outcomes(eligible, "what-if --kill 1")["two-0"] == (3, [3], [1], "under-min-isr")
        found = outcomes(eligible, "what-if --kill 1,2")
        assert found["two-1"] == (-1, [], [1, 2], "offline")
        assert found["one-1"] == (-1, [], [2], "offline")
        assert found["one-0"] == (3, [3], [], "leader-moves")

    def test_a_member_of_the_elr_leads_when_the_isr_is_empty(self, tmp_path: Path) -> None:
        """Broker 2 left the ISR and is up again, but has not caught up: Kafka elects it, for the ISR was too small."""
        more = {"eligibleLeaderReplicas": [2], "lastKnownElr": []}
        records = [ELR, NEW, *brokers(), cluster.topic(1, "t"),
                   cluster.config(cluster.TOPIC, "t", "min.insync.replicas", "2"),
                   cluster.partition(1, 0, [1, 2], [1], 1, **more)]  # fmt: skip
        found = outcomes(cluster.cluster(tmp_path, *records), "what-if --kill 1")
        assert found == {"t-0": (2, [2], [1], "under-min-isr")}

    def test_a_broker_that_is_down_makes_no_difference(self, plain: Session) -> None:
        assert rows(plain, "what-if --kill 4") == []
        assert run(plain, "what-if --kill 4").exit_code == 0
        assert any("broker 4 is already fenced" in line for line in lines(plain, "what-if --kill 4"))

    def test_all_shows_what_is_no_worse(self, plain: Session) -> None:
        found = {name: outcome[3] for name, outcome in outcomes(plain, "what-if --kill 3 --all").items()}
        assert found == {
            "lossy-0": "no-worse", "one-0": "no-worse", "one-1": "no-worse",
            "two-0": "under-min-isr", "two-1": "no-worse", "two-2": "offline",
        }  # fmt: skip

    def test_a_rack_is_its_brokers(self, plain: Session) -> None:
        assert rows(plain, "what-if --rack a") == rows(plain, "what-if --kill 1,2")
        assert "rack a (brokers 1, 2)" in lines(plain, "what-if --rack a", width=300)[0]

    def test_the_totals_and_the_exit_code(self, plain: Session) -> None:
        result = run(plain, "what-if --kill 1 --where 'topic == nothing'")
        assert result.exit_code == 1
        assert lines(plain, "what-if --kill 1", width=300)[0] == (
            "then  without broker 1, of 6 partitions: 1 gets a leader that may lack records, 2 are under min ISR,"
            " 1 only gets another leader without loss, 2 are no worse off"
        )

    def test_another_leader_without_loss_is_no_harm(self, tmp_path: Path) -> None:
        session = cluster.cluster(
            tmp_path, *brokers(), cluster.topic(1, "t"), cluster.partition(1, 0, [1, 2], [1, 2], 1)
        )
        result = run(session, "what-if --kill 1")
        assert [row["what"] for row in result] == ["leader-moves"]  # type: ignore[attr-defined]
        assert result.exit_code == 0
        assert run(session, "what-if --kill 1 --min-isr-default 2").exit_code == 1

    @pytest.mark.parametrize(
        ("line", "message", "hint"),
        [
            ("what-if --kill 77", "broker 77", "registered: 1, 2, 3, 4"),
            ("what-if --rack c", "rack c", "a, b"),
            ("what-if --unclean two", "which of its partitions", "such as two-0"),
        ],
    )
    def test_what_is_not_there(self, plain: Session, line: str, message: str, hint: str) -> None:
        with pytest.raises(CommandError) as raised:
            run(plain, line)
        assert message in raised.value.message and hint in (raised.value.hint or "")

    @pytest.mark.parametrize("words", ["", "--kill 1 --rack a", "--kill one", "--kill 1,,2"])
    def test_what_is_not_asked_well(self, plain: Session, words: str) -> None:
        with pytest.raises(UsageError):
            run(plain, f"what-if {words}")


class TestUncleanElection:
    """Broker 1 leads, 2 falls out of sync and comes back up, 1 dies: the log knows since when 2 lacks records."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> Session:
        def change(**fields: Any) -> bytes:
            return value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), **fields)

        return opened(
            cluster.write(
                tmp_path, NEW, *brokers(), cluster.topic(1, "t"), cluster.topic(2, "never"),
                cluster.partition(1, 0, [1, 2], [1, 2], 1),
                cluster.partition(1, 1, [1, 2], [1, 2], 1),
                cluster.partition(2, 0, [4, 3], [4], -1),
                cluster.partition(2, 1, [4], [4], -1),
                change(isr=[1]),
                value("FENCE_BROKER", id=1, epoch=1),
                change(leader=-1),
            )
        )  # fmt: skip

    def test_who_would_lead_and_since_when_it_lacks_records(self, session: Session) -> None:
        assert outcomes(session, "what-if --unclean t-0") == {"t-0": (2, [2], [], "unclean-election")}
        (row,) = rows(session, "what-if --unclean t-0")
        assert row["inSyncUntilOffset"] == 12  # the change of the ISR: 11 records and a control record are before it
        assert row["inSyncUntil"] == "2023-11-14T22:13:20.000Z" and row["inSyncUntilMs"] == 1_700_000_000_000
        text = " ".join(lines(session, "what-if --unclean t-0", width=300))
        assert "broker 1 had all committed records last; broker 2 was in sync until" in text
        assert run(session, "what-if --unclean t-0").exit_code == 1

    def test_one_that_was_never_in_sync(self, session: Session) -> None:
        text = " ".join(lines(session, "what-if --unclean never-0", width=300))
        assert "broker 3 was never in sync, and may have none of the records" in text

    def test_nobody_runs(self, session: Session) -> None:
        result = run(session, "what-if --unclean never-1")
        assert [row["what"] for row in result] == ["offline"]  # type: ignore[attr-defined]
        assert result.exit_code == 1
        assert "no replica runs" in " ".join(lines(session, "what-if --unclean never-1", width=300))

    def test_kafka_refuses_where_somebody_leads(self, session: Session) -> None:
        assert outcomes(session, "what-if --unclean t-1") == {"t-1": (1, [1, 2], [], "no-worse")}
        assert "ElectionNotNeeded" in " ".join(lines(session, "what-if --unclean t-1", width=300))
        assert run(session, "what-if --unclean t-1").exit_code == 0


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("", 3),
        ("--min-isr-default 1", 0),
        ("--min-isr-default 2", 1),
        ("--where 'what == offline'", 0),
        ("--where 'stateAfter == under-min-isr'", 3),
        ("--where 'minIsr == 2'", 3),
        ("--all --where 'what == under-min-isr'", 3),
    ],
)
@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_no_row_is_no_answer_where_the_minimum_is_unknown(tmp_path: Path, more: str, code: int, output: str) -> None:
    session = cluster.cluster(
        tmp_path,
        *(cluster.broker(number) for number in (1, 2, 3)),
        cluster.topic(1, "t"),
        cluster.partition(1, 0, [1, 2], [1, 2], 1),
    )
    result = run(session, f"what-if --kill 2 --fail-if-any {more}")
    "".join(render(result, output))
    assert result.exit_code == code
    assert run(session, "what-if --kill 3 --fail-if-any").exit_code == 0, "it carries nothing"
    assert run(session, "what-if --kill 2").exit_code == 0, "only alerts say so"


def test_a_broker_may_be_written_as_in_why(sample: Session) -> None:
    assert rows(sample, "what-if --kill broker-2,1") == rows(sample, "what-if --kill 2,1")
    assert rows(sample, "drain-check broker-2") == rows(sample, "drain-check 2")
    with pytest.raises(UsageError) as raised:
        run(sample, "what-if --kill broker-x")
    assert raised.value.hint == "an id is a number; `brokers` lists them"


@pytest.mark.parametrize(
    ("line", "column", "place", "order"),
    [
        ("what-if --kill 2 --all", "what", -1, ("offline", "under-min-isr", "leader-moves", "no-worse")),
        ("drain-check 1", "risk", 2, ("last-in-sync", "under-min-isr")),
    ],
)
def test_text_has_the_worst_first(sample: Session, line: str, column: str, place: int, order: tuple[str, ...]) -> None:
    """Other formats go by topic, and so does text where the line chooses how many rows there are."""

    def shown(line: str) -> list[str]:
        words = (text.split()[place] for text in lines(sample, line, width=200) if len(text.split()) > 5)
        return [word for word in words if word in order]

    found = [row[column] for row in rows(sample, line)]
    assert shown(line) == sorted(found, key=order.index) != found
    assert shown(f"{line} --limit 5") == found[:5] != sorted(found[:5], key=order.index)


def test_drain_check_says_who_still_waits_for_a_broker_that_is_down(sample: Session) -> None:
    """Nothing would get worse without it, and yet its disk must not be scrapped."""
    assert rows(sample, "drain-check 3") == []
    assert sample.remarks == [
        "already fenced, so that stopping changes nothing for clients: 3",
        "keep the disks: offline without a leader, and waiting for these brokers: legacy-import-0;"
        " `why legacy-import-0`",
    ]
    run(sample, "drain-check 1")
    assert sample.remarks == []


def test_drain_check_of_a_broker_that_is_down_lists_the_last_copies_and_nothing_else(tmp_path: Path) -> None:
    """The last of the ISR stays in it when it dies (without the ELR): without its disk, the records are lost."""
    partitions = [
        cluster.partition(1, 0, [4, 1], [4], -1, **NO_ELR),
        cluster.partition(1, 1, [1, 4], [1, 4], 1, **NO_ELR),
        cluster.partition(1, 2, [1, 2], [1], 1, **NO_ELR),
        cluster.partition(2, 0, [1, 2, 4], [1, 4], 1, **NO_ELR),
    ]
    least = cluster.config(cluster.TOPIC, "two", "min.insync.replicas", "2")
    named = [cluster.topic(1, "t"), cluster.topic(2, "two"), least]
    session = cluster.cluster(tmp_path, NEW, *brokers(), *named, *partitions)
    (row,) = rows(session, "drain-check 4")
    assert (row["partition"], row["risk"], row["isrAfter"]) == (0, "last-in-sync", [])
    assert run(session, "drain-check 4").exit_code == 1
    found = rows(session, "drain-check 1,4 --where 'topic == t'")
    assert [(row["partition"], row["risk"]) for row in found] == [(number, "last-in-sync") for number in (0, 1, 2)]
    session.remarks.clear()
    run(session, "drain-check 1 --min-isr-default 1")
    assert session.remarks == [], "the offline partition waits for broker 4 alone"
