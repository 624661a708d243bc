"""A dialect on a peer that does not speak it: a typed error, never an answer that was misread (KIP-35/569/885/919)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as search
from hypothesis import strategies as st

from kshell.client.connection import Connection, Flow
from kshell.client.negotiation import connect, dialect_apis
from kshell.errors import ConnectError, NodeError, ProtocolError
from kshell.protocol.messages.drafts import DIALECTS
from tests.protocol.strategies import messages
from tests.server import Quorum, settings
from tests.server.apis import apis
from tests.server.frames import encode_response

CHANGED = {
    "kip-35-draft": [0],
    "kip-569-draft": [3],
    "kip-885": [1],
    "kip-885-apiversions": [4],
    "kip-919-draft": [13],
}
"""Dialect -> the versions whose layout is not Kafka's."""
CASES = [(name, version) for name, versions in CHANGED.items() for version in versions]

IDS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", min_size=22, max_size=22)
DOCUMENTATION = st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=700)


class Replay:
    """A transport that has one answer."""

    node = "node:9092"

    def __init__(self, frame: bytes) -> None:
        self.frame = frame

    def send(self, frame: bytes, deadline: float) -> None:
        """Nothing listens."""

    def receive(self, deadline: float, flow: Flow | None = None) -> bytes:
        """The answer, whatever was asked."""
        return self.frame

    def has_ended(self) -> bool:
        """Never."""
        return False

    def close(self) -> None:
        """Nothing is open."""


def real(name: str, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """What Kafka itself may answer."""
    api = apis()[DIALECTS[name].key]
    made = messages(api.response, version, unknown_tags=False)
    if name == "kip-885":
        return st.builds(lambda body, id_: body | {"endpointType": 1, "clusterId": id_, "errorCode": 0}, made, IDS)
    if name == "kip-569-draft":
        return st.builds(_configs, made, st.lists(st.tuples(st.integers(0, 9), DOCUMENTATION), min_size=1, max_size=12))
    if name == "kip-35-draft":
        return made.map(lambda body: body | {"errorCode": max(body["errorCode"], -1)})
    return made


def _configs(body: dict[str, Any], parts: list[tuple[int, str | None]]) -> dict[str, Any]:
    configs: list[dict[str, Any]] = [
        {"name": f"config.{i}", "value": str(i), "configSource": 5, "synonyms": [],
         "configType": kind, "documentation": text}
        for i, (kind, text) in enumerate(parts)
    ]  # fmt: skip
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 4, "resourceName": "1", "configs": configs}
    return body | {"results": [result, *body["results"][:1]]}


def test_every_dialect_is_here() -> None:
    assert CHANGED.keys() == DIALECTS.keys()


@pytest.mark.parametrize(("name", "version"), CASES)
@search(max_examples=60)
@given(data=st.data())
def test_what_kafka_answers_is_never_read_as_a_draft(name: str, version: int, data: st.DataObject) -> None:
    api = DIALECTS[name]
    body = data.draw(real(name, version))
    frame = encode_response(apis()[api.key], version, 1, body)
    connection = Connection(Replay(frame), dialect_apis=dialect_apis(frozenset({name})))
    with pytest.raises(ProtocolError) as caught:
        connection.exchange(connection.api(apis()[api.key]), version, {})
    assert caught.value.hint == "a dialect was asked for: does the node speak it?"
    assert not connection.is_open


@pytest.mark.parametrize(("name", "version"), CASES)
@search(max_examples=30)
@given(data=st.data())
def test_what_a_draft_answers_is_read_back(name: str, version: int, data: st.DataObject) -> None:
    api = DIALECTS[name]
    body = data.draw(messages(api.response, version, unknown_tags=False))
    for result in body.get("results", ()):
        for config in result["configs"]:
            config["type"] = "STRING"
    if name == "kip-885":
        body |= {"clusterId": "Ai5mFmTgQ5uaDrOX6gSlbQ"}
    if name == "kip-885-apiversions" and body["brokerSoftwareName"]:
        body |= {"brokerSoftwareName": "apache-kafka-java"}
    connection = Connection(
        Replay(encode_response(api, version, 1, body)), dialect_apis=dialect_apis(frozenset({name}))
    )
    assert connection.exchange(connection.api(apis()[api.key]), version, {}) == body


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("release", ["3.3", "3.9", "4.3"])
def test_a_dialect_on_a_real_servers_layout_is_a_typed_error(name: str, release: str) -> None:
    api = apis()[DIALECTS[name].key]
    version = CHANGED[name][0]
    config = {"name": "a", "value": "b", "synonyms": [], "configType": 2, "documentation": "What it does."}
    message = {"resources": [{"resourceType": 4, "resourceName": "1", "configurationKeys": None}], "topics": []}
    with Quorum(brokers=1, release=release) as quorum:
        broker = quorum.brokers[0]
        quorum.configs[4, "1"] = [config]
        broker.ranges |= {api.key: (0, 13)}
        with pytest.raises(NodeError) as caught:
            made = quorum.keep(connect("127.0.0.1", broker.port, settings(dialect=name)))
            made.exchange(made.api(api), version, message | {"includeDocumentation": True})
        assert isinstance(caught.value, ProtocolError | ConnectError)
