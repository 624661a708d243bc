"""api-versions: every node asked itself, and what all of them share (KIP-35)."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.client.compatibility import shared
from kshell.commands.api_versions import _row
from kshell.engine.session import Session
from kshell.errors import ConnectError, NodeError, SourceError, UsageError
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.commands.shell import lines, rows, run
from tests.server import Quorum, faults, settings
from tests.server.faults import Fault

FETCH, DESCRIBE_QUORUM = 1, 55


def live(quorum: Quorum) -> Session:
    """A session at the controllers."""
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))


def registered(node_id: int, port: int, protocol: int = 0) -> bytes:
    """A broker's registration."""
    point = {"name": "B", "host": "127.0.0.1", "port": port, "securityProtocol": protocol}
    return builders.value(
        "REGISTER_BROKER", brokerId=node_id, incarnationId=builders.uuid(1), brokerEpoch=1, endPoints=[point],
        features=[], rack=None, fenced=False,
    )  # fmt: skip


def test_shared_is_the_highest_minimum_to_the_lowest_maximum() -> None:
    with Quorum(controllers=3) as quorum:
        for node, span in zip(quorum.controllers, [(4, 18), (5, 17), (0, 20)], strict=True):
            node.ranges[FETCH] = span
        row = {row["apiKey"]: row for row in rows(live(quorum), "api-versions")}[FETCH]
        assert row == {
            "apiKey": 1,
            "apiName": "Fetch",
            "minVersion": 5,
            "maxVersion": 17,
            "nodes": {"1": {"min": 4, "max": 18}, "2": {"min": 5, "max": 17}, "3": {"min": 0, "max": 20}},
        }


def test_nothing_shared_is_null() -> None:
    with Quorum(controllers=2) as quorum:
        quorum.controllers[0].ranges[FETCH] = (13, 14)
        quorum.controllers[1].ranges[FETCH] = (15, 18)
        quorum.controllers[1].ranges[4711] = (0, 3)
        found = {row["apiKey"]: row for row in rows(live(quorum), "api-versions")}
        assert (found[FETCH]["minVersion"], found[FETCH]["maxVersion"]) == (None, None)
        assert (found[4711]["apiName"], found[4711]["minVersion"]) == ("api 4711", None)
        assert found[4711]["nodes"] == {"2": {"min": 0, "max": 3}}


@given(st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_rows_say_what_every_node_takes(spans: dict[str, tuple[int, int]]) -> None:
    """A version is in the shared range if and only if it is in every node's own."""
    ranges = {node: {FETCH: (low, low + more)} for node, (low, more) in spans.items()}
    row = _row(FETCH, shared(ranges)[FETCH], ranges)
    for version in range(30):
        every = all(span["min"] <= version <= span["max"] for span in row["nodes"].values())
        assert every == (row["minVersion"] is not None and row["minVersion"] <= version <= row["maxVersion"])


def test_text_has_a_column_for_nodes_that_agree_and_marks_the_others() -> None:
    with Quorum(controllers=3) as quorum:
        quorum.controllers[2].ranges[FETCH] = (4, 17)
        printed = lines(live(quorum), "api-versions")
        assert printed[0].split() == ["apiKey", "apiName", "shared", "1,2", "3"]
        assert printed[1].split() == ["1", "Fetch", "4-17", "4-18", "*", "4-17"]
        assert "*" not in "".join(printed[2:])


def test_rows_are_chosen_for_programs_and_for_people() -> None:
    with Quorum(controllers=3) as quorum:
        quorum.controllers[2].ranges[FETCH] = (4, 17)
        session = live(quorum)
        line = "api-versions --where 'nodes.3.max == 17 and apiName == Fetch'"
        assert [row["apiKey"] for row in rows(session, line)] == [FETCH]
        assert [one.split() for one in lines(session, line)] == [
            ["apiKey", "apiName", "shared", "1,2", "3"],
            ["1", "Fetch", "4-17", "4-18", "*", "4-17"],
        ]
        assert lines(session, f"{line} --columns maxVersion,apiName") == ["maxVersion  apiName", "        17  Fetch"]
        keys = [row["apiKey"] for row in rows(session, "api-versions --sort -apiKey --limit 3")]
        assert keys == sorted(keys, reverse=True)
        assert [one.split()[0] for one in lines(session, "api-versions --sort -apiKey --limit 3")[1:]] == [
            *map(str, keys)
        ]


def test_every_node_is_asked_over_a_connection_of_its_own_at_the_same_time() -> None:
    """The answers come only once all nodes have been asked."""
    together = threading.Barrier(3, timeout=5)

    with Quorum(controllers=3) as quorum:
        session = live(quorum)
        assert quorum.keep(session.source)
        assert session.source.nodes is not None
        session.source.nodes.any()
        before = [node.connections for node in quorum.nodes]

        def meet(reply: faults.Reply) -> None:
            together.wait()

        quorum.on("ApiVersions", meet)
        assert rows(session, "api-versions")
        assert [node.connections - old for node, old in zip(quorum.nodes, before, strict=True)] == [1, 1, 1]


def test_nobody_logs_in_for_it() -> None:
    """ApiVersions comes before SASL: a node that would refuse the login tells its versions all the same."""
    with Quorum(controllers=2, users={"ann": "secret"}) as quorum:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
            ' username="ann" password="secret";',
        }
        properties = {name.replace(".", "_"): text for name, text in login.items()}
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(**properties))))
        assert {len(row["nodes"]) for row in rows(session, "api-versions")} == {2}
        assert len(quorum.asked_for("SaslHandshake")) == 1  # of the one connection that asks who is there


class TestWhoIsThere:
    def test_a_node_that_does_not_answer_is_named(self) -> None:
        with Quorum(controllers=3) as quorum:
            quorum.node(3).stop()
            session = live(quorum)
            assert list(rows(session, "api-versions")[0]["nodes"]) == ["1", "2"]
            assert [note for note in session.notes() if note.startswith("controller 3 was not asked")]

    def test_the_one_that_is_asked_for_does_not_answer(self) -> None:
        with Quorum(controllers=2) as quorum:
            quorum.node(2).stop()
            with pytest.raises(ConnectError) as raised:
                run(live(quorum), "api-versions --node 2")
            assert raised.value.exit_code == 3
            assert raised.value.node == quorum.node(2).address

    @pytest.mark.parametrize("fault", [faults.hang_up, faults.error(42), faults.raw(b"\0\0\0\1?")])
    def test_nobody_answers(self, fault: Fault) -> None:
        with Quorum(controllers=2) as quorum:
            session = live(quorum)
            assert session.source.nodes is not None
            session.source.nodes.any()
            quorum.on("ApiVersions", fault)
            with pytest.raises(NodeError) as raised:
                run(session, "api-versions")
            assert all(node.address in raised.value.message for node in quorum.nodes)

    def test_one_node(self) -> None:
        with Quorum(controllers=3) as quorum:
            quorum.node(2).ranges[FETCH] = (13, 14)
            found = rows(live(quorum), "api-versions --node 2")
            assert {tuple(row["nodes"]) for row in found} == {("2",)}
            assert (found[0]["minVersion"], found[0]["maxVersion"]) == (13, 14)

    def test_an_id_that_nobody_has(self) -> None:
        with Quorum(controllers=2, brokers=1) as quorum:
            quorum.append(registered(101, quorum.brokers[0].port))
            with pytest.raises(ConnectError) as raised:
                run(live(quorum), "api-versions --node 7")
            assert raised.value.hint == "known: broker 101, controller 1, controller 2"

    def test_below_3_7_addresses_are_names(self) -> None:
        with Quorum(controllers=2, release="3.3") as quorum:
            found = rows(live(quorum), "api-versions")
            assert list(found[0]["nodes"]) == [node.address for node in quorum.controllers]

    def test_who_may_not_describe_the_cluster_has_the_quorums_endpoints(self) -> None:
        with Quorum(controllers=3) as quorum:
            quorum.on("DescribeCluster", faults.error(31))
            found = rows(live(quorum), "api-versions")
            assert list(found[0]["nodes"]) == ["1", "2", "3"]

    def test_brokers(self) -> None:
        with Quorum(controllers=1, brokers=2) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            assert list(rows(session, "api-versions")[0]["nodes"]) == ["101", "102"]
            assert {node for row in rows(session, "api-versions --all") for node in row["nodes"]} == {"101", "102", "1"}

    def test_all_from_controllers_takes_registrations(self) -> None:
        with Quorum(controllers=1, brokers=3) as quorum:
            one, two, other = quorum.brokers
            quorum.append(registered(101, one.port), registered(102, two.port), registered(103, other.port, 1))
            session = live(quorum)
            found = rows(session, "api-versions --all")
            assert {node for row in found for node in row["nodes"]} == {"1", "101", "102"}
            note = "broker 103 was not asked: it has no listener with PLAINTEXT"
            assert note in session.notes()
            rows(session, "api-versions")
            assert note not in session.notes()

    def test_a_node_that_is_both_has_two_names(self) -> None:
        with Quorum(controllers=1, brokers=1) as quorum:
            quorum.append(registered(1, quorum.brokers[0].port))
            found = {row["apiKey"]: row["nodes"] for row in rows(live(quorum), "api-versions --all")}
            assert list(found[0]) == ["broker-1"]
            assert list(found[DESCRIBE_QUORUM]) == ["controller-1", "broker-1"]


def test_a_directory_runs_no_nodes(sample: Session) -> None:
    with pytest.raises(SourceError) as raised:
        run(sample, "api-versions")
    assert raised.value.exit_code == 3
    assert raised.value.hint is not None and "-q or -b" in raised.value.hint


def test_one_node_or_all_of_them(sample: Session) -> None:
    with pytest.raises(UsageError):
        run(sample, "api-versions --node 1 --all")
