"""Small clusters in a directory, for what must be judged: brokers, topics with partitions in any state, configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kshell.engine.session import Session
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests import builders
from tests.builders import uuid, value
from tests.commands.shell import opened

TOPIC, BROKER, GROUP, CLIENT_METRICS = 2, 4, 32, 16


def broker(broker_id: int, *, fenced: bool = False, rack: str | None = None) -> bytes:
    """A registration."""
    point = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9000 + broker_id, "securityProtocol": 0}
    return value("REGISTER_BROKER", 1, brokerId=broker_id, incarnationId=uuid(900 + broker_id), brokerEpoch=broker_id,
                 endPoints=[point], features=[], rack=rack, fenced=fenced)  # fmt: skip


def config(kind: int, name: str, key: str, text: str) -> bytes:
    """A config that is set."""
    return value("CONFIG", resourceType=kind, resourceName=name, name=key, value=text)


def partition(topic: int, number: int, replicas: list[int], isr: list[int], leader: int, **more: Any) -> bytes:
    """A partition of the topic with that id."""
    facts: dict[str, Any] = {"removingReplicas": [], "addingReplicas": [], "leaderEpoch": 1, "partitionEpoch": 2}
    facts |= {"partitionId": number, "topicId": uuid(topic), "replicas": replicas, "isr": isr, "leader": leader}
    return value("PARTITION", 2 if "eligibleLeaderReplicas" in more else 0, **(facts | more))


def topic(number: int, name: str) -> bytes:
    """A topic; its id is :func:`tests.builders.uuid` of the number."""
    return value("TOPIC", name=name, topicId=uuid(number))


def write(folder: Path, *values: bytes) -> Path:
    """A metadata directory whose log has those records."""
    place = folder / METADATA_DIRECTORY
    builders.write_log(
        place, builders.control_batch([builders.leader_change()]), builders.batch(values, 1), base_offset=0
    )
    return place


def cluster(folder: Path, *values: bytes) -> Session:
    """A session on such a directory."""
    return opened(write(folder, *values))
