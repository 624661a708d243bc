"""loggers: log levels of one node, listed and, after asking, changed there."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import (
    AuthorizationError,
    CommandError,
    ConnectError,
    ServerError,
    SourceError,
    UnsupportedVersionError,
    UsageError,
)
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.commands.shell import lines, rows, run
from tests.commands.test_api_versions import registered
from tests.server import Quorum, faults, settings

LOGGER = 8
SET, DELETE = 0, 1


def live(quorum: Quorum) -> Session:
    """A session at the controllers, whose nodes have two loggers each."""
    for node in quorum.nodes:
        quorum.configs[LOGGER, str(node.id)] = [
            {"name": name, "value": "INFO", "readOnly": False, "configSource": 6, "synonyms": [], "documentation": None}
            for name in ("kafka.server.KafkaApis", "root")
        ]
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))


def answering(session: Session, answer: bool) -> list[str]:
    """Somebody at the terminal who always answers that; the questions."""
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return answer

    session.ask = ask
    return asked


def changes(quorum: Quorum) -> list[tuple[int, Any, Any, Any]]:
    """(node asked, resource type and name, configs) of every change that any node was told."""
    return [
        (asked.node_id, resource["resourceType"], resource["resourceName"], resource["configs"])
        for asked in quorum.asked_for("IncrementalAlterConfigs")
        for resource in asked.body["resources"]
    ]


class TestList:
    def test_the_node_itself_is_asked(self) -> None:
        """Not the leader, which is another one."""
        with Quorum(controllers=3) as quorum:
            found = rows(live(quorum), "loggers 2")
            assert found[0] == {
                "name": "root",
                "level": "INFO",
                "source": "DYNAMIC_BROKER_LOGGER_CONFIG",
                "isReadOnly": False,
            }
            assert [row["name"] for row in found] == ["root", "kafka.server.KafkaApis"]
            (asked,) = quorum.asked_for("DescribeConfigs")
            assert (asked.node_id, asked.body["resources"][0]["resourceName"]) == (2, "2")

    def test_rows_are_chosen(self) -> None:
        with Quorum(controllers=2) as quorum:
            session = live(quorum)
            assert rows(session, "loggers 2 --where 'name ~ Apis'") == rows(session, "loggers 2")[1:]
            assert lines(session, "loggers 2 --sort name --columns source,name --limit 1") == [
                "source                        name",
                "DYNAMIC_BROKER_LOGGER_CONFIG  kafka.server.KafkaApis",
            ]

    def test_a_change_has_no_rows_to_choose_from(self) -> None:
        with Quorum(controllers=2) as quorum:
            with pytest.raises(UsageError):
                run(live(quorum), "loggers 2 set root DEBUG --yes --limit 1")
            assert changes(quorum) == []

    def test_nothing_but_the_loggers_is_read(self) -> None:
        with Quorum(controllers=2) as quorum:
            session = live(quorum)
            rows(session, "loggers 2")
            assert not session.is_loaded
            assert quorum.asked_for("IncrementalAlterConfigs") == []

    def test_brokers_are_found_by_their_registrations(self) -> None:
        with Quorum(controllers=1, brokers=2) as quorum:
            quorum.append(*(registered(node.id, node.port) for node in quorum.brokers))
            assert len(rows(live(quorum), "loggers 102")) == 2
            assert quorum.asked_for("DescribeConfigs")[-1].node_id == 102

    def test_from_brokers(self) -> None:
        with Quorum(controllers=1, brokers=2) as quorum:
            live(quorum)
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            assert len(rows(session, "loggers 102")) == 2
            assert quorum.asked_for("DescribeConfigs")[-1].node_id == 102

    def test_where_ids_are_not_told_the_addresses_are_asked(self) -> None:
        """Who may describe configs and nothing else still gets there: the other nodes refuse."""
        with Quorum(controllers=3) as quorum:
            session = live(quorum)
            for api in ("DescribeCluster", "DescribeQuorum", "Fetch"):
                quorum.on(api, faults.error(31))
            for node in quorum.controllers[:2]:
                node.on("DescribeConfigs", faults.error(42, message="Unexpected broker id"))
            assert len(rows(session, "loggers 3")) == 2
            assert [asked.node_id for asked in quorum.asked_for("DescribeConfigs")] == [1, 2, 3]
            quorum.node(3).on("DescribeConfigs", faults.error(42, message="Unexpected broker id"))
            with pytest.raises(ServerError):
                run(session, "loggers 3")

    def test_an_address_where_nobody_is_may_have_been_the_node(self) -> None:
        """The others are asked all the same; if all of them refuse, that one could not be asked."""
        with Quorum(controllers=3) as quorum:
            session = live(quorum)
            for api in ("DescribeCluster", "DescribeQuorum", "Fetch"):
                quorum.on(api, faults.error(31))
            quorum.node(1).stop()
            quorum.node(2).on("DescribeConfigs", faults.error(42, message="Unexpected broker id"))
            assert len(rows(session, "loggers 3")) == 2
            quorum.node(3).on("DescribeConfigs", faults.error(42, message="Unexpected broker id"))
            with pytest.raises(ConnectError):
                run(session, "loggers 1")

    def test_an_id_that_nobody_has(self) -> None:
        with Quorum(controllers=2) as quorum, pytest.raises(ConnectError) as raised:
            run(live(quorum), "loggers 7")
        assert raised.value.hint == "known: controller 1, controller 2"

    def test_controllers_below_3_7_cannot(self) -> None:
        with Quorum(controllers=1, release="3.6") as quorum, pytest.raises(UnsupportedVersionError) as raised:
            run(live(quorum), "loggers 1")
        assert raised.value.exit_code == 3


class TestSet:
    def test_before_and_after_are_what_the_node_says(self) -> None:
        with Quorum(controllers=3) as quorum:
            session = live(quorum)
            assert rows(session, "loggers 2 set kafka.server.KafkaApis debug --yes") == [
                {"node": 2, "name": "kafka.server.KafkaApis", "before": "INFO", "after": "DEBUG"}
            ]
            change = {"name": "kafka.server.KafkaApis", "configOperation": SET, "value": "DEBUG"}
            assert changes(quorum) == [(2, LOGGER, "2", [change])]
            assert session.notes() == ["controller 2 keeps this level until it restarts: the change is not stored"]

    def test_a_node_that_only_says_that_it_did_is_not_believed(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            quorum.bodies["IncrementalAlterConfigs"] = {
                "responses": [{"errorCode": 0, "errorMessage": None, "resourceType": LOGGER, "resourceName": "1"}]
            }
            assert rows(session, "loggers 1 set root DEBUG --yes")[0]["after"] == "INFO"

    def test_it_asks_first(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            asked = answering(session, True)
            assert rows(session, "loggers 1 set root WARN")[0]["after"] == "WARN"
            where = quorum.controllers[0].address
            assert asked == [f"Change root at controller 1 ({where}) from INFO to WARN, until the node restarts?"]

    def test_no_means_no(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            answering(session, False)
            with pytest.raises(CommandError, match="nothing was changed"):
                run(session, "loggers 1 set root WARN")
            assert changes(quorum) == []

    def test_yes_is_not_asked(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            asked = answering(session, False)
            rows(session, "loggers 1 set root WARN --yes")
            assert asked == []

    @pytest.mark.parametrize("line", ["loggers 1 set root WARN", "loggers 1 unset kafka.server.KafkaApis"])
    def test_without_a_terminal_it_is_refused(self, line: str) -> None:
        with Quorum() as quorum:
            with pytest.raises(UsageError) as raised:
                run(live(quorum), line)
            assert (raised.value.exit_code, quorum.asked) == (2, [])
            assert raised.value.hint is not None and "--yes" in raised.value.hint

    def test_a_session_for_one_answer_asks_the_same_person(self, sample: Session) -> None:
        answering(sample, True)
        assert sample.reshape(show_secrets=True).ask is sample.ask

    def test_unset_takes_back(self) -> None:
        with Quorum() as quorum:
            rows(live(quorum), "loggers 1 unset kafka.server.KafkaApis -y")
            change = {"name": "kafka.server.KafkaApis", "configOperation": DELETE, "value": None}
            assert changes(quorum) == [(1, LOGGER, "1", [change])]

    def test_a_logger_that_is_not_there(self) -> None:
        with Quorum() as quorum:
            with pytest.raises(CommandError) as raised:
                run(live(quorum), "loggers 1 set kafka.server.KafkaApi DEBUG --yes")
            assert raised.value.hint == "did you mean kafka.server.KafkaApis?"
            assert changes(quorum) == []

    def test_denied_names_the_acls(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            quorum.on("IncrementalAlterConfigs", faults.error(31))
            with pytest.raises(AuthorizationError) as raised:
                run(session, "loggers 1 set root DEBUG --yes")
            assert raised.value.hint is not None
            assert "ALTER_CONFIGS on CLUSTER:kafka-cluster at a broker" in raised.value.hint
            assert "CLUSTER_ACTION on CLUSTER:kafka-cluster at a controller" in raised.value.hint

    def test_what_a_node_calls_a_level_is_harmless_on_a_terminal(self) -> None:
        with Quorum() as quorum:
            session = live(quorum)
            quorum.configs[LOGGER, "1"][1]["value"] = "\x1b[2J"
            printed = lines(session, "loggers 1")
            assert "\x1b" not in "".join(printed)
            assert "\\x1b[2J" in printed[1]


@pytest.mark.parametrize(
    "line",
    [
        "loggers one",
        "loggers -1",
        "loggers 1 list",
        "loggers 1 set",
        "loggers 1 set root",
        "loggers 1 set root OFF --yes",
        "loggers 1 set root LOUD --yes",
        "loggers 1 unset root --yes",
        "loggers 1 unset kafka.server INFO --yes",
    ],
)
def test_a_line_that_makes_no_sense_asks_nobody(line: str) -> None:
    with Quorum() as quorum:
        with pytest.raises(UsageError):
            run(live(quorum), line)
        assert quorum.asked == []


def test_a_directory_runs_no_nodes(sample: Session) -> None:
    with pytest.raises(SourceError):
        run(sample, "loggers 1 set root INFO --yes")
