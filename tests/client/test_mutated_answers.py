"""Answers of real servers with bytes changed, left out and repeated: a typed error or an answer, in time and memory."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as search
from hypothesis import strategies as st

from kshell.client.address import addresses
from kshell.client.connection import Connection
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.errors import KshellError
from kshell.protocol.api import Api, decode_response
from kshell.protocol.decoder import Message
from kshell.protocol.encoder import encode
from kshell.protocol.messages.cluster import DESCRIBE_TOPIC_PARTITIONS
from kshell.protocol.messages.quorum import FETCH
from kshell.protocol.primitives import DecodeError, write_uvarint
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.facts import describe_quorum
from kshell.sources.quorum.source import QuorumSource
from tests.builders import uuid, value
from tests.server import Quorum, guarded, settings
from tests.server.apis import apis
from tests.server.faults import Reply
from tests.sources.test_brokers import BODIES, CONFIGS

COUNT = int(os.environ.get("KSHELL_MUTATIONS", "60"))
"""How many mutations of each kind; a long run finds more."""
HARSH = {"default_api_timeout_ms": "250", "request_timeout_ms": "250", "socket_connection_setup_timeout_ms": "250"}
MOST_SECONDS = 10.0
_LENGTHS = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\x7f",
    b"\x7f\xff\xff\xff",
)
"""As a varint or a fixed field: null, empty, negative, huge."""


def mutated(data: bytes, chance: random.Random) -> bytes:
    """``data`` with one to four changes."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        kind = chance.randrange(6)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            new = chance.choice(_LENGTHS)
            made[at : at + len(new)] = new
        elif kind == 2:
            made[at:at] = chance.randbytes(chance.randint(1, 8))
        elif kind == 3:
            del made[at : at + chance.randint(1, 8)]
        elif kind == 4:
            del made[at:]
        else:
            end = at + chance.randint(1, 64)
            made[at:at] = made[at:end] * chance.randint(1, 50)
    return bytes(made)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Quorum]:
    """Controllers and brokers with something of everything."""
    with Quorum(2, 2) as made:
        made.bodies |= BODIES
        made.configs |= CONFIGS
        values = [value("TOPIC", name=f"topic-{number}", topicId=uuid(number)) for number in range(20)]
        made.append(*values)
        made.snapshot(values)
        made.append(value("TOPIC", name="last", topicId=uuid(99)))
        made.max_piece = 500
        yield made


@pytest.fixture(scope="module")
def frames(cluster: Quorum) -> list[tuple[Api, int, bytes]]:
    """What the servers answered to whole loads, each API and version once or a few times."""
    seen: list[tuple[Api, int, bytes]] = []
    plain = Connection.exchange_raw

    def recording(self: Connection, api: Api, version: int, message: Message, **limits: float | None) -> bytes:
        frame = plain(self, api, version, message, **limits)
        seen.append((self.api(api), version, frame))
        return frame

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "exchange_raw", recording)
        for load in LOADS.values():
            load(cluster)
    assert len({api.name for api, _, _ in seen}) >= 12
    return seen


def _quorum(cluster: Quorum, **patience: str) -> None:
    source = QuorumSource(cluster.bootstrap, settings(**patience))
    try:
        source.load()
        source.listing(full_log=True)
    finally:
        source.close()


def _brokers(cluster: Quorum, **patience: str) -> None:
    source = BrokerSource(cluster.bootstrap_servers, settings(**patience))
    try:
        source.load()
    finally:
        source.close()


def _described(cluster: Quorum, **patience: str) -> None:
    nodes = Nodes(CONTROLLER, addresses(cluster.bootstrap), settings(**patience))
    try:
        describe_quorum(nodes)
    finally:
        nodes.close()


LOADS: dict[str, Callable[..., None]] = {"quorum": _quorum, "brokers": _brokers, "describe": _described}


@search(max_examples=COUNT * 10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**48))
def test_a_mutated_frame_is_decoded_or_refused(frames: list[tuple[Api, int, bytes]], seed: int) -> None:
    chance = random.Random(seed)
    api, version, frame = chance.choice(frames)
    spoilt = frame[:4] + mutated(frame[4:], chance)
    begin = time.monotonic()
    with contextlib.suppress(DecodeError):
        decode_response(api, version, spoilt)
    assert time.monotonic() - begin < MOST_SECONDS


@pytest.mark.parametrize("load", LOADS)
@search(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**48))
def test_a_load_over_mutated_answers_is_an_image_or_a_typed_error(cluster: Quorum, load: str, seed: int) -> None:
    chance = random.Random(seed)
    rate = chance.choice((0.02, 0.1, 0.5))
    only = chance.choice((None, "Fetch", "FetchSnapshot", "DescribeCluster", "DescribeQuorum"))

    def spoil(reply: Reply) -> None:
        if reply.body is None or chance.random() > rate or (load != "brokers" and only not in (None, reply.api.name)):
            return
        head = b"\0" if reply.api.is_flexible(reply.version) and reply.api.name != "ApiVersions" else b""
        body = mutated(head + encode(reply.api.response, reply.version, reply.body), chance)
        frame = reply.correlation_id.to_bytes(4, "big", signed=True) + body
        reply.raw = len(frame).to_bytes(4, "big") + frame

    cluster.on(None, spoil)
    begin = time.monotonic()
    try:
        LOADS[load](cluster, **HARSH)
    except KshellError as error:
        assert error.message
    finally:
        cluster.well()
    assert time.monotonic() - begin < MOST_SECONDS


# --- messages of many small elements ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", sorted(apis()))
def test_an_answer_of_empty_elements_is_no_answer(number: int) -> None:
    """Bytes that say null, empty or one all over, after a count that there are bytes enough for."""
    api = apis()[number]
    for filler in (b"\x00", b"\x01", b"\x02"):
        frame = b"\0\0\0\1" + write_uvarint(1 << 19) + filler * (600 << 10)
        with pytest.raises(DecodeError):
            decode_response(api, api.versions.high or 0, frame)


def _bomb(api: Api) -> Callable[[Reply], None]:
    """A frame of 60 MB: the API's own array claims as many elements as there are bytes for."""

    def spoil(reply: Reply) -> None:
        if api is FETCH:  # throttle, error, session; then topics
            head = b"\0" + b"\0\0\0\0" + b"\0\0" + b"\0\0\0\0"
            element = bytes(16) + b"\x01" + b"\0"
        else:  # throttle; then topics
            head = b"\0" + b"\0\0\0\0"
            element = b"\0\0" + b"\0" + bytes(16) + b"\0" + b"\x01" + b"\0\0\0\0" + b"\0"
        many = (60 << 20) // len(element)
        frame = reply.correlation_id.to_bytes(4, "big") + head + write_uvarint(many + 1) + element * many
        reply.raw = len(frame).to_bytes(4, "big") + frame

    return spoil


@pytest.mark.parametrize(
    ("kind", "api"), [("quorum", FETCH), ("brokers", DESCRIBE_TOPIC_PARTITIONS)], ids=["quorum", "brokers"]
)
def test_an_answer_of_60_mb_of_empty_topics_costs_little_more_than_its_bytes(
    cluster: Quorum, kind: str, api: Api
) -> None:
    cluster.on(api.name, _bomb(api))
    try:
        there = cluster.bootstrap if kind == "quorum" else cluster.bootstrap_servers
        outcome = guarded.load(kind, there, default_api_timeout_ms="5000", request_timeout_ms="5000")
    finally:
        cluster.well()
    assert outcome.error == "ProtocolError"
    assert "more elements than any that Kafka sends" in outcome.message
    assert api.name in outcome.message
    assert outcome.memory < guarded.MOST_MEMORY
    assert outcome.seconds < 6
