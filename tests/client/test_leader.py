"""Who leads: found by asking, in each release's way."""

from __future__ import annotations

import threading
import time
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

import kshell.client.leader as leader_module
from kshell.client.address import addresses
from kshell.client.leader import Fetched, find_leader
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.errors import (
    AuthorizationError,
    ConnectError,
    LeaderNotListedError,
    NoLeaderError,
    ServerError,
    SourceTimeoutError,
)
from tests.server import Quorum, faults, settings

RELEASES = ["3.3", "3.5", "3.7", "3.9", "4.0", "4.3"]


def nodes_of(quorum: Quorum, *ids: int) -> Nodes:
    text = ",".join(quorum.node(one).address for one in ids) if ids else quorum.bootstrap
    return quorum.keep(Nodes(CONTROLLER, addresses(text), settings()))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("leader", [1, 2, 3])
@pytest.mark.parametrize("epochs", [0, 1])
def test_the_leader_is_found(release: str, leader: int, epochs: int) -> None:
    with Quorum(3, release=release) as quorum:
        quorum.elect(leader)
        for known in (0, quorum.epoch - epochs):
            found = find_leader(nodes_of(quorum), timeout=30, known_epoch=known)
            assert found == (leader, quorum.epoch, ("127.0.0.1", quorum.leader.port))


@pytest.mark.parametrize("release", ["3.7", "3.9", "4.3"])
def test_the_leader_need_not_be_in_the_list(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        quorum.elect(3)
        assert find_leader(nodes_of(quorum, 1), timeout=30).id == 3


def test_from_3_9_on_the_answer_tells_the_leaders_address() -> None:
    with Quorum(3, release="3.9") as quorum:
        for node in quorum.controllers:
            del node.ranges[60]
        quorum.elect(3)
        assert find_leader(nodes_of(quorum, 1), timeout=30).id == 3


@pytest.mark.parametrize("release", ["3.3", "3.6"])
def test_below_3_7_a_leader_outside_the_list_is_named(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        quorum.elect(3)
        with pytest.raises(ConnectError, match="controller 3 leads") as caught:
            find_leader(nodes_of(quorum, 1, 2), timeout=1)
        assert caught.value.hint == "name every controller in the list"


def test_below_3_7_a_leader_outside_the_list_is_waited_for_as_long_as_an_election_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Quorum(3, release="3.5") as quorum:
        quorum.elect(3)
        threading.Timer(0.5, quorum.elect, (2,)).start()
        assert find_leader(nodes_of(quorum, 1, 2), timeout=60).id == 2
        quorum.elect(3)
        monkeypatch.setattr(leader_module, "NEXT_ELECTION", 0.3)
        begin = time.monotonic()
        with pytest.raises(LeaderNotListedError) as caught:
            find_leader(nodes_of(quorum, 1, 2), timeout=60)
        assert 0.3 <= time.monotonic() - begin < 20
        asked = f"{quorum.node(1).address}, {quorum.node(2).address}"
        assert caught.value.message == (
            f"{asked}: controller 3 leads (epoch {quorum.epoch}), but none of these addresses is its own, and no"
            " controller says where it listens"
        )


def test_an_election_is_waited_for() -> None:
    with Quorum(3) as quorum:
        quorum.elect(None)
        threading.Timer(0.1, quorum.elect, (2,)).start()
        assert find_leader(nodes_of(quorum), timeout=5).id == 2


def test_an_election_that_does_not_end_ends_at_the_deadline() -> None:
    with Quorum(3) as quorum:
        quorum.elect(None)
        begin = time.monotonic()
        with pytest.raises(SourceTimeoutError, match="an election goes on"):
            find_leader(nodes_of(quorum), timeout=0.2)
        assert time.monotonic() - begin < 20


def test_most_voters_are_down() -> None:
    """Who is there says that nobody leads: that is the news, and not whichever address was tried last."""
    with Quorum(3) as quorum:
        nodes = nodes_of(quorum)
        quorum.elect(None)
        gone = [quorum.node(2), quorum.node(3)]
        for node in gone:
            node.stop()
        with pytest.raises(SourceTimeoutError, match="no controller leads the quorum") as caught:
            find_leader(nodes, timeout=1)
        assert all(node.address in caught.value.reason for node in gone)
        assert quorum.node(1).address not in caught.value.reason
        assert "do most voters run?" in (caught.value.hint or "")


def test_a_voter_that_goes_on_to_name_the_leader_it_has_lost() -> None:
    """As from Kafka 4.0 on: with most voters down there is no leader, whomever the rest names."""
    with Quorum(3) as quorum:
        nodes = nodes_of(quorum)
        quorum.elect(2)
        for number in (2, 3):
            quorum.node(number).stop()
        with pytest.raises(NoLeaderError, match="no controller leads the quorum"):
            find_leader(nodes, timeout=1)


def test_a_leader_that_cannot_be_reached_may_lead_all_the_same() -> None:
    with Quorum(3) as quorum:
        nodes = nodes_of(quorum)
        quorum.elect(2)
        quorum.node(2).stop()
        with pytest.raises(ConnectError) as caught:
            find_leader(nodes, timeout=1)
        assert not isinstance(caught.value, NoLeaderError) and caught.value.node == quorum.node(2).address


def test_a_node_that_missed_an_election_is_not_believed() -> None:
    """Or a quorum that was formatted again under the same cluster id: what it says cannot tell the two apart."""
    with Quorum(3) as quorum, pytest.raises(NoLeaderError) as raised:
        find_leader(nodes_of(quorum), timeout=1, known_epoch=quorum.epoch + 3)
    assert (
        f"is at epoch {quorum.epoch} or earlier, and epoch {quorum.epoch + 3} was seen before" in raised.value.message
    )
    assert "if the quorum was formatted again, start kshell again" in (raised.value.hint or "")


def test_where_most_do_not_answer_an_earlier_epoch_is_not_the_reason() -> None:
    with Quorum(3) as quorum:
        nodes = nodes_of(quorum)
        quorum.elect(2)
        for number in (2, 3):
            quorum.node(number).stop()
        with pytest.raises(NoLeaderError, match="an election goes on, and no answer comes from ") as raised:
            find_leader(nodes, timeout=1, known_epoch=quorum.epoch + 3)
    assert "do most voters run?" in (raised.value.hint or "")


@pytest.mark.parametrize("code", [7, 8, 5, 78])
def test_codes_that_may_pass_are_waited_for(code: int) -> None:
    for whole in (False, True):
        with Quorum(1) as quorum:
            quorum.on("Fetch", faults.error(code, whole=whole), times=3)
            assert find_leader(nodes_of(quorum), timeout=30).id == 1
            assert len(quorum.asked_for("Fetch")) > 3


def test_a_code_that_does_not_pass_is_raised_at_once() -> None:
    with Quorum(1) as quorum:
        quorum.on("Fetch", faults.error(31, whole=True))
        with pytest.raises(AuthorizationError):
            find_leader(nodes_of(quorum), timeout=5)
        quorum.well()
        quorum.on("Fetch", faults.error(-1))
        with pytest.raises(ServerError):
            find_leader(nodes_of(quorum), timeout=5)


def test_the_reason_is_kept_when_time_is_up() -> None:
    with Quorum(1) as quorum:
        quorum.on("Fetch", faults.error(8))
        with pytest.raises(ServerError, match="BROKER_NOT_AVAILABLE"):
            find_leader(nodes_of(quorum), timeout=1)


@pytest.mark.parametrize(
    ("release", "said"),
    [("3.3", "; time was up before all of these addresses were asked"), ("4.3", ", and did not confirm it in time")],
)
def test_a_leader_that_there_was_no_time_to_ask_is_not_said_to_be_elsewhere(
    monkeypatch: pytest.MonkeyPatch, release: str, said: str
) -> None:
    with Quorum(3, release=release) as quorum:
        quorum.elect(2)
        nodes = nodes_of(quorum)
        asked = leader_module.fetch

        def last(*arguments: Any, **options: Any) -> Fetched:
            answer = asked(*arguments, **options)
            monkeypatch.setattr(leader_module, "time", SimpleNamespace(monotonic=lambda: inf))  # the deadline passes
            return answer

        monkeypatch.setattr(leader_module, "fetch", last)
        with pytest.raises(SourceTimeoutError, match=rf"controller 2 is named as the leader \(epoch \d+\){said}"):
            find_leader(nodes, timeout=30, once=True)


@pytest.mark.parametrize("once", [True, False])
def test_a_leader_that_is_asked_and_stays_silent_is_named_with_its_address(once: bool) -> None:
    with Quorum(3, release="4.3") as quorum:
        quorum.elect(2)
        quorum.node(2).on("Fetch", faults.slow(4))
        with pytest.raises(SourceTimeoutError) as caught:
            find_leader(nodes_of(quorum, 1, 2), timeout=1.5, once=once)
        assert quorum.node(2).address in caught.value.node
