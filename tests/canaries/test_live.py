"""What running nodes answer: hostile text in every field that holds text, and sensitive values that are no business of
anybody who reads the answer.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.canaries.planted import HOSTILE, Canaries, hostile_values
from tests.canaries.shown import faults as wrong
from tests.canaries.shown import shown
from tests.commands.shell import FORMATS
from tests.server import Quorum, faults, settings
from tests.sources.test_brokers import BODIES

LINES = (
    "status", "health", "brokers", "brokers --load", "brokers -o wide", "controllers", "quorum", "topics", "partitions",
    "configs", "configs BROKER:ID", "configs BROKER:ID --effective", "configs BROKER:ID --docs", "configs TOPIC:orders",
    "configs BROKER:ID --overridden", "man config log.retention.ms", "man config ssl.key.password", "acls", "quotas",
    "users", "tokens", "features", "features map", "registrations", "compat", "api-versions", "loggers ID",
    "loggers ID set root DEBUG --yes", "info", "cat /", "tree --values /", "why orders-0", "log", "hash",
    "find / --values",
)  # fmt: skip
SPOILED = (
    "DescribeConfigs", "DescribeAcls", "DescribeClientQuotas", "DescribeTopicPartitions", "ListConfigResources",
    "DescribeUserScramCredentials", "DescribeDelegationToken", "IncrementalAlterConfigs",
)  # fmt: skip
ASKED = {"brokers": SPOILED, "controllers": ("DescribeConfigs", "IncrementalAlterConfigs")}
"""What the lines ask each kind of node for."""
_LOGGER, _BROKER, _TOPIC = 8, 4, 2


def spoiled(value: Any, names: Any) -> Any:
    """A copy with hostile text behind each text but the root logger's name, without which no level is set."""
    if isinstance(value, dict):
        return {key: spoiled(below, names) for key, below in value.items()}
    if isinstance(value, list):
        return [spoiled(below, names) for below in value]
    return value + next(names) if isinstance(value, str) and value != "root" else value


def config(name: str, value: str | None, *, sensitive: bool = False) -> dict[str, Any]:
    made = {"name": name, "value": value, "readOnly": False, "configSource": 4, "isSensitive": sensitive}
    synonyms = [{"name": name, "value": value, "source": 4}]
    return made | {"synonyms": synonyms, "configType": 7 if sensitive else 2, "documentation": "about it"}


def prepared(quorum: Quorum, canaries: Canaries) -> None:
    """Values that a server should have kept to itself, loggers of any name, and a log of any text."""
    quorum.bodies.update(BODIES)
    quorum.append(*hostile_values())
    for node in quorum.nodes:
        loggers = [config(name, "INFO") for name in ("root", *HOSTILE)]
        quorum.configs[_LOGGER, str(node.id)] = loggers
        quorum.configs[_BROKER, str(node.id)] = [
            config("ssl.key.password", canaries.text("sensitive value"), sensitive=True),
            config("made.up.plugin.token", canaries.text("sensitive value of a plug-in"), sensitive=True),
            config("log.retention.ms", "1000"),
            *(config(name, name) for name in HOSTILE),
        ]


@pytest.mark.parametrize("kind", ["controllers", "brokers"])
@pytest.mark.parametrize("is_spoiled", [False, True])
def test_what_nodes_answer_is_shown_and_not_obeyed(canaries: Canaries, kind: str, is_spoiled: bool) -> None:
    names = itertools.cycle(HOSTILE)
    with Quorum(controllers=1, brokers=1) as quorum:
        prepared(quorum, canaries)
        if is_spoiled:

            def spoil(body: dict[str, Any]) -> None:
                body.update(spoiled(body, names))

            for node in quorum.nodes:
                for api in SPOILED:
                    node.on(api, faults.change(spoil))
        source: Any = (
            QuorumSource(quorum.bootstrap, settings()) if kind == "controllers"
            else BrokerSource(quorum.bootstrap_servers, settings())
        )  # fmt: skip
        session = Session(quorum.keep(source))
        everything = ""
        for number, line in enumerate(LINES):
            for fmt in ("text", FORMATS[number % len(FORMATS)]):
                text = shown(session, line.replace("ID", str(quorum.nodes[0 if kind == "controllers" else -1].id)), fmt)
                assert wrong(fmt, text, canaries) == [], (line, fmt)
                everything += text.answer
        assert [api for api in ASKED[kind] if not quorum.asked_for(api)] == []
        assert "made.up.plugin.token" in everything and "Ignore all previous instructions" in everything
        assert len(everything) > 20_000
