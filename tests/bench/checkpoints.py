"""A directory with a large log of partition changes, and the snapshots that a node would have written along it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kshell.engine.session import Session
from kshell.metadata.families.cluster import Broker
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition, Topic
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests import builders
from tests.builders import encode_value, kind

_PER_BATCH = 500


def directory(log: Path, count: int) -> Path:
    """The log with so many snapshots at equal distances, the last one near its end; made once, beside it."""
    made = log.parent / f"with-{count}-checkpoints"
    if not made.exists():
        source = DirectorySource(str(log))
        past, end = Past(source), Session(source).loaded.log_end_offset or 0
        with tempfile.TemporaryDirectory(dir=log.parent) as work:
            target = Path(work, "made", METADATA_DIRECTORY)
            target.mkdir(parents=True)
            (target / log.name).hardlink_to(log)
            for number in range(1, count + 1):
                end_offset = end * number // count - _PER_BATCH
                loaded = past.at(end_offset - 1)
                assert loaded is not None
                raw = builders.snapshot(list(_values(loaded.image)), per_batch=_PER_BATCH)
                builders.write_snapshot(target, raw, end_offset)
            shutil.move(target.parent, made)
    return made


def newest_alone(whole: Path) -> Path:
    """The same log with the newest snapshot and no other."""
    made = whole.with_name(f"{whole.name}-newest-alone")
    if not made.exists():
        target = made / METADATA_DIRECTORY
        target.mkdir(parents=True)
        newest = max((whole / METADATA_DIRECTORY).glob("*.checkpoint"))
        (target / newest.name).hardlink_to(newest)
        for log in (whole / METADATA_DIRECTORY).glob("*.log"):
            (target / log.name).hardlink_to(log)
    return made


def _values(image: Image) -> Iterator[bytes]:
    """An image as the records of a snapshot, of the families that such a log has."""
    for name, level in image["features"].items():
        yield encode_value(kind("FEATURE_LEVEL"), 0, {"name": name, "featureLevel": level.value})
    for registered in image["brokers"].values():
        yield encode_value(kind("REGISTER_BROKER"), 3, _registration(registered.value))
    for topic in image["topics"].values():
        yield from _topic(topic)
    for (_, name), configs in image["configs"].items():
        for key, config in configs.items():
            data = {"resourceType": 2, "resourceName": name, "name": key, "value": config.value}
            yield encode_value(kind("CONFIG"), 0, data)


def _registration(broker: Broker) -> dict[str, object]:
    points = [{"name": one.name, "host": one.host, "port": one.port, "securityProtocol": 0} for one in broker.listeners]
    return {
        "brokerId": broker.id, "brokerEpoch": broker.epoch, "incarnationId": broker.incarnation_id,
        "endPoints": points, "features": [], "rack": broker.rack, "fenced": broker.fenced,
        "logDirs": list(broker.directories),
    }  # fmt: skip


def _topic(topic: Topic) -> Iterator[bytes]:
    yield encode_value(kind("TOPIC"), 0, {"name": topic.name, "topicId": topic.id})
    for number, value in topic.scan():
        assert isinstance(value, Partition)
        data = {
            "partitionId": number, "topicId": topic.id, "replicas": list(value.replicas), "isr": list(value.isr),
            "removingReplicas": [], "addingReplicas": [], "leader": value.leader, "leaderEpoch": value.leader_epoch,
            "partitionEpoch": value.partition_epoch, "directories": list(value.directories),
        }  # fmt: skip
        if value.elr:
            data["eligibleLeaderReplicas"] = list(value.elr)
        if value.last_known_elr:
            data["lastKnownElr"] = list(value.last_known_elr)
        yield encode_value(kind("PARTITION"), 2, data)
