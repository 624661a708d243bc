"""The story of a broker that was fenced, came back, lost a disk, shut down in the orderly way and was unregistered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.node import copy_node
from tests.live import oneshot
from tests.tools.record_fixtures import cluster_4_4_broker, kafka_4_4_broker

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.long]

STORY = [
    "broker-registered", "broker-unfenced",
    "broker-fenced", "broker-registered", "broker-unfenced",
    "broker-directory-lost",
    "broker-controlled-shutdown", "broker-fenced", "broker-unregistered",
]  # fmt: skip


@pytest.mark.parametrize("version", ["3.9.2", "4.0.0", "4.3.1", "4.4.0"])
def test_why_tells_it_in_order(version: str, tmp_path: Path) -> None:
    jars.require(version)
    with cluster_4_4_broker(version) as cluster:
        (controller,) = kafka_4_4_broker(cluster)
        copy_node(controller, tmp_path / "copy")
    told = json.loads(oneshot.run(tmp_path / "copy", "why", "broker-1", "-o", "json").stdout)
    assert [row["event"] for row in told["events"]] == STORY
    what = [row["what"] for row in told["events"]]
    assert "without a controlled shutdown" in what[2] and "by a new process" in what[3]
    assert "in its controlled shutdown" in what[7]
    assert told["answer"]["sentence"].startswith("Broker 1 is not registered since ")
