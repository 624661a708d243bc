"""``kshell mcp`` on a running cluster: every tool, with the official client, by its controllers and by its brokers."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.client.client import Client

from kshell.engine import tools
from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.mcp.asking import conversation, questions

pytestmark = pytest.mark.live

VERSION = "4.4.0"
PAST = ("diff", "log", "blame", "timeline", "when")
"""What brokers cannot answer: they have no log of the metadata."""


def test_every_tool_answers_on_a_running_cluster_and_sees_what_is_new() -> None:
    jars.require(VERSION)
    with Cluster(VERSION, controllers=1, brokers=1) as cluster, cluster.admin() as admin:
        admin.create_topic("first", 1, 1)
        controllers, brokers = cluster.bootstrap_controllers, cluster.bootstrap_servers

        async def talk(client: Client) -> None:
            async def ask(tool: str, source: str, **arguments: Any) -> Any:
                return await client.call_tool(tool, {"source": source, **arguments})

            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert listed == [command.name for command in tools.offered()]
            for source in (controllers, brokers):
                for tool, arguments in questions("first", "5").items():
                    answer = await ask(tool, source, **arguments)
                    refused = source == brokers and tool in PAST
                    assert answer.is_error is refused, (source, tool, answer)
                    assert refused or answer.structured_content["source"] == source
            quorum = (await ask("quorum", controllers)).structured_content["result"]
            assert quorum["leaderId"] == cluster.controllers[0].id and quorum["highWatermark"] > 5
            admin.create_topic("second", 1, 1)
            answer = await ask("topics", controllers, columns=["name"])
            assert [row["name"] for row in answer.structured_content["result"]] == ["first", "second"]

        conversation(["-q", controllers, "-b", brokers], talk)
