"""The observer: snapshots in pieces, epochs, truncation; what is committed is given once and in order, nothing else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import settings as search
from hypothesis import strategies as st

from kshell.client.address import addresses
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.errors import CorruptDataError, ProtocolError, ServerError
from kshell.protocol.batches import Batch
from kshell.sources.quorum.observer import FetchStep, Observer
from tests.builders import uuid, value
from tests.server import Quorum, faults, settings

RELEASES = ["3.3", "3.7", "3.9", "4.0", "4.3"]


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(3) as made:
        yield made


LONG = int(os.environ.get("KSHELL_SOAK_COUNT", "200"))
"""How long a soak is: CI takes a reduced count."""


def observer_of(quorum: Quorum, **properties: str) -> Observer:
    nodes = quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings(**properties)))
    return quorum.keep(Observer(nodes))


def topic(number: int, size: int = 0) -> bytes:
    return value("TOPIC", name=f"topic-{number}" + "x" * size, topicId=uuid(number))


def raw(given_: Batch) -> bytes:
    return bytes(given_.buf[given_.position : given_.end])


class Seen:
    """What an observer gave, put together."""

    def __init__(self, observer: Observer, quorum: Quorum) -> None:
        self.observer = observer
        self.quorum = quorum
        self.batches: list[Batch] = []
        self.lost: list[str] = []
        self.snapshots: list[tuple[int | None, int | None]] = []
        self.position = 0
        """The offset after what was given last."""

    def step(self, wait: float = 0.0) -> FetchStep:
        """One question; what it gives must follow what was given."""
        step = self.observer.step(wait)
        if step.lost is not None:
            self.lost.append(step.lost)
            self.batches, self.position = [], 0
        if step.snapshot is not None:
            self.snapshots.append((step.snapshot.end_offset, step.snapshot.epoch))
            assert step.snapshot.end_offset is not None
            assert step.snapshot.data is not None
            assert bytes(step.snapshot.data[:]) in self.quorum.log.snapshots.values()
            self.batches, self.position = [], step.snapshot.end_offset
        for one in step.batches:
            assert one.base_offset == self.position, "repeated, or left out"
            assert one.last_offset < self.quorum.log.high_watermark, "not committed"
            self.batches.append(one)
            self.position = one.last_offset + 1
        assert self.position == self.observer.committed
        return step

    def to_the_end(self, seconds: float = 5.0) -> None:
        """Until all is here that is committed; it must be what the log holds."""
        until = time.monotonic() + seconds
        while self.position < self.quorum.log.high_watermark:
            assert time.monotonic() < until, f"stuck at {self.position}: {self.observer.trouble}"
            self.step()
        entries = [entry for entry in self.quorum.log.entries if entry.end <= self.quorum.log.high_watermark]
        first = self.batches[0].base_offset if self.batches else self.position
        truth = [entry.raw for entry in entries if entry.base >= first]
        there = [one for one in self.batches if one.base_offset >= self.quorum.log.start]
        assert [raw(one) for one in there] == truth[-len(there) :] if there else not truth


# --- batches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_the_log_is_given_from_its_start(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        for number in range(20):
            quorum.append(topic(number))
        seen = Seen(observer_of(quorum), quorum)
        seen.to_the_end()
        assert seen.position == 21
        assert seen.observer.leader == (1, 1, ("127.0.0.1", quorum.leader.port))


@pytest.mark.parametrize("release", RELEASES)
def test_only_what_the_high_watermark_has_passed_is_given(release: str) -> None:
    with Quorum(release=release) as quorum:
        quorum.append(topic(1), topic(2))
        quorum.append(topic(3), commit=False)
        seen = Seen(observer_of(quorum), quorum)
        seen.to_the_end()
        assert seen.position == 3
        for _ in range(3):
            assert seen.step() == FetchStep()
        quorum.commit(3)
        assert seen.step() == FetchStep()
        quorum.commit()
        seen.to_the_end()
        assert seen.position == 4


def test_a_watermark_inside_a_batch_waits_for_its_end(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    quorum.append(topic(1), topic(2), commit=False)
    quorum.commit(2)
    for _ in range(4):
        seen.step()
    assert seen.position == 1
    quorum.commit()
    seen.to_the_end()


@pytest.mark.parametrize(("release", "waits"), [("4.1", True), ("4.0", False), ("3.3", False)])
def test_the_wait_while_a_commit_is_awaited(release: str, waits: bool) -> None:
    with Quorum(release=release) as quorum:
        quorum.append(topic(1), commit=False)
        seen = Seen(observer_of(quorum), quorum)
        for _ in range(4):
            seen.step()
        seen.step(0.4)
        asked = quorum.asked_for("Fetch")[-1]
        assert asked.body["maxWaitMs"] == (400 if waits else 5)
        if waits:
            assert asked.body["topics"][0]["partitions"][0]["highWatermark"] == 1


def test_a_wait_ends_with_news(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    quorum.append(topic(1), commit=False)
    seen.step()
    threading.Timer(0.05, quorum.commit).start()
    begin = time.monotonic()
    seen.step(5)
    assert time.monotonic() - begin < 2
    assert seen.position == 2


@pytest.mark.parametrize("cut", [1, 60, 61, 62, 150])
def test_a_last_batch_that_is_cut_comes_again_whole(quorum: Quorum, cut: int) -> None:
    for number in range(10):
        quorum.append(topic(number))
    quorum.max_piece = len(quorum.log.entries[0].raw) + len(quorum.log.entries[1].raw) + cut
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    assert seen.position == 11


def test_a_batch_larger_than_what_is_asked_for_comes_whole(quorum: Quorum) -> None:
    quorum.append(*(topic(number, 400) for number in range(100)))
    quorum.append(topic(1000))
    quorum.max_piece = 100
    Seen(observer_of(quorum), quorum).to_the_end()


def test_a_server_that_cuts_the_first_batch_is_asked_for_more(quorum: Quorum) -> None:
    quorum.append(topic(1), topic(2), topic(3))
    observer = observer_of(quorum)
    seen = Seen(observer, quorum)
    seen.to_the_end()
    quorum.append(*(topic(number) for number in range(50)))
    whole = len(quorum.log.entries[-1].raw)

    def shorten(body: dict[str, list[dict[str, list[dict[str, bytes]]]]]) -> None:
        partition = body["responses"][0]["partitions"][0]
        partition["records"] = partition["records"][: whole // 2]

    quorum.on("Fetch", faults.change(shorten), times=2)
    seen.to_the_end()
    wanted = [asked.body["topics"][0]["partitions"][0]["partitionMaxBytes"] for asked in quorum.asked_for("Fetch")]
    assert wanted[-3:] == [8 << 20, 16 << 20, 32 << 20]
    seen.step()
    assert quorum.asked_for("Fetch")[-1].body["maxBytes"] == 8 << 20


def test_a_server_that_never_gives_a_whole_batch_is_an_error(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    quorum.append(topic(1))

    def shorten(body: dict[str, list[dict[str, list[dict[str, bytes]]]]]) -> None:
        body["responses"][0]["partitions"][0]["records"] = b"\0" * 30

    quorum.on("Fetch", faults.change(shorten))
    with pytest.raises(ProtocolError, match="larger than an answer may be"):
        for _ in range(20):
            seen.step()


@pytest.mark.parametrize("place", [0, 8, 12, 16, 17, 30, 70])
def test_damage_in_a_batch_is_named_and_never_given(quorum: Quorum, place: int) -> None:
    quorum.append(topic(1), topic(2))
    seen = Seen(observer_of(quorum), quorum)

    def flip(body: dict[str, list[dict[str, list[dict[str, bytes]]]]]) -> None:
        partition = body["responses"][0]["partitions"][0]
        at = partition["records"].find(quorum.log.entries[1].raw)
        if at >= 0:
            data = bytearray(partition["records"])
            data[at + place] ^= 0x40
            partition["records"] = bytes(data)

    quorum.on("Fetch", faults.change(flip))
    with pytest.raises((CorruptDataError, ProtocolError)):
        for _ in range(10):
            seen.step()
    assert len(quorum.asked_for("Fetch")) >= 2  # once more, before anybody is told
    assert seen.position <= 1
    quorum.well()
    seen.to_the_end()


# --- snapshots ----------------------------------------------------------------------------------------------------


def snapshotted(quorum: Quorum, count: int = 50, delete: bool = True) -> int:
    """A snapshot and one record after it; gives the snapshot's size."""
    quorum.append(*(topic(number) for number in range(count)))
    named = quorum.snapshot([topic(number) for number in range(count)], delete=delete)
    quorum.append(topic(count))
    return len(quorum.log.snapshots[named])


def positions(quorum: Quorum) -> list[int]:
    return [asked.body["topics"][0]["partitions"][0]["position"] for asked in quorum.asked_for("FetchSnapshot")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_snapshot_comes_in_pieces(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        size = snapshotted(quorum)
        quorum.max_piece = 300
        seen = Seen(observer_of(quorum), quorum)
        seen.to_the_end()
        assert seen.snapshots == [(51, 1)]
        assert positions(quorum) == list(range(0, size, 300))
        assert quorum.asked_for("FetchSnapshot")[0].body["topics"][0]["name"] == "__cluster_metadata"


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("after", [0, 3, 100, 399])
def test_a_download_that_is_cut_goes_on_where_it_was(quorum: Quorum, after: int, reset: bool) -> None:
    size = snapshotted(quorum)
    quorum.max_piece = 300
    quorum.leader.on("FetchSnapshot", faults.cut(after, reset=reset), times=1, skip=2)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    whole = list(range(0, size, 300))
    assert positions(quorum) == [*whole[:3], *whole[2:]] or positions(quorum) == whole


def test_a_download_goes_on_at_the_next_leader(quorum: Quorum) -> None:
    size = snapshotted(quorum)
    quorum.max_piece = 300
    quorum.leader.on("FetchSnapshot", lambda reply: elect(quorum, 2), times=1, skip=2)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    assert len(seen.snapshots) == 1
    assert sorted(set(positions(quorum))) == list(range(0, size, 300))
    assert seen.observer.leader is not None
    assert seen.observer.leader.id == 2


def elect(quorum: Quorum, node_id: int) -> None:
    quorum.elect(node_id)
    quorum.commit()


def test_a_snapshot_that_was_deleted_meanwhile_is_replaced_by_the_next(quorum: Quorum) -> None:
    snapshotted(quorum)

    def replace(reply: faults.Reply) -> None:
        quorum.snapshot([topic(number) for number in range(51)])
        reply.body = None
        faults.error(98)(reply)
        reply.body = {"topics": [{"name": "__cluster_metadata", "partitions": [
            {"errorCode": 98, "unalignedRecords": b""}]}]}  # fmt: skip

    quorum.leader.on("FetchSnapshot", replace, times=1)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    assert seen.snapshots == [(52, 1)]


@pytest.mark.parametrize("says", [False, True])
def test_a_snapshot_that_was_deleted_in_the_middle_is_replaced_too(quorum: Quorum, says: bool) -> None:
    snapshotted(quorum)
    quorum.max_piece = 300
    quorum.writes_refusals = says  # Kafka says UNKNOWN_SERVER_ERROR whatever it is
    quorum.leader.on("FetchSnapshot", lambda reply: quorum.snapshot([topic(7)]) and None, times=1, skip=2)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    assert seen.snapshots == [(52, 1)]


def test_a_snapshot_that_is_never_there_is_trouble(quorum: Quorum) -> None:
    snapshotted(quorum)
    quorum.on("FetchSnapshot", faults.error(98))
    seen = Seen(observer_of(quorum), quorum)
    begin = time.monotonic()
    for _ in range(20):
        seen.step()
    assert seen.observer.trouble is not None
    assert seen.observer.silent_since is not None
    assert seen.observer.silent_since - begin < 0.2
    assert len(quorum.asked_for("FetchSnapshot")) <= 20


def test_a_position_that_is_refused_begins_again_once(quorum: Quorum) -> None:
    size = snapshotted(quorum)
    quorum.max_piece = 300
    quorum.on("FetchSnapshot", faults.error(99), times=1, skip=2)
    Seen(observer_of(quorum), quorum).to_the_end()
    whole = list(range(0, size, 300))
    assert positions(quorum) == [*whole[:3], *whole]


@pytest.mark.parametrize("skip", [0, 1])
def test_a_position_that_is_refused_for_ever_is_an_error(quorum: Quorum, skip: int) -> None:
    snapshotted(quorum)
    quorum.max_piece = 300
    quorum.on("FetchSnapshot", lambda reply: refuse_after(reply, 300 * skip))
    seen = Seen(observer_of(quorum), quorum)
    with pytest.raises(ServerError, match="POSITION_OUT_OF_RANGE"):
        for _ in range(10):
            seen.step()
    assert len(positions(quorum)) <= 4


def refuse_after(reply: faults.Reply, position: int) -> None:
    if reply.request["topics"][0]["partitions"][0]["position"] >= position:
        faults.error(99)(reply)


WRONG_PIECES: list[tuple[str, dict[str, object], str]] = [
    ("another snapshot", {"snapshotId": {"endOffset": 50, "epoch": 1}}, "a piece of snapshot"),
    ("another position", {"position": 7}, "a piece from byte 7"),
    ("no size", {"size": 0}, "size is reported as 0"),
    ("a negative size", {"size": -1}, "size is reported as -1"),
    ("a size beyond belief", {"size": 1 << 62}, "size is reported as"),
    ("another size than before", {"size": 100000}, "size is reported as 100000"),
    ("nothing", {"unalignedRecords": b""}, "a piece of 0 bytes"),
    ("too much", {"unalignedRecords": bytes(10000)}, "a piece of 10000 bytes"),
]


@pytest.mark.parametrize(("wrong", "words"), [case[1:] for case in WRONG_PIECES], ids=[c[0] for c in WRONG_PIECES])
def test_a_piece_that_does_not_fit_is_a_typed_error(quorum: Quorum, wrong: dict[str, object], words: str) -> None:
    snapshotted(quorum)
    quorum.max_piece = 300
    edit = faults.change(lambda body: body["topics"][0]["partitions"][0].update(wrong))
    quorum.on("FetchSnapshot", edit, skip=1)
    seen = Seen(observer_of(quorum), quorum)
    with pytest.raises(ProtocolError, match=words) as caught:
        for _ in range(5):
            seen.step()
    assert caught.value.api == "FetchSnapshot"


def test_a_log_compacted_meanwhile_is_told_as_lost(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    snapshotted(quorum)
    seen.to_the_end()
    assert seen.snapshots == [(51, 1)]
    assert seen.lost == ["offsets 1 to 50 are only in a snapshot by now"]


def test_a_first_snapshot_is_no_loss(quorum: Quorum) -> None:
    snapshotted(quorum)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    assert seen.lost == []


# --- epochs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_a_change_of_the_leader_is_followed(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        seen = Seen(observer_of(quorum), quorum)
        for leader in (2, 3, 3, 1):
            quorum.append(topic(leader))
            seen.to_the_end()
            elect(quorum, leader)
            seen.to_the_end()
            assert seen.observer.leader == (leader, quorum.epoch, ("127.0.0.1", quorum.leader.port))
        assert seen.lost == []


def test_an_election_is_trouble_until_it_ends(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    quorum.elect(None)
    for _ in range(3):
        assert seen.step() == FetchStep()
        assert seen.observer.trouble is not None
    assert seen.observer.silent_since is not None
    elect(quorum, 3)
    seen.to_the_end()
    seen.step()
    assert seen.observer.trouble is None
    assert seen.observer.silent_since is None


@pytest.mark.parametrize("release", RELEASES)
def test_records_that_an_election_takes_back_are_never_given(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        quorum.append(topic(1))
        quorum.append(topic(2), commit=False)
        quorum.append(topic(3), commit=False)
        seen = Seen(observer_of(quorum), quorum)
        seen.to_the_end()
        quorum.elect(2, keep=3)  # topic 2 stays, topic 3 goes
        quorum.append(topic(4))
        seen.to_the_end()
        assert seen.lost == []
        assert seen.position == 5


def test_committed_records_that_are_no_more_are_told(quorum: Quorum) -> None:
    quorum.append(topic(1))
    quorum.append(topic(2))
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    quorum.log.high_watermark = 2  # an unclean election
    quorum.elect(2, keep=2)
    quorum.append(topic(3))
    seen.to_the_end()
    assert seen.lost == ["committed records from offset 2 on are not what they were"]


def test_a_leader_without_a_watermark_gives_nothing(quorum: Quorum) -> None:
    quorum.elect(2)
    seen = Seen(observer_of(quorum), quorum)
    for _ in range(3):
        assert seen.step() == FetchStep()
    assert seen.observer.high_watermark == -1
    quorum.commit()
    seen.to_the_end()


@pytest.mark.parametrize("code", [5, 6, 7, 8, 74, 75, 78])
@pytest.mark.parametrize("api", ["Fetch", "FetchSnapshot"])
def test_refusals_that_pass_are_trouble_and_lose_nothing(quorum: Quorum, api: str, code: int) -> None:
    snapshotted(quorum)
    seen = Seen(observer_of(quorum), quorum)
    quorum.on(api, faults.error(code), times=3)
    seen.to_the_end()
    assert seen.lost == []
    assert seen.position == 52


def test_a_leader_that_is_killed_is_replaced(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    quorum.leader.stop()
    seen.step()
    assert seen.observer.trouble is not None
    quorum.append(topic(1))
    elect(quorum, 3)
    seen.to_the_end()


def test_the_leaders_id_is_known_after_a_reconnect(quorum: Quorum) -> None:
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    for node in quorum.controllers:
        node.disconnect()
    quorum.append(topic(1))
    seen.to_the_end()
    assert seen.observer.leader is not None
    assert seen.observer.leader.id == 1


def test_an_answer_about_another_partition_is_an_error(quorum: Quorum) -> None:
    quorum.on("Fetch", faults.change(lambda body: body["responses"].append(body["responses"][0])))
    with pytest.raises(ProtocolError, match="2 partitions"):
        observer_of(quorum).step()


def test_close_ends_a_question_that_waits(quorum: Quorum) -> None:
    observer = observer_of(quorum)
    observer.step()
    threading.Timer(0.05, observer.close).start()
    begin = time.monotonic()
    observer.step(3)
    assert time.monotonic() - begin < 2


# --- any interleaving ---------------------------------------------------------------------------------------------

Act = Callable[[Quorum], object]


def _kill(quorum: Quorum, node_id: int) -> None:
    quorum.node(node_id).stop()
    if node_id == quorum.leader_id:
        quorum.elect(None)


def _revive(quorum: Quorum) -> None:
    for node in quorum.controllers:
        if not node.is_up:
            node.start()


def _take_over(quorum: Quorum, node_id: int, lose: int) -> None:
    if quorum.node(node_id).is_up:
        ends = [entry.end for entry in quorum.log.entries if entry.end >= quorum.log.high_watermark]
        quorum.elect(node_id, keep=([quorum.log.high_watermark, *ends])[-1 - min(lose, len(ends))])


def _commit(quorum: Quorum, count: int) -> None:
    ends = [entry.end for entry in quorum.log.entries if entry.end > quorum.log.high_watermark]
    if ends and quorum.leader_id >= 0:
        quorum.commit(ends[min(count, len(ends)) - 1])


def _snapshot(quorum: Quorum) -> None:
    if quorum.log.high_watermark > quorum.log.start:
        quorum.snapshot([topic(number) for number in range(quorum.log.high_watermark)])


def _append(quorum: Quorum, count: int) -> None:
    if quorum.leader_id >= 0:
        quorum.append(*(topic(quorum.log.end + number) for number in range(count)), commit=False)


IDS = st.integers(1, 3)
ACTS: list[st.SearchStrategy[tuple[str, Act]]] = [
    st.integers(1, 4).map(lambda n: (f"append {n}", lambda q: _append(q, n))),
    st.integers(1, 3).map(lambda n: (f"commit {n}", lambda q: _commit(q, n))),
    st.tuples(IDS, st.integers(0, 3)).map(lambda t: (f"elect {t}", lambda q: _take_over(q, *t))),
    st.just(("nobody leads", lambda q: q.elect(None))),
    IDS.map(lambda n: (f"disconnect {n}", lambda q: q.node(n).disconnect())),
    st.tuples(st.integers(0, 700), st.booleans()).map(
        lambda t: (f"cut {t}", lambda q: q.cut_after(t[0], reset=t[1]))
    ),
    IDS.map(lambda n: (f"kill {n}", lambda q: _kill(q, n))),
    st.just(("revive", _revive)),
    st.integers(100, 600).map(lambda n: (f"pieces of {n}", lambda q: setattr(q, "max_piece", n))),
]  # fmt: skip
COMPACT: st.SearchStrategy[tuple[str, Act]] = st.just(("compact", _snapshot))


class Named:
    """Prints as what it does."""

    def __init__(self, act: tuple[str, Act], steps: int) -> None:
        self.act, self.steps = act, steps

    def __repr__(self) -> str:
        return f"{self.act[0]}, {self.steps} steps"


def scripts(*more: st.SearchStrategy[tuple[str, Act]]) -> st.SearchStrategy[list[Named]]:
    return st.lists(st.builds(Named, st.one_of(*ACTS, *more), st.integers(0, 3)), max_size=25)


def settle(quorum: Quorum) -> None:
    """All is well again, and a last record is committed."""
    _revive(quorum)
    elect(quorum, 1)
    quorum.append(topic(9999))


def play(script: list[Named], release: str) -> Seen:
    with Quorum(3, release=release) as quorum:
        seen = Seen(observer_of(quorum, request_timeout_ms="1000"), quorum)
        for named in script:
            named.act[1](quorum)
            for _ in range(named.steps):
                seen.step()
        quorum.well()
        settle(quorum)
        seen.to_the_end()
        return seen


@search(max_examples=100)
@given(script=scripts(), release=st.sampled_from(RELEASES))
def test_what_is_committed_is_given_once_and_in_order(script: list[Named], release: str) -> None:
    seen = play(script, release)
    assert seen.lost == []
    assert seen.batches[0].base_offset == 0


@search(max_examples=100)
@given(script=scripts(COMPACT), release=st.sampled_from(RELEASES))
def test_and_with_a_log_that_is_compacted(script: list[Named], release: str) -> None:
    seen = play(script, release)
    assert all("are only in a snapshot by now" in lost for lost in seen.lost)


@pytest.mark.soak
@search(max_examples=10 * LONG)
@given(script=scripts(COMPACT), release=st.sampled_from(RELEASES))
def test_and_for_a_long_time(script: list[Named], release: str) -> None:
    play(script, release)


def test_what_was_taken_back_is_open_again(quorum: Quorum) -> None:
    """Most voters lost their disks: what the next leader has beyond its own high watermark is not committed."""
    quorum.append(*(topic(number) for number in range(10)))
    observer = observer_of(quorum)
    while observer.committed < quorum.log.end:
        observer.step()
    with quorum.changed:
        quorum.log.truncate(3)
        quorum.log.high_watermark = 3
    quorum.elect(quorum.leader.id)
    quorum.commit(3)
    quorum.append(*(topic(number) for number in range(20, 25)), commit=False)
    steps = [observer.step() for _ in range(8)]
    assert any(step.lost for step in steps)
    assert observer.committed <= observer.high_watermark == 3


def test_an_observer_is_no_replica(quorum: Quorum) -> None:
    """An id of 0 or more would make state at the leader; a voter's could move the high watermark."""
    snapshotted(quorum)
    seen = Seen(observer_of(quorum), quorum)
    seen.to_the_end()
    fetches = quorum.asked_for("Fetch")
    assert {asked.body.get("replicaId", -1) for asked in fetches} == {-1}
    assert {asked.body.get("replicaState", {"replicaId": -1})["replicaId"] for asked in fetches} == {-1}
    assert {asked.body["replicaId"] for asked in quorum.asked_for("FetchSnapshot")} == {-1}
