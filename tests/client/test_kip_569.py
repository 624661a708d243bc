"""KIP-569: type and documentation of configurations as Kafka has them, and the type and validator of its draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.client.negotiation import connect
from kshell.errors import ProtocolError
from kshell.protocol.messages.configs import DESCRIBE_CONFIGS
from kshell.sources.brokers.configs import _type
from tests.server import Node, Quorum, settings

POLICY: dict[str, Any] = {
    "name": "cleanup.policy", "value": "delete", "readOnly": False, "configSource": 5, "isSensitive": False,
    "synonyms": [{"name": "log.cleanup.policy", "value": "delete", "source": 5}],
    "documentation": "Compact or delete.",
}  # fmt: skip
SECRET: dict[str, Any] = {
    "name": "ssl.key.password",
    "value": None,
    "readOnly": True,
    "isSensitive": True,
    "synonyms": [],
}


def ask(node: Node, *, documentation: bool = True, **properties: str) -> tuple[int, list[dict[str, Any]]]:
    wanted = {
        "resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": None}],
        "includeSynonyms": True,
        "includeDocumentation": documentation,
    }
    connection = node.quorum.keep(connect("127.0.0.1", node.port, settings(**properties)))
    answer = connection.request(DESCRIBE_CONFIGS, wanted)
    return answer.version, answer.body["results"][0]["configs"]


@pytest.fixture
def drafted() -> Iterator[Node]:
    with Quorum(brokers=1, dialects=["kip-569-draft"]) as quorum:
        validator = {"caseSensitive": True, "values": ["compact", "delete"]}
        quorum.configs[2, "orders"] = [
            {**POLICY, "type": "LIST", "validator": validator},
            {**SECRET, "type": None, "validator": None},
        ]
        yield quorum.brokers[0]


@pytest.fixture
def landed() -> Iterator[Node]:
    with Quorum(brokers=1) as quorum:
        quorum.configs[2, "orders"] = [{**POLICY, "configType": 7}, {**SECRET, "configType": 99, "documentation": None}]
        yield quorum.brokers[0]


def test_the_draft_tells_type_and_validator(drafted: Node) -> None:
    version, (policy, secret) = ask(drafted, dialect="kip-569-draft")
    assert version == 3
    assert policy == {**POLICY, "type": "LIST", "validator": {"caseSensitive": True, "values": ["compact", "delete"]}}
    assert (secret["type"], secret["validator"]) == (None, None)


def test_the_draft_tells_documentation_only_when_asked(drafted: Node) -> None:
    assert ask(drafted, documentation=False, dialect="kip-569-draft")[1][0]["documentation"] is None


def test_below_version_3_the_draft_tells_neither(drafted: Node) -> None:
    drafted.ranges[DESCRIBE_CONFIGS.key] = (1, 2)
    version, (policy, _) = ask(drafted, dialect="kip-569-draft")
    assert version == 2
    assert {"type", "validator", "documentation"} & policy.keys() == set()


@pytest.mark.parametrize("high", [3, 4])
def test_a_number_for_the_type_that_nobody_knows_is_kept(landed: Node, high: int) -> None:
    landed.ranges[DESCRIBE_CONFIGS.key] = (1, high)
    version, (policy, secret) = ask(landed)
    assert version == high
    assert (policy["configType"], policy["documentation"]) == (7, "Compact or delete.")
    assert (secret["configType"], secret["documentation"], secret["value"]) == (99, None, None)


def test_the_draft_on_a_release_is_a_typed_error(landed: Node) -> None:
    with pytest.raises(ProtocolError) as caught:
        ask(landed, dialect="kip-569-draft")
    assert "dialect" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("told", "name"), [(1, "BOOLEAN"), (9, "PASSWORD"), (0, "UNKNOWN"), (99, "UNKNOWN"), (-1, "UNKNOWN")]
)
def test_a_type_that_nobody_knows_is_unknown_and_no_error(told: int, name: str) -> None:
    assert _type({"configType": told}) == name
