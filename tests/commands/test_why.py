"""why: the story of a partition. The recorded cluster lost broker 2 (killed, then unregistered); broker 1 came back."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from kshell.engine.completion import complete
from kshell.engine.result import Report
from kshell.engine.session import Session
from kshell.errors import CommandError, SourceError
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.builders import (
    FIXTURES,
    batch,
    node_name,
    recorded,
    snapshot,
    timed_batch,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.cluster import TOPIC, broker, cluster, config, partition, topic
from tests.commands.shell import lines, opened, rows, run, sections
from tests.server import Quorum, settings
from tests.sources.test_brokers import BODIES

LOST = FIXTURES / "4.3.1-lost" / "controller-3000"


@pytest.fixture
def lost() -> Session:
    return opened(LOST)


def events(session: Session, line: str) -> list[tuple[int, str, int | None]]:
    return [(row["offset"], row["event"], row["broker"]) for row in sections(session, line)["events"]]


def said(session: Session, line: str) -> str:
    return str(sections(session, line)["answer"]["sentence"])


class TestRealLoss:
    def test_leader_killed_and_unregistered(self, lost: Session) -> None:
        assert events(lost, "why orders-eu-0") == [
            (31, "created", None),
            (48, "broker-controlled-shutdown", 1),
            (51, "isr-shrunk", None),
            (56, "broker-fenced", 1),
            (70, "leader-lost", None),
            (71, "broker-fenced", 2),
            (77, "broker-unregistered", 2),
            (87, "broker-registered", 1),
            (90, "broker-unfenced", 1),
        ]
        assert said(lost, "why orders-eu-0") == (
            "No leader since 2026-11-21T19:55:42.886Z (offset 70): its last in-sync replica was broker 2, which was"
            " fenced at offset 71 (Kafka writes the cause after its effects) and unregistered at offset 77"
            " (2026-11-21T19:55:45.436Z)."
            " Only broker 2 is known to hold all committed records (ELR): the partition waits for it."
            " Broker 1 is unfenced, but may lack records: an unclean election of it may lose some."
        )

    def test_each_row_has_the_partition_after_it(self, lost: Session) -> None:
        told = sections(lost, "why orders-eu-0")["events"]
        assert [(row["offset"], row["leader"], row["isr"], row["elr"]) for row in told if row["broker"] is None] == [
            (31, 2, [2, 1], []), (51, 2, [2], []), (70, -1, [], [2]),
        ]  # fmt: skip
        assert {tuple(row["replicas"]) for row in told} == {(2, 1)}

    def test_unclean_election(self, lost: Session) -> None:
        assert events(lost, "why retries-0")[-1] == (102, "unclean-election", None)
        told = said(lost, "why retries-0")
        assert "Broker 1 leads since 2026-11-21T19:55:54.571Z (offset 102)." in told
        assert told.endswith(
            "Broker 1 was elected uncleanly at offset 102: records may be lost. It is still marked RECOVERING."
        )
        assert "Broker 2 is out of sync since 2026-11-21T19:55:42.886Z (offset 69)" in told

    def test_controlled_shutdown_and_preferred_election(self, lost: Session) -> None:
        assert [event for _, event, who in events(lost, "why orders-eu-2") if who is None] == [
            "created", "leader-changed", "isr-grown", "leader-changed",
        ]  # fmt: skip
        assert said(lost, "why orders-eu-2") == (
            "Broker 1 leads since 2026-11-21T19:55:54.612Z (offset 103)."
            " Both replicas are in sync since 2026-11-21T19:55:51.444Z (offset 93)."
        )
        assert said(lost, "why orders-eu-2 --until 60").endswith(
            "Broker 1 is out of sync since 2026-11-21T19:55:36.670Z (offset 53): it was shut down in a controlled way"
            " at offset 48 (2026-11-21T19:55:36.670Z) and fenced at offset 56 (2026-11-21T19:55:37.760Z)."
            " Its preferred leader is broker 1 (fenced)."
        )

    def test_reassigned(self, lost: Session) -> None:
        last = sections(lost, "why orders-eu-1-0")["events"][-1]
        assert (last["offset"], last["event"], last["replicas"], last["leader"]) == (104, "leader-changed", [1], 1)
        assert "It has no other replica since 2026-11-21T19:55:54.671Z (offset 104)" in said(lost, "why orders-eu-1-0")

    def test_brokers(self, lost: Session) -> None:
        told = sections(lost, "why orders-eu-0")["brokers"]
        assert [(row["id"], row["status"], row["sinceOffset"]) for row in told] == [
            (2, "not registered", 77), (1, "unfenced", 90),
        ]  # fmt: skip
        assert sections(lost, "why orders-eu-0")["state"]["state"] == "offline"

    def test_a_topic_created_again(self, lost: Session) -> None:
        assert events(lost, "why again-0") == [(43, "created", None)]
        assert "a topic of the same name was there before" in sections(lost, "why again-0")["answer"]["history"]
        assert events(lost, "why again-0 --until 40") == [(40, "created", None)]

    def test_a_deleted_topic(self, lost: Session) -> None:
        assert events(lost, "why again-0 --until 41") == [(40, "created", None), (41, "deleted", None)]
        assert said(lost, "why again-0 --until 41") == (
            "The topic again was deleted at offset 41, 2026-11-21T19:55:34.571Z."
        )
        assert sections(lost, "why again-0 --until 41")["state"]["state"] == "deleted"


class TestPoints:
    def test_since_leaves_out_events_not_their_effect(self, lost: Session) -> None:
        assert [offset for offset, _, _ in events(lost, "why orders-eu-0 --since 70")] == [70, 71, 77, 87, 90]
        assert said(lost, "why orders-eu-0 --since 80") == said(lost, "why orders-eu-0")
        assert events(lost, "why orders-eu-0 --since now") == []
        assert "Events: none" in lines(lost, "why orders-eu-0 --since now")

    def test_until_is_as_of(self, lost: Session) -> None:
        for line in (
            "why orders-eu-0 --until 71",
            "why orders-eu-0 --as-of 71",
            "why orders-eu-0 --until 90 --as-of 71",
        ):
            assert [offset for offset, _, _ in events(lost, line)][-1] == 71
            assert "unregistered" not in said(lost, line)

    def test_until_before_the_topic(self, lost: Session) -> None:
        with pytest.raises(CommandError, match="no such topic or partition, at offset 20 or before"):
            run(lost, "why orders-eu-0 --until 20")


class TestNames:
    @pytest.mark.parametrize(
        "word", ["orders-eu-1", "orders-eu/1", "/image/topics/byName/orders-eu/1", "../orders-eu/1"]
    )
    def test_one_partition_many_spellings(self, lost: Session, word: str) -> None:
        lost.cwd = ("image", "topics", "byName", "again")
        about = sections(lost, f"why {word}")["partition"]
        assert (about["topic"], about["partition"]) == ("orders-eu", 1)
        by_id = sections(lost, f"why /image/topics/byId/{about['topicId']}/1")["partition"]
        assert by_id == about

    def test_a_topic_with_a_dash_and_a_number(self, lost: Session) -> None:
        about = sections(lost, "why orders-eu-1-0")["partition"]
        assert (about["topic"], about["partition"]) == ("orders-eu-1", 0)

    def test_a_topic_of_one_partition_is_told_as_a_topic(self, lost: Session) -> None:
        assert sections(lost, "why retries")["topic"]["topic"] == "retries"
        assert sections(lost, "why retries 0") == sections(lost, "why retries-0")

    @pytest.mark.parametrize(
        ("word", "hint"),
        [
            ("orders-eu-7", "orders-eu-0 to orders-eu-2"),
            ("orders-eu 7", "orders-eu-0 to"),
            ("retrys-0", "retries-0?"),
            ("RETRIES-0", "retries-0?"),
            ("retrys", "retries?"),
        ],
    )
    def test_what_is_not_there(self, lost: Session, word: str, hint: str) -> None:
        with pytest.raises(CommandError) as raised:
            run(lost, f"why {word}")
        assert hint in (raised.value.hint or "")

    def test_completion(self, lost: Session) -> None:
        assert lost.image
        offered = [one.text.strip() for one in complete(lost, "why orders-eu-").candidates]
        assert offered == ["orders-eu-1", "orders-eu-0", "orders-eu-2", "orders-eu-1-0"]


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_agrees_with_the_log_and_the_image(node: Path) -> None:
    """Every record that touched the partition is an event, and each row is the image as of its offset."""
    session = opened(node)
    session.travels()
    for shown in rows(session, "partitions")[::5]:
        word = f"{shown['topic']}-{shown['partition']}"
        told = sections(session, f"why {word}")
        own = [row["offset"] for row in told["events"] if row["broker"] is None]
        path = f"/image/topics/byId/{shown['topicId']}/{shown['partition']}"
        touched = [
            row["offset"] for row in rows(session, f"log {path}") if row["type"].startswith(("PARTITION", "CLEAR_ELR"))
        ]
        assert own == touched, word
        for row in told["events"]:
            then = session.reshape(point=str(row["offset"]))
            if then.loaded.open_transaction is None:
                held = then.image["topics"][next(k for k in then.image["topics"] if str(k) == shown["topicId"])]
                assert list(held.partition(shown["partition"]).value.isr) == row["isr"]
        assert told["state"]["leader"] == shown["leader"]
        assert ("No leader" in told["answer"]["sentence"]) == (shown["leader"] == -1)


class TestHonesty:
    def test_a_log_that_begins_later(self, cut_sample: Session) -> None:
        told = sections(cut_sample, "why legacy-import-0")
        assert [(row["offset"], row["event"]) for row in told["events"]] == [
            (158, "snapshot"), (182, "leader-lost"), (201, "broker-fenced"),
        ]  # fmt: skip
        assert told["answer"]["history"].startswith("the log starts at offset 159: before that, a snapshot")

    def test_a_log_that_is_damaged_before_a_snapshot(self, tmp_path: Path) -> None:
        bad = bytearray(batch([topic(1, "t"), partition(1, 0, [1, 2], [2], 2)]))
        later = batch([partition(1, 0, [1, 2], [1], 1), partition(1, 0, [1, 2], [1, 2], 1)], base_offset=2)
        bad[-1] ^= 1
        write_log(tmp_path, bytes(bad), later)
        write_snapshot(tmp_path, snapshot([topic(1, "t"), partition(1, 0, [1, 2], [1], 1)]), 3)
        told = sections(opened(tmp_path), "why t-0")
        assert [row["event"] for row in told["events"]] == ["snapshot", "isr-grown"]
        assert told["answer"]["history"].startswith("the log before offset 3 is damaged or incomplete: ")

    def test_what_a_snapshot_holds_is_at_the_latest(self, cut_sample: Session) -> None:
        assert " (offset 158) at the latest" in said(cut_sample, "why clicks-3")

    def test_a_snapshot_alone_has_a_state(self, tmp_path: Path) -> None:
        write_snapshot(tmp_path, snapshot([broker(1), topic(1, "t"), partition(1, 0, [1], [1], 1)]), 10)
        told = sections(opened(tmp_path), "why t-0")
        assert [row["event"] for row in told["events"]] == ["snapshot"]
        assert "Broker 1 leads since" in told["answer"]["sentence"]

    def test_a_broker_that_comes_back(self, tmp_path: Path) -> None:
        session = cluster(tmp_path, broker(1), broker(2), topic(1, "t"), partition(1, 0, [1, 2], [1], 1))
        assert said(session, "why t-0").endswith(
            "it is unfenced; it does not keep up with the leader, or has not caught up yet."
        )

    def test_candidates_that_are_up(self, tmp_path: Path) -> None:
        session = cluster(tmp_path, broker(1), broker(2, fenced=True), topic(1, "t"), partition(1, 0, [1, 2], [1], -1))
        told = said(session, "why t-0")
        assert "its only in-sync replica is broker 1, which is unfenced" in told
        assert "No other replica is up" in told

    def test_nobody_has_all_records(self, tmp_path: Path) -> None:
        session = cluster(
            tmp_path, broker(1), topic(1, "t"),
            partition(1, 0, [1, 2], [], -1, eligibleLeaderReplicas=[], lastKnownElr=[2]),
        )  # fmt: skip
        told = said(session, "why t-0")
        assert "No replica is known to hold all committed records (last known ELR: 2)" in told
        assert "Broker 1 is unfenced, but may lack records" in told

    def test_the_only_replicas_broker_is_not_registered(self, tmp_path: Path) -> None:
        """Its disk may be there: that comes before anything that takes the records for lost."""
        session = cluster(tmp_path, broker(1), topic(1, "t"), partition(1, 0, [3], [], -1))
        answer = sections(session, "why t-0")["answer"]
        assert answer["sentence"].endswith("Its only replica is not up (broker 3 is not registered).")
        assert "start broker 3, which is not registered, with the same log directories" in answer["nextStep"]
        assert "lost" not in answer["nextStep"]
        assert answer["lastResort"].startswith("only if those log directories are gone: all records are lost: ")
        assert answer["lastResort"].endswith("makes broker 1 lead, empty")
        with pytest.raises(CommandError, match="broker-3: no such broker, now or in the log") as raised:
            run(session, "why broker-3")
        hint = raised.value.hint or ""
        assert hint == "registered: broker-1; partitions name it as a replica: `partitions --where '3 in replicas'`"
        assert len(rows(session, hint.split("`")[1])) == 1

    def test_a_reassignment(self, tmp_path: Path) -> None:
        change = value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), replicas=[1, 2], addingReplicas=[2],
                       removingReplicas=[1])  # fmt: skip
        done = value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), replicas=[2], addingReplicas=[],
                     removingReplicas=[], isr=[2], leader=2)  # fmt: skip
        first = cluster(tmp_path / "a", broker(1), broker(2), topic(1, "t"), partition(1, 0, [1], [1], 1), change)
        assert "A reassignment adds 2 and removes 1 since" in said(first, "why t-0")
        second = cluster(
            tmp_path / "b", broker(1), broker(2), topic(1, "t"), partition(1, 0, [1], [1], 1), change, done
        )
        assert [event for _, event, _ in events(second, "why t-0")][-2:] == ["reassignment-started", "leader-changed"]
        assert "reassignment ended: replicas 2" in sections(second, "why t-0")["events"][-1]["what"]

    def test_a_reassignment_that_is_cancelled(self, tmp_path: Path) -> None:
        changes = [
            value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), replicas=replicas, addingReplicas=adding,
                  removingReplicas=removing)
            for replicas, adding, removing in (([3, 1, 2], [3], [2]), ([1, 2], [], []))
        ]  # fmt: skip
        brokers = [broker(number) for number in (1, 2, 3)]
        session = cluster(tmp_path, *brokers, topic(1, "t"), partition(1, 0, [1, 2], [1, 2], 1), *changes)
        for line in ("why t-0", "why t"):
            last = sections(session, line)["events"][-1]
            assert (last["event"], last["what"]) == ("reassignment-cancelled", "reassignment cancelled: replicas 1,2")

    def test_a_broker_that_was_away_and_has_not_caught_up(self, tmp_path: Path) -> None:
        """Asked most when a broker has just been restarted: it is out of sync because it was away."""
        changes = [
            value("BROKER_REGISTRATION_CHANGE", 2, brokerId=2, brokerEpoch=2, inControlledShutdown=1),
            value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), isr=[1]),
            value("FENCE_BROKER", id=2, epoch=2),
            value("REGISTER_BROKER", brokerId=2, incarnationId=uuid(9), brokerEpoch=8, fenced=False),
        ]
        session = cluster(tmp_path, broker(1), broker(2), topic(1, "t"), partition(1, 0, [1, 2], [1, 2], 1), *changes)
        told = said(session, "why t-0")
        assert "Broker 2 is out of sync since 2023-11-14T22:13:20.000Z (offset 6): it was shut down in a" in told
        assert " and fenced at offset 7 (" in told
        assert told.endswith("; it is unfenced since offset 8, and has not caught up yet.")

    def test_a_broker_that_was_slow_before_it_was_restarted(self, tmp_path: Path) -> None:
        """A fence that came after the loss is not its cause."""
        changes = [
            value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), isr=[1]),
            value("FENCE_BROKER", id=2, epoch=2),
            value("REGISTER_BROKER", brokerId=2, incarnationId=uuid(9), brokerEpoch=8, fenced=False),
        ]
        values = [broker(1), broker(2), topic(1, "t"), partition(1, 0, [1, 2], [1, 2], 1), *changes]
        write_log(tmp_path, timed_batch(values, [*range(1000, 5000, 1000), 5000, 90_000, 95_000]))
        assert said(opened(tmp_path), "why t-0").endswith(
            "Broker 2 is out of sync since 1970-01-01T00:00:05.000Z (offset 4): it is unfenced; it does not keep up"
            " with the leader, or has not caught up yet."
        )

    @pytest.mark.parametrize(
        ("is_loss_first", "times", "told"),
        [
            (False, [5000, 6000], "offset 4 (1970-01-01T00:00:05.000Z)"),
            (False, [5000, 4000], "offset 4 (1970-01-01T00:00:05.000Z)"),
            (True, [5000, 5000], "offset 5 (1970-01-01T00:00:05.000Z)"),
        ],
        ids=["fenced-first", "clock-of-the-next-controller-behind", "one-batch"],
    )
    def test_a_broker_that_was_restarted_twice(
        self, tmp_path: Path, is_loss_first: bool, times: list[int], told: str
    ) -> None:
        """The fence that took it out of sync is the cause, not a later one."""
        loss = value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), isr=[1])
        fence = value("FENCE_BROKER", id=2, epoch=2)
        values = [
            *(broker(1), broker(2), topic(1, "t"), partition(1, 0, [1, 2], [1, 2], 1)),
            *((loss, fence) if is_loss_first else (fence, loss)),
            value("UNFENCE_BROKER", id=2, epoch=2),
            fence,
            value("REGISTER_BROKER", brokerId=2, incarnationId=uuid(9), brokerEpoch=9, fenced=False),
        ]
        write_log(tmp_path, timed_batch(values, [1000, 2000, 3000, 4000, *times, 21_000, 40_000, 51_000]))
        assert said(opened(tmp_path), "why t-0").endswith(
            f": it was fenced at {told}; it is unfenced since offset 8, and has not caught up yet."
        )

    def test_too_few_in_sync_since_there_is_a_leader(self, tmp_path: Path) -> None:
        """Without a leader the ISR may be smaller still, and nobody is refused."""
        changes = [
            value("PARTITION_CHANGE", 2, partitionId=0, topicId=uuid(1), isr=isr, leader=leader)
            for isr, leader in (([1], 1), ([], -1), ([1], 1))
        ]
        least = config(TOPIC, "t", "min.insync.replicas", "2")
        session = cluster(tmp_path, broker(1), least, topic(1, "t"), partition(1, 0, [1, 2], [1, 2], 1), *changes)
        assert "Only 1 replica is in sync since 2023-11-14T22:13:20.000Z (offset 7)," in said(session, "why t-0")

    def test_a_snapshot_file_has_no_log_that_starts(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path, snapshot([broker(1), topic(1, "t"), partition(1, 0, [1], [1], 1)]), 10)
        assert sections(opened(path), "why t-0")["answer"]["history"].startswith("there is no log here, only snapshot")

    def test_a_reassignment_to_a_broker_that_is_away(self, tmp_path: Path) -> None:
        moving = partition(1, 0, [1, 2], [1], 1, addingReplicas=[2], removingReplicas=[1])
        for at, (broker_2, is_stuck) in enumerate(
            [((broker(2, fenced=True),), True), ((), True), ((broker(2),), False)]
        ):
            session = cluster(tmp_path / str(at), broker(1), *broker_2, topic(1, "t"), moving)
            assert ("it cannot end before broker 2 is back" in said(session, "why t-0")) is is_stuck

    @pytest.mark.parametrize(("least", "in_sync", "is_refused"), [(2, [1], True), (1, [1], False), (3, [1, 2], False)])
    def test_writes_that_are_refused(self, least: int, in_sync: list[int], is_refused: bool, tmp_path: Path) -> None:
        """A leader is not enough; of two replicas no broker asks for three."""
        session = cluster(
            tmp_path, broker(1), broker(2), config(TOPIC, "t", "min.insync.replicas", str(least)), topic(1, "t"),
            partition(1, 0, [1, 2], in_sync, 1),
        )  # fmt: skip
        assert ("writes with acks=all are refused" in said(session, "why t-0")) is is_refused
        lowered = "min.insync.replicas is 3, more than its 2 replicas: brokers ask for 2."
        assert (lowered in said(session, "why t-0")) is (least == 3)
        (row,) = rows(session, "partitions")
        assert sections(session, "why t-0")["state"]["state"] == row["state"]

    def test_a_disk_that_failed(self, tmp_path: Path) -> None:
        """The broker lives on without one of its log directories, and its replica in there is out of sync (KIP-858)."""
        first, second = uuid(7), uuid(8)
        point = {"name": "P", "host": "h", "port": 9092, "securityProtocol": 0}
        both = value("REGISTER_BROKER", 3, brokerId=2, incarnationId=uuid(2), brokerEpoch=2, endPoints=[point],
                     fenced=False, logDirs=[first, second])  # fmt: skip
        stored = value("PARTITION", 1, partitionId=0, topicId=uuid(1), replicas=[1, 2], isr=[1, 2], leader=1,
                       directories=[uuid(9), second])  # fmt: skip
        gone = value("BROKER_REGISTRATION_CHANGE", 2, brokerId=2, brokerEpoch=2, logDirs=[first])
        out = value("PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1), isr=[1])
        session = cluster(tmp_path, broker(1), both, topic(1, "t"), stored, gone, out)
        assert [event for _, event, _ in events(session, "why t-0")] == [
            "created", "broker-directory-lost", "isr-shrunk",
        ]  # fmt: skip
        assert sections(session, "why t-0")["events"][1]["what"] == f"broker 2 lost log directory {second}"
        assert said(session, "why t-0").endswith("it is unfenced, but does not have the replica's log directory"
                                                 " (a failed disk, or one that was taken away).")  # fmt: skip

    def test_the_last_known_leader(self, tmp_path: Path) -> None:
        """Killed, and back: Kafka elects it, uncleanly, for nobody knows what its disk lost (KIP-966)."""
        lost = partition(1, 0, [1, 2], [], -1, eligibleLeaderReplicas=[], lastKnownElr=[1])
        back = value("PARTITION_CHANGE", 2, partitionId=0, topicId=uuid(1), leader=1, isr=[1], leaderRecoveryState=1)
        session = cluster(tmp_path, broker(1), topic(1, "t"), lost, back)
        what = sections(session, "why t-0")["events"][-1]["what"]
        assert what.startswith("broker 1, as the last leader that was known, elected uncleanly: records may be lost")

    def test_damage_ends_the_story_where_it_is(self, tmp_path: Path) -> None:
        raw = bytearray((LOST / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes())
        at = raw.find(b"orders-eu-1")
        raw[at] ^= 1
        write_log(tmp_path, bytes(raw))
        session = opened(tmp_path)
        told = run(session, "why orders-eu-0")
        assert isinstance(told, Report)
        assert session.exit_code() == 4
        assert [offset for offset, _, _ in events(session, "why orders-eu-0")] == [31]


class TestRunningClusters:
    def test_a_quorum_tells_it_as_it_happens(self) -> None:
        with Quorum(controllers=2) as quorum:
            quorum.append(broker(1), broker(2), topic(1, "t"), partition(1, 0, [1, 2], [1], 1))
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            assert "Broker 1 leads since" in said(session, "why t-0")
            fenced = value("FENCE_BROKER", id=1, epoch=1)
            quorum.append(value("PARTITION_CHANGE", partitionId=0, topicId=uuid(1), leader=-1), fenced)
            quorum.commit()
            assert session.refresh()
            told = said(session, "why t-0")
            assert told.startswith("No leader since")
            assert "its only in-sync replica is broker 1, which was fenced at offset" in told
            assert [row["leader"] for row in rows(session, "timeline t")] == [1, -1]

    def test_brokers_tell_the_present(self) -> None:
        with Quorum(brokers=1) as quorum:
            quorum.bodies.update(BODIES)
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            told = sections(session, "why orders-1")
            assert [(row["offset"], row["event"]) for row in told["events"]] == [(None, "state")]
            assert told["answer"]["sentence"].startswith("No leader (since when is not known)")
            assert told["answer"]["history"].startswith("brokers report only the present state")
            assert lines(session, "why orders-0")
            with pytest.raises(SourceError, match="timeline: brokers report only the present state"):
                run(session, "timeline orders")


def test_wide_and_narrow(lost: Session) -> None:
    assert max(map(len, lines(lost, "why orders-eu-0", width=200)[:14])) <= 200
    shown = lines(lost, "why orders-eu-0")
    assert any(line.split()[:5] == ["70", "2026-11-21T19:55:42.886Z", "none", "[]", "2"] for line in shown)


def test_the_page_shows_what_is_said(lost: Session) -> None:
    """docs/why.md is a person's reading of this cluster: its examples are the answers."""
    page = (Path(__file__).parents[2] / "docs" / "why.md").read_text(encoding="utf-8")
    blocks = [block.split("\n```")[0] for block in page.split("```text\nkshell> ")[1:]]
    assert len(blocks) == 5
    for block in blocks:
        line, _, shown = block.partition("\n")
        assert shown.splitlines() == lines(lost, line)


def test_the_page_has_the_story_of_a_broker() -> None:
    """Killed, back, a disk lost, shut down and unregistered: what really happened to it, in that order."""
    page = (Path(__file__).parents[2] / "docs" / "why.md").read_text(encoding="utf-8")
    session = opened(FIXTURES / "4.4.0-broker" / "controller-3000")
    prompt = "```text\nkshell -d tests/fixtures/4.4.0-broker/controller-3000> "
    blocks = [block.split("\n```")[0] for block in page.split(prompt)[1:]]
    assert [block.partition("\n")[0] for block in blocks] == ["why broker-1", "why refunds-1"]
    for block in blocks:
        line, _, shown = block.partition("\n")
        assert shown.splitlines() == lines(session, line)
    story = sections(session, "why broker-1")["events"]
    assert [row["event"].removeprefix("broker-") for row in story] == [
        "registered", "unfenced", "fenced", "registered", "unfenced", "directory-lost", "controlled-shutdown", "fenced",
        "unregistered",
    ]  # fmt: skip


def test_since_a_time_shows_no_event_from_before_it(lost: Session) -> None:
    every = sections(lost, "why orders-eu-0")["events"]
    for moment in (every[3]["timeMs"], every[3]["timeMs"] + 1):
        point = datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="milliseconds")
        expected = [row["offset"] for row in every if row["timeMs"] >= moment]
        assert [offset for offset, *_ in events(lost, f"why orders-eu-0 --since {point}")] == expected
        assert 0 < len(expected) < len(every)


def test_since_an_offset_goes_by_the_records_own_also_inside_a_transaction(tmp_path: Path) -> None:
    """Of partitions, topics and brokers alike, as the rows show it and as ``log`` has it."""
    registered = value("REGISTER_BROKER", brokerId=1, brokerEpoch=1, fenced=False)
    made = partition(1, 0, [1, 2], [1, 2], 1)
    shrunk = value("PARTITION_CHANGE", topicId=uuid(1), partitionId=0, isr=[1])
    fenced = value("FENCE_BROKER", id=1, epoch=1)
    lost = value("PARTITION_CHANGE", topicId=uuid(1), partitionId=0, leader=-1)
    changes = [value("BEGIN_TRANSACTION"), shrunk, fenced, lost, value("END_TRANSACTION")]
    write_log(tmp_path, batch([registered, topic(1, "t"), made, *changes], 0))
    session = opened(tmp_path)
    for target in ("t-0", "t", "broker-1"):
        every = [row["offset"] for row in sections(session, f"why {target}")["events"]]
        assert 4 < max(every) < 7, target
        for point in range(9):
            found = [row["offset"] for row in sections(session, f"why {target} --since {point}")["events"]]
            assert found == [offset for offset in every if offset >= point], (target, point)


def test_what_a_transaction_passes_through_is_no_event(tmp_path: Path) -> None:
    """Its records take effect together: an unclean election inside it, that its end undoes, was never one."""
    change = partial(value, "PARTITION_CHANGE", 0, partitionId=0, topicId=uuid(1))
    passing = [change(leader=2, isr=[2]), change(leader=1, isr=[1])]
    inside = [value("BEGIN_TRANSACTION"), *passing, value("END_TRANSACTION")]
    again = [
        value("BEGIN_TRANSACTION"),
        value("REMOVE_TOPIC", topicId=uuid(1)),
        topic(2, "t"),
        config(TOPIC, "t", "retention.ms", "9"),
        partition(2, 0, [2], [2], 2),
        value("END_TRANSACTION"),
    ]
    before = [topic(1, "t"), config(TOPIC, "t", "retention.ms", "1"), partition(1, 0, [1, 2], [1], 1)]
    session = cluster(tmp_path, broker(1), broker(2), *before, *inside, *again)
    assert [event for _, event, _ in events(session, "why t-0 --until 9")] == ["created", "leader-renewed"]
    assert "uncleanly" not in said(session, "why t-0 --until 9")
    assert [row["what"] for row in sections(session, "why t")["events"]] == [
        "created with 1 partition",
        "retention.ms = 9",
    ]
    first, second = rows(session, "timeline t")
    assert (first["leader"], second["leader"]) == (1, 2)
    assert first["toOffset"] == second["fromOffset"] == 15


@pytest.mark.parametrize("place", ["byId/{}", "byId/{}/0"])
def test_a_deleted_topic_is_named_by_its_id(tmp_path: Path, place: str) -> None:
    """Where the name was used again, the id alone says which of the topics is meant."""
    gone = [topic(1, "t"), partition(1, 0, [1], [1], 1), value("REMOVE_TOPIC", topicId=uuid(1))]
    session = cluster(tmp_path, broker(1), broker(2), *gone, topic(2, "t"), partition(2, 0, [2], [2], 2))
    for number, sentence in ((1, "The topic t was deleted at offset 5, "), (2, "")):
        line = f"why /image/topics/{place.format(uuid(number))}"
        told = sections(session, line)
        assert told["partition" if place.endswith("0") else "topic"]["topicId"] == str(uuid(number))
        assert told["answer"]["sentence"].startswith(sentence)
        assert {row["leader"] for row in rows(session, line.replace("why", "timeline"))} == {number}
    with pytest.raises(CommandError, match="no such topic or partition"):
        run(session, f"why /image/topics/{place.format(uuid(3))}")


def test_a_topic_that_is_moved_is_not_all_in_sync(tmp_path: Path) -> None:
    moving = partition(1, 1, [2, 1], [1], 1, addingReplicas=[2], removingReplicas=[1])
    session = cluster(tmp_path, broker(1), broker(2), topic(1, "t"), partition(1, 0, [1], [1], 1), moving)
    assert said(session, "why t") == (
        "The topic t has 2 partitions, all online; 1 is being reassigned, and not every replica is in sync: `why t-1`."
    )


def test_a_node_in_two_words_is_pointed_to_its_own_name(sample: Session) -> None:
    with pytest.raises(CommandError) as raised:
        run(sample, "why broker 3")
    assert raised.value.hint == "write `why broker-3` for the broker"
    assert run(sample, "why broker-3").exit_code == 0


@pytest.mark.parametrize(
    ("place", "text", "word", "about"),
    [
        ("/", "/image/cluster/brokers/3", "broker-3", "broker"),
        ("/", "image/cluster/brokers/3/", "broker-3", "broker"),
        ("/image/cluster", "controllers/3000", "controller-3000", "controller"),
        ("/image/cluster/brokers", "3", "broker-3", "broker"),
        ("/", "/image/topics/byName/orders", "orders", "topic"),
        ("/image/topics", "byName/orders/0", "orders-0", "partition"),
        ("/image/cluster/brokers", "broker-3", "broker-3", "broker"),
        ("/image/cluster/brokers", "controller-3000", "controller-3000", "controller"),
        ("/image/cluster/controllers", "broker-3", "broker-3", "broker"),
        ("/image/cluster/brokers", "orders-0", "orders-0", "partition"),
    ],
)
def test_a_path_is_what_it_names_and_a_name_is_the_same_everywhere(
    sample: Session, place: str, text: str, word: str, about: str
) -> None:
    told = sections(sample, f"why {word}")
    assert about in told
    run(sample, f"cd {place}")
    assert sections(sample, f"why {text}") == told


def test_a_topic_goes_before_a_relative_path_of_a_broker(tmp_path: Path) -> None:
    session = cluster(tmp_path, broker(1), broker(2), topic(1, "1"), partition(1, 0, [1], [1], 1))
    run(session, "cd /image/cluster/brokers")
    assert sections(session, "why 1")["topic"]["topic"] == "1"
    assert sections(session, "why 2")["broker"]["broker"] == 2


def test_a_path_of_no_node_proposes_those_that_are_there(sample: Session) -> None:
    with pytest.raises(CommandError, match="no such broker") as raised:
        run(sample, "why /image/cluster/brokers/77")
    assert raised.value.hint == "registered: broker-1, broker-2, broker-3"


def test_a_topic_that_has_no_partition_yet_is_not_proposed_in_place_of_itself(sample: Session) -> None:
    with pytest.raises(CommandError, match="legacy-import has no partition, at offset 95 or before") as raised:
        run(sample, "why legacy-import-0 --as-of 95")
    assert raised.value.hint == "`why legacy-import` shows the story of the topic"
    assert run(sample, "why legacy-import --as-of 95").exit_code == 0
