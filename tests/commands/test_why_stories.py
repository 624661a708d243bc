"""why of a broker, a controller and a topic as a whole: only what records say, and all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kshell.engine.completion import complete
from kshell.engine.session import Session
from kshell.errors import CommandError, SourceError
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.builders import (
    FIXTURES,
    batch,
    control,
    control_batch,
    leader_change,
    node_name,
    recorded,
    uuid,
    value,
    write_log,
)
from tests.commands.cluster import broker
from tests.commands.shell import lines, opened, rows, sections
from tests.server import Quorum, settings
from tests.sources.test_brokers import BODIES

LOST = FIXTURES / "4.3.1-lost" / "controller-3000"


@pytest.fixture
def lost() -> Session:
    return opened(LOST)


def events(session: Session, line: str) -> list[tuple[Any, ...]]:
    return [(row["offset"], row["event"], row["what"]) for row in sections(session, line)["events"]]


def said(session: Session, line: str) -> str:
    return str(sections(session, line)["answer"]["sentence"])


def made(directory: Path, *values: bytes) -> Session:
    """A log of one batch, from offset 1 on; the first record is a LeaderChange."""
    write_log(directory, control_batch([leader_change(3000, voters=[3000, 3001])]), batch(values, 1))
    return opened(directory)


def registration(epoch: int, incarnation: int, **more: Any) -> bytes:
    return value("REGISTER_BROKER", 4, brokerId=1, brokerEpoch=epoch, incarnationId=uuid(incarnation), **more)


def change(epoch: int, **more: Any) -> bytes:
    return value("BROKER_REGISTRATION_CHANGE", 3, brokerId=1, brokerEpoch=epoch, **more)


class TestBroker:
    def test_a_controlled_shutdown_and_a_new_process(self, lost: Session) -> None:
        assert events(lost, "why broker-1") == [
            (15, "broker-registered", "registered, fenced"),
            (18, "broker-unfenced", "unfenced"),
            (48, "broker-controlled-shutdown", "in controlled shutdown"),
            (56, "broker-fenced", "fenced, in its controlled shutdown"),
            (87, "broker-registered", "registered again, fenced, by a new process (another incarnation)"),
            (90, "broker-unfenced", "unfenced"),
        ]
        assert said(lost, "why broker-1").endswith("It has 5 replicas, 1 of them out of sync, and leads 3 partitions.")

    def test_one_that_was_killed_and_unregistered(self, lost: Session) -> None:
        assert events(lost, "why broker-2")[2] == (71, "broker-fenced", "fenced, without a controlled shutdown")
        assert said(lost, "why broker-2") == (
            "Broker 2 is not registered since 2026-11-21T19:55:45.436Z (offset 77): it was fenced at offset 71"
            " (2026-11-21T19:55:42.886Z) and unregistered at offset 77 (2026-11-21T19:55:45.436Z). No record says what"
            " became of its process. It has 2 replicas, 2 of them out of sync, and leads 0 partitions. 1 partition"
            " without a leader has it in the ISR or ELR."
        )
        assert sections(lost, "why broker-2")["state"]["status"] == "not registered"

    def test_points(self, lost: Session) -> None:
        assert [offset for offset, _, _ in events(lost, "why broker-2 --since 71")] == [71, 77]
        assert said(lost, "why broker-2 --until 75").startswith(
            "Broker 2 is fenced since 2026-11-21T19:55:42.886Z (offset 71), without a controlled shutdown. No record"
        )

    def test_log_directories_and_what_a_registration_changes(self, tmp_path: Path) -> None:
        point = {"name": "A", "host": "h", "port": 1, "securityProtocol": 0}
        session = made(
            tmp_path,
            registration(1, 1, fenced=False, logDirs=[uuid(8), uuid(9)], endPoints=[point]),
            change(1, logDirs=[uuid(8)]),
            change(1, cordonedLogDirs=[uuid(8)]),
            change(1, cordonedLogDirs=[], fenced=1),
            registration(5, 1, rack="r", logDirs=[uuid(8)], endPoints=[{**point, "port": 2}]),
        )
        assert events(session, "why broker-1") == [
            (1, "broker-registered", "registered, unfenced"),
            (2, "broker-directory-lost", f"lost log directory {uuid(9)}"),
            (3, "broker-directory-cordoned", f"cordoned log directory {uuid(8)}"),
            (4, "broker-directory-uncordoned",
             f"uncordoned log directory {uuid(8)}, fenced, without a controlled shutdown"),
            (5, "broker-registered",
             "registered again, fenced, by the same process, rack r, before none, listeners A://h:2, before A://h:1"),
        ]  # fmt: skip
        assert "It has no replica." in said(session, "why broker-1")
        assert "1 log directory of it cordoned" in said(session, "why broker-1 --until 3")

    def test_a_first_registration_is_not_called_another_one(self, tmp_path: Path) -> None:
        partition = value(
            "PARTITION", 2, partitionId=0, topicId=uuid(7), replicas=[1], isr=[1], leader=-1, leaderEpoch=1,
            partitionEpoch=1, directories=[uuid(9)],
        )  # fmt: skip
        session = made(tmp_path, value("TOPIC", name="t", topicId=uuid(7)), registration(1, 1, fenced=True), partition)
        assert "broker 1, which was registered, fenced, at offset 2 (" in said(session, "why t-0")

    @pytest.mark.parametrize("node", recorded(log_from_zero=True)[::4], ids=node_name)
    def test_agrees_with_the_table_at_every_offset(self, node: Path) -> None:
        session = opened(node)
        session.travels()
        last = (session.loaded.log_end_offset or 0) - 1
        known: dict[int, str] = {}
        stories: dict[int, list[dict[str, Any]]] = {}
        for offset in range(0, last + 1, 3):
            then = session.reshape(point=str(offset))
            if then.loaded.open_transaction is not None:
                continue
            there = {row["id"]: row for row in rows(then, "brokers")}
            for node_id in {*known, *there}:
                if node_id not in stories:
                    stories[node_id] = sections(session, f"why broker-{node_id}")["events"]
                status = [row["status"] for row in stories[node_id] if row["offset"] <= offset][-1]
                known[node_id] = status
                row = there.get(node_id)
                expected = (
                    "not registered" if row is None else "fenced" if row["fenced"]
                    else "in controlled shutdown" if row["inControlledShutdown"] else "unfenced"
                )  # fmt: skip
                assert status == expected, (offset, node_id)
        assert known

    def test_a_log_that_begins_with_a_snapshot(self, cut_sample: Session) -> None:
        assert events(cut_sample, "why broker-3") == [
            (158, "snapshot", "as a snapshot has it: unfenced"),
            (201, "broker-fenced", "fenced, without a controlled shutdown"),
        ]

    @pytest.mark.parametrize(("word", "hint"), [("broker-9", "broker-1, broker-2"), ("controller-1", "controller-30")])
    def test_one_that_is_not_there(self, sample: Session, word: str, hint: str) -> None:
        with pytest.raises(CommandError, match="now or in the log") as raised:
            sections(sample, f"why {word}")
        assert hint in (raised.value.hint or "")

    def test_one_in_controlled_shutdown_has_a_next_step(self, tmp_path: Path) -> None:
        stopping = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=1, brokerEpoch=1, inControlledShutdown=1)
        write_log(tmp_path, batch([broker(1), stopping]))
        session = opened(tmp_path)
        step = sections(session, "why broker-1")["answer"]["nextStep"]
        assert step.startswith("wait until its process has ended, and start it again")


class TestController:
    def test_registered_active_and_a_voter(self, lost: Session) -> None:
        assert said(lost, "why controller-3000") == (
            "Controller 3000 is the active controller since 2026-11-21T19:55:29.442Z (offset 0). It is the only voter."
            " It is registered since 2026-11-21T19:55:30.341Z (offset 12)."
        )

    def test_one_that_lost_the_lead_and_its_vote(self, tmp_path: Path) -> None:
        def voters(*ids: int) -> Any:
            return control(6, voters=[{"voterId": node, "voterDirectoryId": uuid(node)} for node in ids])

        register = value("REGISTER_CONTROLLER", controllerId=3000, incarnationId=uuid(1), zkMigrationReady=False)
        again = value("REGISTER_CONTROLLER", controllerId=3000, incarnationId=uuid(2), zkMigrationReady=False)
        write_log(
            tmp_path,
            control_batch([leader_change(3000), voters(3000, 3001)], 0, 1),
            batch([register, again], 2, 1),
            control_batch([leader_change(3000)], 4, 2),
            control_batch([leader_change(3001), voters(3001)], 5, 3),
            batch([value("UNREGISTER_CONTROLLER", controllerId=3000)], 7, 3),
        )
        session = opened(tmp_path)
        assert events(session, "why controller-3000") == [
            (0, "controller-active", "becomes the active controller"),
            (1, "voter-added", "becomes a voter"),
            (2, "controller-registered", "registered"),
            (3, "controller-registered", "registered again, by a new process (another incarnation)"),
            (4, "controller-active", "is the active controller in a new epoch"),
            (5, "controller-inactive", "no longer active: controller 3001 is"),
            (6, "voter-removed", "is no voter any more"),
            (7, "controller-unregistered", "unregistered"),
        ]
        epochs = [row["epoch"] for row in sections(session, "why controller-3000")["events"]]
        assert epochs == [1, None, None, None, 2, 3, None, None]
        sentence = said(session, "why controller-3000")
        assert "is not active: controller 3001 is, since" in sentence
        assert "It is no voter. It is unregistered since" in sentence

    def test_one_that_has_not_registered_is_away(self, tmp_path: Path) -> None:
        level = value("FEATURE_LEVEL", name="metadata.version", featureLevel=27)
        sentence = said(made(tmp_path, level), "why controller-3001")
        assert "It is not registered, as controllers are from metadata.version 3.7 on: it has not run" in sentence

    def test_releases_that_register_no_controllers(self, tmp_path: Path) -> None:
        session = made(tmp_path, value("NO_OP"))
        assert "controllers register from metadata.version 3.7 on" in said(session, "why controller-3001")
        assert said(session, "why controller-3001").startswith("Controller 3001 is not active: controller 3000 is,")


class TestTopic:
    def test_its_events_and_partitions(self, sample: Session) -> None:
        assert events(sample, "why orders") == [
            (24, "created", "created with 6 partitions"),
            (25, "config-set", "min.insync.replicas = 2"),
            (26, "config-set", "retention.ms = 604800000"),
            (156, "partitions-added", "2 partitions added, numbers 6 to 7: now 8"),
            (158, "config-changed", "retention.ms 604800000 -> 1209600000"),
        ]
        partitions = sections(sample, "why orders")["partitions"]
        table = rows(sample, "partitions --where 'topic == orders'")
        assert [(row["partition"], row["state"], row["leader"], row["isr"]) for row in partitions] == [
            (row["partition"], row["state"], row["leader"], row["isr"]) for row in table
        ]
        assert "8 of 8 partitions are under-replicated, the first of them since" in said(sample, "why orders")

    def test_what_happened_to_its_partitions(self, lost: Session) -> None:
        shown = sections(lost, "why retries")["events"]
        assert [(row["offset"], row["event"], row["partition"]) for row in shown] == [
            (37, "created", None), (69, "leader-lost", 0), (102, "unclean-election", 0),
        ]  # fmt: skip
        assert said(lost, "why orders-eu") == (
            "1 of 3 partitions is offline since 2026-11-21T19:55:42.886Z (offset 70): `why orders-eu-0`. The other 2"
            " partitions are online."
        )

    def test_deleted_and_created_again_each_with_its_own_configs(self, tmp_path: Path) -> None:
        def config(text: str | None) -> bytes:
            return value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=text)

        first, second = (value("TOPIC", name="t", topicId=uuid(number)) for number in (1, 2))
        removed = value("REMOVE_TOPIC", topicId=uuid(1))
        own = [config(text) for text in ("1", "2", None, "3")]
        session = made(tmp_path, first, *own, removed, second, config("4"))
        assert events(session, "why t --until 6") == [
            (1, "created", "created with 0 partitions"),
            (2, "config-set", "retention.ms = 1"),
            (3, "config-changed", "retention.ms 1 -> 2"),
            (4, "config-removed", "retention.ms removed, was 2"),
            (5, "config-set", "retention.ms = 3"),
            (6, "deleted", "the topic is deleted"),
        ]
        assert said(session, "why t --until 6").startswith("The topic t was deleted at offset 6")
        assert [what for _, _, what in events(session, "why t")] == ["created with 0 partitions", "retention.ms = 4"]
        assert "a topic of the same name was there before" in sections(session, "why t")["answer"]["history"]

    def test_created_a_third_time(self, tmp_path: Path) -> None:
        lives = [value("TOPIC", name="t", topicId=uuid(number)) for number in (1, 2, 3)]
        ends = [value("REMOVE_TOPIC", topicId=uuid(number)) for number in (1, 2)]
        session = made(tmp_path, lives[0], ends[0], lives[1], ends[1], lives[2])
        history = sections(session, "why t")["answer"]["history"]
        assert history.endswith("; 2 topics of the same name were there before, and deleted: `log` has them")

    def test_a_secret_stays_one(self, tmp_path: Path) -> None:
        secret = value("CONFIG", resourceType=2, resourceName="t", name="made.up.password", value="hunter2")
        session = made(tmp_path, value("TOPIC", name="t", topicId=uuid(1)), secret)
        assert events(session, "why t")[1][2] == "made.up.password = [redacted]"

    def test_a_partition_of_a_topic_called_broker(self, tmp_path: Path) -> None:
        partition = value("PARTITION", topicId=uuid(1), partitionId=1, replicas=[1], isr=[1], leader=1)
        session = made(tmp_path, registration(1, 1), value("TOPIC", name="broker", topicId=uuid(1)), partition)
        assert "broker" in sections(session, "why broker-1")
        assert sections(session, "why broker/1")["partition"]["topic"] == "broker"


def test_words_are_completed(sample: Session) -> None:
    sample.image  # noqa: B018  # loads
    assert [one.text.strip() for one in complete(sample, "why broker-").candidates] == [
        "broker-1",
        "broker-2",
        "broker-3",
    ]
    assert "orders" in [one.text.strip() for one in complete(sample, "why ord").candidates]
    paths = complete(sample, "why /image/topics/byName/orders/").candidates
    assert [one.text for one in paths][:2] == ["0", "1"]


@pytest.mark.parametrize("word", ["broker-3", "controller-3001", "orders"])
def test_fits_80_columns(sample: Session, word: str) -> None:
    assert max(map(len, lines(sample, f"why {word}", width=80))) <= 80


def test_brokers_tell_the_present() -> None:
    with Quorum(brokers=1) as quorum:
        quorum.bodies.update(BODIES)
        session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
        node = min(row["id"] for row in rows(session, "brokers"))
        told = sections(session, f"why broker-{node}")
        assert [(row["offset"], row["event"]) for row in told["events"]] == [(None, "state")]
        assert "(since when is not known)" in told["answer"]["sentence"]
        topic = sections(session, "why orders")
        assert (topic["events"], len(topic["partitions"])) == (
            [],
            len(rows(session, "partitions --where 'topic == orders'")),
        )
        assert "without a leader" in told["answer"]["sentence"] or "replica" in told["answer"]["sentence"]
        with pytest.raises(CommandError):
            sections(session, "why controller-3000")
        with pytest.raises(SourceError, match="not the metadata log"):
            rows(session, "when brokers --where fenced")


def test_a_quorum_tells_it_as_it_happens() -> None:
    with Quorum(controllers=1) as quorum:
        quorum.append(broker(1))
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
        assert said(session, "why broker-1").startswith("Broker 1 is unfenced since")
        assert rows(session, "when brokers --where fenced") == []
        quorum.append(value("FENCE_BROKER", id=1, epoch=1))
        quorum.commit()
        assert session.refresh()
        assert said(session, "why broker-1").startswith("Broker 1 is fenced since")
        (stretch,) = rows(session, "when brokers --where fenced")
        assert (stretch["toOffset"], stretch["rows"]) == (None, 1)


@pytest.mark.parametrize(
    ("unclean", "waits"),
    [
        ("false", "hold all committed records (ISR): the partition waits for it."),
        ("true", "(ISR), but unclean.leader.election.enable is true: the partition does not wait for it."),
    ],
)
def test_a_partition_that_may_elect_uncleanly_waits_for_nobody(tmp_path: Path, unclean: str, waits: str) -> None:
    """The sentence must not contradict the next step, which says that Kafka soon elects another replica."""
    other = value("REGISTER_BROKER", 4, brokerId=2, brokerEpoch=2, incarnationId=uuid(2), fenced=False)
    leaderless = {"topicId": uuid(5), "replicas": [1, 2], "isr": [1], "leader": -1}
    session = made(
        tmp_path,
        value("FEATURE_LEVEL", 0, name="metadata.version", featureLevel=25),
        registration(1, 1),
        other,
        value("TOPIC", 0, name="t", topicId=uuid(5)),
        value("CONFIG", 0, resourceType=2, resourceName="t", name="unclean.leader.election.enable", value=unclean),
        value("PARTITION", 0, partitionId=0, **leaderless),
    )
    assert waits in said(session, "why t-0")


def test_a_topic_that_is_called_like_a_node(tmp_path: Path) -> None:
    """The commands that are proposed lead to the topic's partitions, not to the story of a broker."""
    here = {"replicas": [1, 2], "isr": [1], "leader": 1}
    topics = [value("TOPIC", 0, name=name, topicId=uuid(5 + n)) for n, name in enumerate(("broker", "controller-7"))]
    session = made(tmp_path, registration(1, 1), *topics, value("PARTITION", 0, partitionId=0, topicId=uuid(5), **here))
    assert "under-replicated" in said(session, "why broker") and "`why broker/0`" in said(session, "why broker")
    assert sections(session, "why broker/0")["partition"]["topic"] == "broker"
    with pytest.raises(CommandError, match="no such controller") as raised:
        said(session, "why controller-7")
    assert raised.value.hint == "registered: none; the topic of that name: `why /image/topics/byName/controller-7`"
    with pytest.raises(CommandError, match="no such broker") as raised:
        said(session, "why broker-0")
    assert raised.value.hint == "registered: broker-1; the partition: `why broker/0`"
