"""A cluster whose names are as long and as wide as Kafka takes them, with thirty replicas to a partition."""

from __future__ import annotations

from pathlib import Path

from kshell.engine.session import Session
from tests.builders import uuid, value
from tests.commands.cluster import TOPIC, cluster, config, partition, topic

LONGEST = ("orders-of-the-" * 18)[:248] + "1"
"""249 characters, the most that a topic's name may have; another one differs from it by its last character only."""
USER = "ユーザー名がとても長い場合の例-支払いサービス-東京リージョン"
FAMILY = "team-👩‍👩‍👧‍👦-and-é́-" * 4
HOST = "kafka-broker-000000000001.availability-zone-1.internal.a-company-with-a-long-name.example"
BROKERS = range(1, 31)


def broker(broker_id: int) -> bytes:
    """A broker with two listeners of long names."""
    points = [
        {"name": f"LISTENER_FOR_CLIENTS_{number}", "host": HOST, "port": 9000 + number, "securityProtocol": 3}
        for number in range(2)
    ]
    return value("REGISTER_BROKER", 1, brokerId=broker_id, incarnationId=uuid(900 + broker_id), brokerEpoch=2**53,
                 endPoints=points, features=[], rack=f"rack-of-the-availability-zone-{USER}-{broker_id}",
                 fenced=broker_id == 3)  # fmt: skip


def acl(number: int, principal: str, name: str) -> bytes:
    """An ACL with every name long."""
    return value("ACCESS_CONTROL_ENTRY", id=uuid(number), resourceType=2, resourceName=name, patternType=3,
                 principal=f"User:{principal}", host="2001:0db8:0000:0000:0000:ff00:0042:8329", operation=12,
                 permissionType=2)  # fmt: skip


def quota(entity: dict[str, str | None], key: str, limit: float) -> bytes:
    """A quota of a user, a client, or both."""
    listed = [{"entityType": kind, "entityName": name} for kind, name in entity.items()]
    return value("CLIENT_QUOTA", entity=listed, key=key, value=limit, remove=False)


def session(folder: Path) -> Session:
    """A session on the cluster's directory."""
    twin = LONGEST[:-1] + "2"
    return cluster(
        folder,
        *map(broker, BROKERS),
        topic(1, LONGEST),
        topic(2, twin),
        topic(3, "short"),
        *(partition(1, number, list(BROKERS), [*BROKERS][number:], 1 + number) for number in range(3)),
        partition(2, 0, [3], [], -1),
        partition(3, 0, [1, 2, 3], [1, 2], 1),
        config(TOPIC, LONGEST, "min.insync.replicas", "2"),
        config(TOPIC, LONGEST, "follower.replication.throttled.replicas", ",".join(f"{n}:{n}" for n in BROKERS)),
        config(TOPIC, twin, "follower.replication.throttled.replicas", "*"),
        acl(1, USER, LONGEST),
        acl(2, FAMILY, twin),
        quota({"user": USER, "client-id": FAMILY}, "producer_byte_rate", 1e15),
        quota({"user": None}, "controller_mutation_rate", 0.125),
        value("USER_SCRAM_CREDENTIAL", name=USER, mechanism=1, salt=b"s", storedKey=b"k", serverKey=b"v",
              iterations=4096),
    )  # fmt: skip
