"""A cluster in which nothing is wrong, as records, and ways to spoil it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kshell.protocol.batches import write_batch
from tests import builders
from tests.builders import control, control_batch, uuid, value

HOUR = 3600_000
FEATURES = [
    {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 30},
    {"name": "kraft.version", "minSupportedVersion": 0, "maxSupportedVersion": 1},
]
ORDERS = uuid(100)


def broker(number: int, **more: Any) -> bytes:
    """A broker that serves, each in a rack of its own."""
    point = {"name": "B", "host": "h", "port": 9092, "securityProtocol": 0}
    given = {"rack": f"rack-{number}", "fenced": False, "brokerEpoch": number, "features": FEATURES, **more}
    return value("REGISTER_BROKER", 1, brokerId=number, incarnationId=uuid(number), endPoints=[point], **given)


def controller(number: int, **more: Any) -> bytes:
    """A controller's registration."""
    point = {"name": "C", "host": "h", "port": 9093, "securityProtocol": 0}
    given = {"features": FEATURES, **more}
    return value("REGISTER_CONTROLLER", controllerId=number, incarnationId=uuid(number), zkMigrationReady=False,
                 endPoints=[point], **given)  # fmt: skip


def partition(number: int = 0, topic: int = 100, replicas: Sequence[int] = (1, 2, 3), **more: Any) -> bytes:
    """A partition whose replicas are all in sync, led by the first."""
    given = {"isr": list(replicas), "leader": replicas[0], "leaderEpoch": 1, "partitionEpoch": 1, **more}
    return value("PARTITION", 2, partitionId=number, topicId=uuid(topic), replicas=list(replicas),
                 directories=[uuid(7)] * len(replicas), **given)  # fmt: skip


def config(kind: int, resource: str, name: str, text: str) -> bytes:
    """A dynamic config; 2 is TOPIC, 4 BROKER."""
    return value("CONFIG", resourceType=kind, resourceName=resource, name=name, value=text)


def acl(number: int, **more: Any) -> bytes:
    """An ACL for one user and one topic that is there."""
    given = {"resourceType": 2, "resourceName": "orders", "patternType": 3, "principal": "User:alice", "host": "*",
             "operation": 3, "permissionType": 3, **more}  # fmt: skip
    return value("ACCESS_CONTROL_ENTRY", id=uuid(number), **given)


def scram(user: str, iterations: int) -> bytes:
    """A SCRAM credential."""
    return value("USER_SCRAM_CREDENTIAL", name=user, mechanism=1, salt=b"s", storedKey=b"k", serverKey=b"v",
                 iterations=iterations)  # fmt: skip


def quota(user: str) -> bytes:
    """A quota of a user."""
    return value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": user}], key="producer_byte_rate",
                 value=1000.0, remove=False)  # fmt: skip


def token(expiry: int) -> bytes:
    """A delegation token."""
    return value("DELEGATION_TOKEN", owner="User:alice", requester="User:alice", renewers=[], issueTimestamp=1,
                 maxTimestamp=expiry + HOUR, expirationTimestamp=expiry, tokenId="t")  # fmt: skip


def records() -> list[bytes]:
    """Three brokers, three controllers, two topics, a user with all that belongs to it."""
    return [
        value("FEATURE_LEVEL", name="metadata.version", featureLevel=30),
        *(controller(number) for number in (11, 12, 13)),
        *(broker(number) for number in (1, 2, 3)),
        config(4, "", "min.insync.replicas", "2"),
        value("TOPIC", name="orders", topicId=ORDERS),
        partition(0),
        partition(1, replicas=(2, 3, 1)),
        value("TOPIC", name="payments", topicId=uuid(101)),
        partition(0, 101, (3, 1, 2)),
        config(2, "payments", "retention.ms", "1000"),
        acl(1),
        acl(2, resourceName="pay", patternType=4, operation=4),
        scram("alice", 16384),
        quota("alice"),
        token(builders.TIME + 24 * HOUR),
    ]


def write(
    directory: Path,
    *more: bytes,
    without: Sequence[int] = (),
    voters: Sequence[int] = (11, 12, 13),
    snapshot_before: int | None = HOUR,
    later: int = 0,
    kept: Sequence[bytes] = (),
) -> Path:
    """The healthy records (but for some, by their place) and what comes after them, as a directory.

    A snapshot of the healthy ones was written ``snapshot_before`` milliseconds before the last record (``None``: there
    is none), which is ``later`` than all others. It holds what is ``kept``, too, which no record says.
    """
    base = [record for at, record in enumerate(records()) if at not in without]
    leader = control(2, version=0, leaderId=11, voters=[{"voterId": number} for number in voters])
    state = {"leaderId": 11, "leaderEpoch": 1, "currentVoters": [{"voterId": number} for number in voters]}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "quorum-state").write_text(json.dumps(state))
    at = 1 + len(base)
    last = write_batch(
        [(None, record) for record in (*more, value("NO_OP"))],
        base_offset=at, epoch=1, timestamp=builders.TIME + later,
    )  # fmt: skip
    builders.write_log(directory, control_batch([leader]), builders.batch(base, 1), last)
    if snapshot_before is not None:
        taken = builders.TIME + later - snapshot_before
        raw = builders.snapshot([*base, *kept], timestamp=taken)
        builders.write_snapshot(directory, raw, at)
    return directory
