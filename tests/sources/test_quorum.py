"""A running quorum as a source: the image is the log's, whatever happens on the way, or a typed error in time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as search
from hypothesis import strategies as st

import kshell.client.leader as leader_module
import kshell.sources.quorum.source as source_module
from kshell.client.address import addresses
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.engine.execution import prepare, time_limit
from kshell.engine.session import Session
from kshell.errors import (
    ConnectError,
    CorruptDataError,
    DataError,
    IncompleteLogError,
    KshellError,
    LeaderNotListedError,
    MissingCodecError,
    NodeError,
    ProtocolError,
    SourceTimeoutError,
)
from kshell.metadata.image import Image
from kshell.protocol.batches import write_batch
from kshell.protocol.decoder import Message
from kshell.protocol.messages.drafts import DIALECTS
from kshell.protocol.names import error_codes
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.quorum.earlier_log import older_log
from kshell.sources.quorum.facts import describe_quorum
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import metadata, uuid, value
from tests.server import Log, Quorum, faults, settings
from tests.sources.test_observer import COMPACT, LONG, Named, scripts, settle

DEADLINE = 10.0
"""Seconds after which a test of this file calls an answer a hang."""
CODES = [code for code in (*error_codes(), 134, 4711, 32767, -2, -32768) if code]


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum(3) as made:
        yield made


def source_of(quorum: Quorum, **properties: str) -> QuorumSource:
    return quorum.keep(QuorumSource(quorum.bootstrap, settings(**properties)))


def topic(number: int) -> bytes:
    return value("TOPIC", name=f"topic-{number}", topicId=uuid(number))


def names(image: Image) -> list[str]:
    return sorted(image.tables["topics"][key].name for key in image.tables.get("topics", {}))


def fill(quorum: Quorum, count: int = 5) -> None:
    for number in range(count):
        quorum.append(topic(number))


# --- the image ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", builders.recorded(), ids=builders.node_name)
def test_the_image_is_that_of_the_leaders_directory(node: Path) -> None:
    directory = node / METADATA_DIRECTORY
    expected = DirectorySource(str(directory)).load()
    with Quorum(log=Log.of_directory(directory)) as quorum:
        before = quorum.log.entries.pop()  # the election of this pretend quorum is no record of the directory
        quorum.log.high_watermark = quorum.log.end
        assert before.epoch == quorum.epoch
        loaded = source_of(quorum).load()
    assert metadata(loaded.image) == metadata(expected.image)
    assert loaded.image.provenance == expected.image.provenance
    assert loaded.log_end_offset == expected.log_end_offset
    assert loaded.damage == []


@pytest.mark.parametrize("release", ["3.3", "3.9", "4.3"])
def test_as_of_an_offset_before_the_snapshot_the_older_log_is_fetched(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        fill(quorum)
        quorum.snapshot([topic(number) for number in range(5)], delete=False)
        quorum.log.start = 0
        fill(quorum)
        source = source_of(quorum)
        assert source.load(until=3).image.provenance.offset == 3
        assert source.load().image.provenance.offset == quorum.log.end - 1


def compacted(quorum: Quorum, epochs: int = 3) -> None:
    """Two snapshots, of which the log goes back to the older one; leaders change meanwhile."""
    fill(quorum)
    quorum.snapshot([topic(number) for number in range(5)])
    for node_id in [1 + n % 3 for n in range(epochs)]:
        quorum.elect(node_id)
        quorum.append(topic(100 + quorum.epoch))
    quorum.snapshot([topic(number) for number in range(5)], delete=False)
    quorum.append(topic(999))


@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_the_older_log_begins_where_the_leaders_log_does(quorum: Quorum, epochs: int) -> None:
    compacted(quorum, epochs)
    source = source_of(quorum)
    source.load()
    listing = source.listing(full_log=True)
    # The observer itself was given the newer snapshot only where the log did not reach back to what it had.
    assert listing.segments[0].base_offset == quorum.log.start
    assert b"".join(bytes(segment.data or b"") for segment in listing.segments) == b"".join(
        entry.raw for entry in quorum.log.entries
    )


def test_a_log_whose_start_moved_is_incomplete(quorum: Quorum) -> None:
    compacted(quorum)
    source = source_of(quorum)
    source.load()
    quorum.max_piece = 1  # one batch an answer

    def delete(reply: faults.Reply) -> None:
        if 0 < reply.request["topics"][0]["partitions"][0]["fetchOffset"] < quorum.log.end:
            quorum.log.delete_before(max(quorum.log.snapshots))

    quorum.on("Fetch", delete)
    with pytest.raises(IncompleteLogError, match="was removed"):
        source.listing(full_log=True)


def test_the_older_log_is_there_during_an_election_too(quorum: Quorum) -> None:
    compacted(quorum)
    source = source_of(quorum)
    source.load()
    source.start()
    quorum.elect(None)
    until = time.monotonic() + DEADLINE
    while source.observer.leader is not None:
        assert time.monotonic() < until
        time.sleep(0.005)
    threading.Timer(0.2, quorum.elect, (2,)).start()
    assert source.listing(full_log=True).segments[0].base_offset == quorum.log.start


def fetched(quorum: Quorum) -> list[int]:
    """The positions that were asked for, in order."""
    asked = quorum.asked_for("Fetch")
    return [one.body["topics"][0]["partitions"][0]["fetchOffset"] for one in asked]


@pytest.mark.parametrize("release", ["3.3", "3.9", "4.3"])
@pytest.mark.parametrize("goes", [False, True], ids=["resigned", "gone"])
@pytest.mark.parametrize("after", [1, 3])
def test_the_older_log_goes_on_with_the_next_leader(release: str, after: int, goes: bool) -> None:
    with Quorum(3, release=release) as quorum:
        compacted(quorum, 5)
        source = source_of(quorum)
        source.load()
        quorum.max_piece = 1  # one batch an answer
        before = quorum.leader
        left = len(fetched(quorum)) + after

        def elect(reply: faults.Reply) -> None:
            if len(fetched(quorum)) == left:
                quorum.elect(before.id % 3 + 1)
                quorum.commit()
                if goes:
                    threading.Thread(target=before.stop).start()

        before.on("Fetch", elect)
        end = max(quorum.log.snapshots)[0]
        listing = source.listing(full_log=True)
        assert quorum.leader_id != before.id
        assert listing.segments[0].base_offset == quorum.log.start
        held = b"".join(bytes(segment.data or b"") for segment in listing.segments)
        assert held.startswith(b"".join(entry.raw for entry in quorum.log.entries if entry.end <= end))
        assert [note for note in source.notes() if "only in a snapshot" in note] == []


def test_an_election_that_does_not_end_is_told_in_time(quorum: Quorum) -> None:
    compacted(quorum)
    source = source_of(quorum, default_api_timeout_ms="400")
    source.load()
    quorum.max_piece = 1
    quorum.leader.on("Fetch", lambda reply: quorum.elect(None), times=1)
    begin = time.monotonic()
    with pytest.raises(NodeError):
        source.listing(full_log=True)
    assert time.monotonic() - begin < DEADLINE


def test_an_empty_log(quorum: Quorum) -> None:
    quorum.log.entries = []
    quorum.log.high_watermark = 0
    loaded = source_of(quorum).load()
    assert loaded.log_end_offset == 0
    assert names(loaded.image) == []


def test_a_second_look_has_what_came_meanwhile(quorum: Quorum) -> None:
    source = source_of(quorum)
    first = source.load()
    assert source.load() is first
    assert not source.refresh()
    quorum.append(topic(7))
    assert source.refresh()
    assert names(source.load().image) == ["topic-7"]
    assert names(first.image) == []


def test_a_thread_follows(quorum: Quorum) -> None:
    source = source_of(quorum)
    source.load()
    source.start()
    for number in range(20):
        quorum.append(topic(number))
    until = time.monotonic() + DEADLINE
    while source.following().end_offset < quorum.log.end:
        assert time.monotonic() < until
        source.advance(0.1)
    assert len(names(source.load().image)) == 20


def test_close_ends_the_thread(quorum: Quorum) -> None:
    source = source_of(quorum)
    source.load()
    source.start()
    thread = source._thread
    begin = time.monotonic()
    source.close()
    assert time.monotonic() - begin < 1.5
    assert thread is not None
    assert not thread.is_alive()


# --- any interleaving ---------------------------------------------------------------------------------------------


class Followed:
    """What ``follow`` gives, checked as it comes: in order, nothing twice, and a hole only where a note says so."""

    def __init__(self, quorum: Quorum, *, thread: bool) -> None:
        self.quorum = quorum
        self.source = source_of(quorum, request_timeout_ms="1000", default_api_timeout_ms="20000")
        if thread:
            self.source.start()
        else:
            # Questions without a wait: the script itself says what comes next.
            advance = self.source.advance
            self.source.advance = lambda wait=0.0: advance(0.0)  # type: ignore[method-assign]
        self.position = 0
        self.holes = 0
        self.batches = self.source.follow(0)

    def take(self) -> None:
        """What is there now."""
        found = next(self.batches)
        while found is not None:
            one = found.batch
            assert one.base_offset >= self.position, "twice"
            if one.base_offset > self.position:
                self.holes += 1
                assert len([note for note in self.source.notes() if "only in a snapshot" in note]) >= self.holes
            assert one.last_offset < self.quorum.log.high_watermark, "not committed"
            self.position = one.last_offset + 1
            found = next(self.batches)

    def to_the_end(self) -> None:
        """Until all is here."""
        until = time.monotonic() + DEADLINE
        while self.position < self.quorum.log.high_watermark:
            assert time.monotonic() < until, f"stuck at {self.position}: {self.source.observer.trouble}"
            self.take()


def play(script: list[Named], release: str, *, thread: bool) -> Followed:
    with Quorum(3, release=release) as quorum:
        followed = Followed(quorum, thread=thread)
        followed.take()
        for named in script:
            named.act[1](quorum)
            if quorum.leader_id >= 0 and quorum.knows_watermark and all(node.is_up for node in quorum.controllers):
                followed.take()
        quorum.well()
        settle(quorum)
        followed.to_the_end()
        return followed


RELEASES = st.sampled_from(["3.3", "3.9", "4.3"])


@search(max_examples=80)
@given(script=scripts(), release=RELEASES)
def test_follow_gives_every_committed_batch_once(script: list[Named], release: str) -> None:
    assert play(script, release, thread=False).holes == 0


@search(max_examples=80)
@given(script=scripts(COMPACT), release=RELEASES)
def test_follow_says_what_it_could_not_give(script: list[Named], release: str) -> None:
    play(script, release, thread=False)


@search(max_examples=3)
@given(script=scripts(COMPACT), release=RELEASES)
def test_follow_in_a_thread_too(script: list[Named], release: str) -> None:
    play(script, release, thread=True)


@pytest.mark.soak
@search(max_examples=max(LONG, 5))
@given(script=scripts(COMPACT), release=RELEASES, thread=st.booleans())
def test_follow_for_a_long_time(script: list[Named], release: str, thread: bool) -> None:
    play(script, release, thread=thread)


# --- damage -------------------------------------------------------------------------------------------------------


def flip_piece(at: int) -> faults.Fault:
    def edit(body: dict[str, list[dict[str, list[dict[str, bytes]]]]]) -> None:
        partition = body["topics"][0]["partitions"][0]
        data = bytearray(partition["unalignedRecords"])
        data[at] ^= 1
        partition["unalignedRecords"] = bytes(data)

    return faults.change(edit)


@pytest.mark.parametrize("at", [0, 20, 90, 200])
def test_a_snapshot_is_verified_before_it_is_shown(quorum: Quorum, at: int) -> None:
    fill(quorum)
    quorum.snapshot([topic(number) for number in range(5)])
    quorum.max_piece = 250
    quorum.on("FetchSnapshot", flip_piece(at), times=1)
    source = source_of(quorum)
    assert len(names(source.load().image)) == 5
    pieces = [asked.body["topics"][0]["partitions"][0]["position"] for asked in quorum.asked_for("FetchSnapshot")]
    assert pieces.count(0) == 2  # fetched once more


@pytest.mark.parametrize("at", [0, 90, 200])
def test_a_snapshot_that_is_damaged_twice_is_corrupt(quorum: Quorum, at: int) -> None:
    fill(quorum)
    quorum.snapshot([topic(number) for number in range(5)])
    quorum.on("FetchSnapshot", flip_piece(at))
    source = source_of(quorum)
    with pytest.raises(CorruptDataError) as caught:
        source.load()
    assert caught.value.exit_code == 4
    assert "00000000000000000006-0000000001.checkpoint" in caught.value.message
    quorum.well()
    assert len(names(source.load().image)) == 5


def test_a_snapshot_without_its_footer_is_corrupt(quorum: Quorum) -> None:
    fill(quorum)
    named = quorum.snapshot([topic(number) for number in range(5)])
    footer = builders.control_batch([builders.control(4)], 6, 1)
    quorum.log.snapshots[named] = quorum.log.snapshots[named][: -len(footer)]
    with pytest.raises(CorruptDataError, match="no footer"):
        source_of(quorum).load()


def test_nobody_goes_on_from_a_hole(quorum: Quorum) -> None:
    source = source_of(quorum)
    source.load()
    source.start()
    quorum.log.put(write_batch([(None, topic(1))], base_offset=1, epoch=1, timestamp=0, codec=7, compressed=b"?"))
    quorum.commit()
    with pytest.raises(KshellError) as caught:
        wait_for(source, 2)
    assert isinstance(caught.value, DataError | MissingCodecError)
    quorum.log.entries.pop()
    quorum.append(topic(1))
    quorum.append(topic(2))
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        try:
            wait_for(source, 3)
            break
        except DataError:
            time.sleep(0.1)
    assert names(source.load().image) == ["topic-1", "topic-2"]


def wait_for(source: QuorumSource, end: int) -> None:
    until = time.monotonic() + DEADLINE
    while source.following().end_offset < end:
        assert time.monotonic() < until
        source.advance(0.1)


# --- deadlines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["ls /image", "quorum", "topics"])
def test_a_command_that_gave_up_names_who_has_not_answered(line: str, quorum: Quorum) -> None:
    quorum.on("ApiVersions", faults.slow(4))
    call = prepare(Session(source_of(quorum)), f"{line} --timeout 0.5")
    assert call is not None
    with pytest.raises(SourceTimeoutError) as raised, time_limit(call):
        call.run()
    assert raised.value.exit_code == 3
    nodes = quorum.bootstrap.split(",")
    assert any(f"gave up after 0.5 s: no answer yet from {node}" in raised.value.message for node in nodes)


def test_a_command_that_gave_up_after_the_state_was_loaded_names_who_has_not_answered(quorum: Quorum) -> None:
    source = source_of(quorum)
    session = Session(source)
    assert session.loaded.image
    quorum.on("DescribeQuorum", faults.slow(4))
    call = prepare(session, "quorum --timeout 0.5")
    assert call is not None
    with pytest.raises(SourceTimeoutError, match=r"no answer yet from [^ ]+ \(DescribeQuorum\)$"), time_limit(call):
        call.run()


def within(source: QuorumSource, seconds: float = DEADLINE) -> Image:
    """The image, by a clock: a hang fails the test."""
    begin = time.monotonic()
    try:
        return source.load().image
    finally:
        assert time.monotonic() - begin < seconds


def test_a_leader_that_commits_nothing_is_a_typed_error(quorum: Quorum) -> None:
    quorum.elect(2)
    with pytest.raises(SourceTimeoutError, match="does not say what is committed"):
        within(source_of(quorum, default_api_timeout_ms="300"))
    assert len(quorum.asked_for("Fetch")) < 30  # nobody was hammered


def test_an_election_that_does_not_end_is_a_typed_error(quorum: Quorum) -> None:
    quorum.elect(None)
    with pytest.raises(NodeError):
        within(source_of(quorum, default_api_timeout_ms="300"))


def test_a_leader_whose_address_cannot_be_learnt_is_not_waited_for_as_an_election_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (leader_module, source_module):
        monkeypatch.setattr(module, "NEXT_ELECTION", 0.3)
    with Quorum(3, release="3.5") as quorum:
        fill(quorum)
        patient = settings(default_api_timeout_ms="60000")
        source = quorum.keep(QuorumSource(quorum.node(1).address, patient))
        source.load()
        quorum.elect(3)
        begin = time.monotonic()
        with pytest.raises(LeaderNotListedError):
            older_log(source.observer, source.nodes, 1, 3)
        with pytest.raises(LeaderNotListedError):
            source.load()
        with pytest.raises(LeaderNotListedError):
            describe_quorum(source.nodes)
        with pytest.raises(LeaderNotListedError):
            quorum.keep(QuorumSource(quorum.node(1).address, patient)).load()
        quorum.elect(1)
        quorum.commit()
        assert source.load().log_end_offset == quorum.log.end
        assert time.monotonic() - begin < 30


def test_how_long_an_election_took_leaves_no_less_time_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (leader_module, source_module):
        monkeypatch.setattr(module, "NEXT_ELECTION", 2.0)
    with Quorum(3, release="3.5") as quorum:
        quorum.elect(None)
        threading.Timer(2.3, quorum.elect, (3,)).start()
        threading.Timer(2.6, quorum.elect, (1,)).start()
        threading.Timer(2.7, quorum.commit).start()
        source = quorum.keep(QuorumSource(quorum.node(1).address, settings(default_api_timeout_ms="60000")))
        assert source.load().log_end_offset == quorum.log.end


def test_a_quorum_that_is_down_is_a_typed_error(quorum: Quorum) -> None:
    source = source_of(quorum, default_api_timeout_ms="300")
    source.load()
    for node in quorum.controllers:
        node.stop()
    with pytest.raises(ConnectError):
        within(source)
    for node in quorum.controllers:
        node.start()
    quorum.append(topic(1))
    assert names(within(source)) == ["topic-1"]


def test_a_port_that_is_not_kafkas_any_more_ends_nothing(quorum: Quorum) -> None:
    """The leader is gone, and a proxy answers at its address: the next leader is followed."""
    source = source_of(quorum)
    source.load()
    quorum.append(topic(1))
    quorum.node(1).stop()
    quorum.node(1).on("ApiVersions", faults.raw(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"))
    quorum.node(1).start()
    quorum.elect(2)
    quorum.append(topic(2))
    assert names(within(source)) == ["topic-1", "topic-2"]
    assert describe_quorum(source.nodes)["leaderId"] == 2


def test_a_snapshot_that_is_never_there_is_a_typed_error(quorum: Quorum) -> None:
    fill(quorum)
    quorum.snapshot([])
    quorum.on("FetchSnapshot", faults.error(98))
    with pytest.raises(ConnectError, match="the snapshot was removed meanwhile"):
        within(source_of(quorum, default_api_timeout_ms="300"))


def test_silence_is_a_typed_error(quorum: Quorum) -> None:
    quorum.on("Fetch", faults.slow(20))
    with pytest.raises(SourceTimeoutError):
        within(source_of(quorum, request_timeout_ms="100", default_api_timeout_ms="300"))


# --- every error code ---------------------------------------------------------------------------------------------

WHOLE = {"Fetch": (False, True), "FetchSnapshot": (False, True), "DescribeQuorum": (False, True)}
PLACES = [
    (api, whole)
    for api in ("Fetch", "FetchSnapshot", "DescribeQuorum", "ApiVersions", "DescribeCluster")
    for whole in WHOLE.get(api, (True,))
]


@pytest.fixture(scope="module")
def busy() -> Iterator[Quorum]:
    with Quorum(2) as made:
        fill(made)
        made.snapshot([topic(number) for number in range(5)])
        made.append(topic(6))
        yield made


LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";',
}


def ask_all(quorum: Quorum, **properties: str) -> list[str]:
    """The topics, and a word with the leader; the source is closed afterwards."""
    properties |= LOGIN if quorum.users else {}
    source = QuorumSource(quorum.bootstrap, settings(**properties))
    try:
        begin = time.monotonic()
        found = names(source.load().image)
        describe_quorum(source.nodes)
        return found
    finally:
        assert time.monotonic() - begin < 10
        source.close()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("api", "whole"), PLACES)
def test_every_error_code_is_handled_or_typed(busy: Quorum, api: str, whole: bool, code: int) -> None:
    busy.well()
    busy.on(api, faults.error(code, whole=whole, message="said \x1b[31m so"))
    try:
        found = ask_all(busy, default_api_timeout_ms="60", request_timeout_ms="500")
    except NodeError as error:
        assert error.exit_code == 3
        assert error.node
    else:
        assert len(found) == 6
        assert api == "DescribeCluster"  # the cluster's id stays unknown


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("api", "whole"), PLACES)
def test_every_error_code_that_passes_is_recovered_from(busy: Quorum, api: str, whole: bool, code: int) -> None:
    from kshell.client.codes import may_succeed_later

    busy.well()
    busy.on(api, faults.error(code, whole=whole), times=1)
    if api in ("Fetch", "FetchSnapshot", "DescribeQuorum") and may_succeed_later(code):
        assert len(ask_all(busy)) == 6
        return
    try:
        assert len(ask_all(busy)) == 6
    except NodeError as error:
        assert error.exit_code == 3


# --- what nobody would answer -------------------------------------------------------------------------------------

ODD: dict[str, list[dict[str, object]]] = {
    "DescribeQuorum": [{}, {"topics": [{"topicName": "__cluster_metadata", "partitions": []}]}],
    "Fetch": [{}, {"responses": [{"partitions": []}]}],
    "FetchSnapshot": [{}, {"topics": [{"name": "x", "partitions": []}]}],
}


@pytest.mark.parametrize(("api", "body"), [(api, body) for api, bodies in ODD.items() for body in bodies])
def test_an_answer_that_holds_nothing_is_a_protocol_error(
    busy: Quorum, api: str, body: dict[str, object], request: pytest.FixtureRequest
) -> None:
    busy.well()
    busy.bodies[api] = body
    request.addfinalizer(busy.bodies.clear)
    with pytest.raises(ProtocolError, match="partition"):
        ask_all(busy, default_api_timeout_ms="200")


# --- a connection that ends after each byte -----------------------------------------------------------------------


def session_length(quorum: Quorum) -> int:
    quorum.well()
    before = quorum.bytes_sent
    ask_all(quorum)
    return quorum.bytes_sent - before


def cut_everywhere(quorum: Quorum, stride: int) -> None:
    """Ends the connection after byte 0, ``stride``, … of what the servers send; each must end in the right image."""
    length = session_length(quorum)
    assert length > 500
    for count in range(0, length, stride):
        for reset in (False, True):
            quorum.well()
            quorum.cut_after(count, reset=reset)
            try:
                # A busy machine is slow in a few of thousands of tries.
                assert len(ask_all(quorum, default_api_timeout_ms="9000")) == 6
            except NodeError as error:
                pytest.fail(f"not recovered after byte {count}, reset {reset}: {error}")


def test_a_connection_that_ends_after_some_bytes_is_recovered_from(busy: Quorum) -> None:
    cut_everywhere(busy, 53)


def test_with_authentication_too() -> None:
    with Quorum(users={"a": "b"}) as quorum:
        fill(quorum)
        quorum.snapshot([topic(number) for number in range(5)])
        quorum.append(topic(6))
        cut_everywhere(quorum, 31)


@pytest.mark.soak
@pytest.mark.parametrize("release", ["3.3", "3.7", "3.9", "4.3"])
def test_a_connection_that_ends_anywhere_is_recovered_from(release: str) -> None:
    with Quorum(2, release=release) as quorum:
        fill(quorum)
        quorum.snapshot([topic(number) for number in range(5)])
        quorum.append(topic(6))
        cut_everywhere(quorum, max(1, 40 // LONG))  # each of them by hand, each eighth in CI


def test_every_connection_that_ends_early_is_a_typed_error(busy: Quorum) -> None:
    """Not once but always: nothing gets further than so many bytes, and nobody waits for ever."""
    for count in (0, 3, 4, 20, 100):
        busy.well()
        busy.on(None, faults.cut(count))
        with pytest.raises(NodeError):
            ask_all(busy, default_api_timeout_ms="60")


def test_threads_may_ask_at_once(busy: Quorum) -> None:
    busy.well()
    source = busy.keep(QuorumSource(busy.bootstrap, settings()))
    source.load()
    source.start()
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(10):
                assert len(names(source.load().image)) == 6
                assert describe_quorum(source.nodes)["leaderId"] == 1
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert not wrong


def test_every_dialect_is_spoken_by_the_server() -> None:
    for name in DIALECTS:
        with Quorum(2, brokers=1, dialects=[name]) as quorum:
            fill(quorum)
            assert len(ask_all(quorum, dialect=name)) == 5


@pytest.mark.parametrize("release", ["3.3", "3.7", "4.3"])
def test_the_quorum_is_described_by_the_next_leader(release: str) -> None:
    """The leader is gone, a kept connection to another node is not: it must not be the dead one that is asked again."""
    with Quorum(3, release=release) as quorum:
        nodes = quorum.keep(Nodes(CONTROLLER, addresses(",".join(reversed(quorum.bootstrap.split(",")))), settings()))
        assert describe_quorum(nodes)["leaderId"] == quorum.leader.id
        quorum.leader.stop()
        quorum.elect(2)
        quorum.commit()
        begun = time.monotonic()
        assert describe_quorum(nodes)["leaderId"] == 2
        assert time.monotonic() - begun < nodes.settings.api_timeout / 2


def test_following_from_before_the_log_says_so() -> None:
    with Quorum(1) as quorum:
        quorum.append(*(topic(number) for number in range(50)))
        quorum.snapshot([topic(number) for number in range(50)], delete=True)
        quorum.append(topic(51))
        source = QuorumSource(quorum.bootstrap, settings())
        with contextlib.closing(source):
            found = next(source.follow(0))
            assert found is not None and found.batch.base_offset == quorum.log.start
            assert source.notes() == [f"offsets 0 to {quorum.log.start - 1} are only in a snapshot by now"]


@pytest.mark.parametrize("release", ["3.3", "3.9", "4.3"])
def test_what_follow_gave_is_let_go_and_fetched_again_for_whoever_asks(release: str) -> None:
    with Quorum(3, release=release) as quorum:
        fill(quorum)
        source = source_of(quorum)
        followed = source.follow()
        while next(followed) is not None:
            pass
        for number in range(10, 40):
            quorum.append(topic(number))
            while (found := next(followed)) is None:
                pass
            assert found.batch.last_offset == quorum.log.end - 1
            assert next(followed) is None
            held = source.listing().segments
            assert sum(segment.size for segment in held) <= found.batch.size
        assert names(source.load().image) == sorted(f"topic-{number}" for number in [*range(5), *range(10, 40)])
        assert source.load(until=4).image.provenance.offset == 4
        listing = source.listing(full_log=True)
        records = sum(segment.size for segment in listing.segments)
        assert records >= sum(
            len(entry.raw) for entry in quorum.log.entries if entry.base >= max(listing.first_needed_offset, 1)
        )


def test_a_controller_that_has_not_loaded_its_acls_is_passed_over() -> None:
    """It answers UNKNOWN_SERVER_ERROR to all but super users, while another one leads."""
    with Quorum(3) as quorum:
        quorum.append(value("TOPIC", name="t", topicId=uuid(1)))
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
        source.load()
        quorum.node(1).on("Fetch", faults.error(-1, whole=True))
        quorum.elect(2)
        quorum.append(value("TOPIC", name="u", topicId=uuid(2)))
        for asked in (source, quorum.keep(QuorumSource(quorum.bootstrap, settings()))):
            assert set(asked.load().image["topicNames"]) == {"t", "u"}


def thirty_topics_in_pieces(quorum: Quorum) -> None:
    """A log, and a snapshot of it that takes several requests."""
    values = [value("TOPIC", name=f"topic-{number:0100}", topicId=uuid(number)) for number in range(30)]
    quorum.append(*values)
    quorum.snapshot(values)
    quorum.max_piece = 500


def test_a_connection_that_breaks_late_in_a_download_is_made_again() -> None:
    """Pieces are progress, as new records are: a large snapshot takes longer than one request may."""
    with Quorum() as quorum:
        thirty_topics_in_pieces(quorum)
        quorum.on("FetchSnapshot", faults.slow(0.2))
        quorum.on("FetchSnapshot", faults.hang_up, times=1, skip=5)
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings(default_api_timeout_ms="800")))
        assert len(source.load().image["topics"]) == 30


def test_a_download_that_begins_again_and_again_ends() -> None:
    """Its pieces are no progress then: nobody waits for ever for a leader that never hands out the last one."""
    with Quorum() as quorum:
        thirty_topics_in_pieces(quorum)
        quorum.on("FetchSnapshot", faults.change(_refuse_after_three))
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings(default_api_timeout_ms="800")))
        with pytest.raises((SourceTimeoutError, ConnectError)):
            source.load()


def _refuse_after_three(body: Message) -> None:
    """Refuses every piece but the first three, without a reason, as Kafka does."""
    partition = body["topics"][0]["partitions"][0]
    if partition["position"] >= 1500:
        partition["snapshotId"], partition["unalignedRecords"] = {"endOffset": 31, "epoch": 1}, b""
        body["errorCode"] = -1


def test_an_observer_that_came_back_with_another_disk_hides_none() -> None:
    """The leader lists both for a while (KIP-853); the one that fetches has the node's name."""
    with Quorum() as quorum:
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
        loaded = source.load()
        observers = [
            {"replicaId": 2, "replicaDirectoryId": uuid(directory), "logEndOffset": end, "lastFetchTimestamp": at,
             "lastCaughtUpTimestamp": at}
            for directory, end, at in ((6, 3, 1_000), (7, 9, 2_000), (8, 1, -1))
        ]  # fmt: skip
        partition = {"leaderId": 1, "leaderEpoch": 1, "highWatermark": 1, "currentVoters": [], "observers": observers}
        topic = {"topicName": "__cluster_metadata", "partitions": [partition]}
        quorum.bodies["DescribeQuorum"] = {"topics": [topic], "nodes": []}
        found = {name: leaf["logEndOffset"] for name, (_, leaf, _) in source.quorum(loaded)["observers"].items()}
        assert found == {"2": 9, f"2-{uuid(6)}": 3, f"2-{uuid(8)}": 1}
