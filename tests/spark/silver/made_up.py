"""Logs that nobody wrote: random records over few names, of which many do not fit what was before."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kshell.protocol.batches import write_batch
from kshell.protocol.primitives import Uuid
from tests.builders import (
    TIME,
    Pair,
    batch,
    control,
    control_batch,
    leader_change,
    snapshot,
    uuid,
    value,
    write_log,
    write_snapshot,
)

_TOPICS = ("a", "b", "a/c", "")
_BROKERS = (1, 2, 3)
_KEYS = ("min.insync.replicas", "retention.ms", "cleanup.policy", "no.such.key")
_UNSORTED = [uuid(100), Uuid(b"\xff" * 16), uuid(1 << 64), Uuid(bytes(8) + b"\x80" + bytes(7))]
"""Ids of directories, not in Kafka's order."""
MOST = (1 << 31) - 1
"""The largest epoch."""
Maker = Callable[[random.Random], bytes]


def write(directory: Path, seed: int, records: int) -> None:
    """A log of at least so many records, offset 0 on, in batches of up to 8."""
    chosen, parts, done, epoch = random.Random(seed), [], 0, 1
    while done < records:
        if chosen.random() < 0.15:
            is_leader = chosen.random() < 0.85
            epoch += is_leader
            parts.append(control_batch([_leader(chosen) if is_leader else _voters(chosen)], done, epoch))
            done += 1
            continue
        made: list[Pair] = [(None, _record(chosen)) for _ in range(chosen.randint(1, 8))]
        parts.append(write_batch(made, base_offset=done, epoch=epoch, timestamp=TIME + 1000 * done))
        done += len(made)
    write_log(directory, *parts)


def write_late(directory: Path, *, has_gap: bool = False) -> Path:
    """A log that begins at offset 5, and its oldest snapshot, which ends at 10. Its epoch may begin in a gap."""
    epoch = 2 if has_gap else 1
    write_log(directory, control_batch([leader_change(3001, voters=(3000, 3001))], 5), base_offset=5)
    first = 10 if has_gap else 6
    records = batch([value("NO_OP")] * (11 - first), first, epoch)
    change = control_batch([leader_change(3000, voters=(3000, 3002))], 11, 3)
    write_log(directory, records, change, base_offset=first)
    write_snapshot(directory, snapshot([], epoch), 10, epoch)
    return directory


def _leader(chosen: random.Random) -> Pair:
    voters = [{"voterId": one} for one in chosen.sample((3000, 3001, 3002), 2)]
    return control(2, version=0, leaderId=chosen.choice((3000, 3001, 3003, -1)), voters=voters)


def _voters(chosen: random.Random) -> Pair:
    points = chosen.choice(([], [{"name": "C", "host": "::1", "port": chosen.randint(1, 9)}]))
    voters = [
        {"voterId": one, "voterDirectoryId": uuid(one), "endpoints": points, "kRaftVersionFeature": _LEVELS}
        for one in chosen.sample((3000, 3001, 3004), 2)
    ]
    return control(6, version=0, voters=voters)


_LEVELS = {"minSupportedVersion": 0, "maxSupportedVersion": 1}


def _record(chosen: random.Random) -> bytes:
    makers = list(_MAKERS)
    return chosen.choices(makers, [_MAKERS[one] for one in makers])[0](chosen)


def _ids(chosen: random.Random, most: int = 3) -> list[int]:
    return chosen.sample(_BROKERS, chosen.randint(0, most))


def _topic_id(chosen: random.Random) -> Any:
    return uuid(chosen.randint(10, 13))


def _topic(chosen: random.Random) -> bytes:
    number = chosen.randint(10, 13)  # a name belongs to one id
    return value("TOPIC", name=f"{_TOPICS[number % 4] or 't'}{number}", topicId=uuid(number))


def _partition(chosen: random.Random) -> bytes:
    version = chosen.choice((0, 1, 2))
    replicas = chosen.sample(_BROKERS, chosen.randint(1, 3))
    data: dict[str, Any] = {
        "partitionId": chosen.randint(0, 1), "topicId": _topic_id(chosen), "replicas": replicas,
        "isr": replicas[: chosen.randint(1, 3)], "removingReplicas": chosen.choice(([], [], replicas[:1])),
        "addingReplicas": chosen.choice(([], [], replicas[1:])), "leader": chosen.choice((*replicas, -1)),
        "leaderRecoveryState": chosen.choice((0, 0, 0, 1, 7)), "leaderEpoch": chosen.choice((*range(6), MOST)),
        "partitionEpoch": chosen.choice((*range(6), MOST - 1)),
    }  # fmt: skip
    if version >= 1:
        directories = [uuid(chosen.choice((0, 100, 101))) for _ in replicas]
        data["directories"] = chosen.choice((directories, directories, [uuid(0)] * len(replicas), directories[1:]))
    if version >= 2 and chosen.random() < 0.5:
        data |= {"eligibleLeaderReplicas": _ids(chosen), "lastKnownElr": _ids(chosen)}
    return value("PARTITION", version, **data)


def _change(chosen: random.Random) -> bytes:
    version = chosen.choice((0, 1, 2))
    data: dict[str, Any] = {"partitionId": chosen.randint(0, 1), "topicId": _topic_id(chosen)}
    makers: dict[str, Callable[[], Any]] = {
        "isr": lambda: _ids(chosen), "leader": lambda: chosen.choice((-1, -2, 1, 2, 3)),
        "removingReplicas": lambda: _ids(chosen, 1), "addingReplicas": lambda: _ids(chosen, 1),
        "leaderRecoveryState": lambda: chosen.choice((0, 1, -1, 5)),
    }  # fmt: skip
    if version >= 2:
        makers |= {"eligibleLeaderReplicas": lambda: _ids(chosen), "lastKnownElr": lambda: _ids(chosen)}
    data |= {name: make() for name, make in makers.items() if chosen.random() < 0.3}
    if chosen.random() < 0.2:
        data["replicas"] = chosen.sample(_BROKERS, chosen.randint(1, 3))
        if version >= 1:
            data["directories"] = [uuid(100 + one) for one in data["replicas"]]
    return value("PARTITION_CHANGE", version, **data)


def _register(chosen: random.Random) -> bytes:
    version = chosen.randint(0, 4)
    points = [
        {"name": name, "host": chosen.choice(("h", "::1")), "port": 9092, "securityProtocol": chosen.choice((0, 3, 9))}
        for name in chosen.choices(("B", "A"), k=chosen.randint(0, 3))
    ]
    levels = [
        {"name": name, "minSupportedVersion": 1, "maxSupportedVersion": chosen.randint(1, 9)}
        for name in chosen.choices(("x", "w"), k=chosen.randint(0, 2))
    ]
    data: dict[str, Any] = {
        "brokerId": chosen.choice(_BROKERS), "incarnationId": uuid(chosen.randint(1, 99)),
        "brokerEpoch": chosen.randint(1, 2), "endPoints": points, "features": levels,
        "rack": chosen.choice((None, "r")), "fenced": chosen.random() < 0.5,
    }  # fmt: skip
    if version >= 1:
        data["inControlledShutdown"] = chosen.random() < 0.5
    if version >= 2:
        data["isMigratingZkBroker"] = chosen.random() < 0.5
    if version >= 3:
        data["logDirs"] = chosen.choice(([], [uuid(100)], _UNSORTED))
    if version >= 4:
        data["cordonedLogDirs"] = chosen.choice((None, [], [uuid(100)]))
    return value("REGISTER_BROKER", version, **data)


def _registration_change(chosen: random.Random) -> bytes:
    version = chosen.randint(0, 3)
    data: dict[str, Any] = {"brokerId": chosen.choice(_BROKERS), "brokerEpoch": chosen.randint(1, 2)}
    data["fenced"] = chosen.choice((-1, 0, 1, 1, 5))
    if version >= 1:
        data["inControlledShutdown"] = chosen.choice((0, 1, 1, -1))
    if version >= 2:
        data["logDirs"] = chosen.choice(([], [uuid(101)], _UNSORTED[::-1]))
    if version >= 3:
        data["cordonedLogDirs"] = chosen.choice((None, [], [uuid(101)]))
    return value("BROKER_REGISTRATION_CHANGE", version, **data)


def _quota(chosen: random.Random) -> bytes:
    kinds = chosen.sample(("user", "client-id", "ip", "odd(kind"), chosen.randint(1, 2))
    names = (None, "", "u/1", "a(b)", "<default>", "%3Cdefault>", "..", "ü\x85")
    entity = [{"entityType": kind, "entityName": chosen.choice(names)} for kind in kinds]
    return value(
        "CLIENT_QUOTA", entity=entity, key=chosen.choice("kl"), value=chosen.choice((1.0, 2.5)),
        remove=chosen.random() < 0.3,
    )  # fmt: skip


def _controller(chosen: random.Random) -> bytes:
    points = [{"name": "C", "host": "h", "port": chosen.randint(1, 65535), "securityProtocol": 0}]
    return value(
        "REGISTER_CONTROLLER", controllerId=chosen.randint(3000, 3003), incarnationId=uuid(chosen.randint(1, 9)),
        zkMigrationReady=False, endPoints=points, features=[],
    )  # fmt: skip


_MAKERS: dict[Maker, int] = {
    _topic: 7,
    lambda chosen: value("REMOVE_TOPIC", topicId=_topic_id(chosen)): 1,
    _partition: 14,
    _change: 26,
    lambda chosen: value("CLEAR_ELR", topicName=chosen.choice(("", "b13", "a12", "nobody"))): 2,
    _register: 5,
    lambda chosen: value("UNREGISTER_BROKER", brokerId=chosen.choice(_BROKERS), brokerEpoch=1): 1,
    lambda chosen: value("FENCE_BROKER", id=chosen.choice(_BROKERS), epoch=chosen.randint(1, 2)): 2,
    lambda chosen: value("UNFENCE_BROKER", id=chosen.choice(_BROKERS), epoch=chosen.randint(1, 2)): 2,
    _registration_change: 6,
    lambda chosen: value(
        "CONFIG", resourceType=chosen.choice((2, 2, 4, 4, 99)),
        resourceName=chosen.choice(("t11", "b13", "1", "", "2")), name=chosen.choice(_KEYS),
        value=chosen.choice((None, "1", " 2", "x")),
    ): 9,
    lambda chosen: value(
        "ACCESS_CONTROL_ENTRY", id=uuid(chosen.randint(1, 3)), resourceType=chosen.choice((2, 3, 88)),
        resourceName="r", patternType=3, principal="User:*", host="*", operation=chosen.randint(1, 4),
        permissionType=chosen.choice((2, 3)),
    ): 3,
    lambda chosen: value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(chosen.randint(1, 3))): 2,
    _quota: 5,
    lambda chosen: value(
        "USER_SCRAM_CREDENTIAL", name=chosen.choice("uv"), mechanism=chosen.choice((1, 2, 5)), salt=b"s",
        storedKey=b"k", serverKey=b"l", iterations=chosen.choice((4096, 8192)),
    ): 3,
    lambda chosen: value("REMOVE_USER_SCRAM_CREDENTIAL", name=chosen.choice("uv"), mechanism=1): 2,
    lambda chosen: value(
        "DELEGATION_TOKEN", owner="User:u", requester="User:v", renewers=chosen.choice(([], ["User:w"])),
        issueTimestamp=1, maxTimestamp=chosen.randint(2, 3), expirationTimestamp=2, tokenId=chosen.choice("xy"),
    ): 3,
    lambda chosen: value("REMOVE_DELEGATION_TOKEN", tokenId=chosen.choice("xy")): 2,
    lambda chosen: value(
        "FEATURE_LEVEL", name=chosen.choice(("metadata.version", "kraft.version", "group.version")),
        featureLevel=chosen.choice((0, 1, 20)),
    ): 3,
    _controller: 3,
    lambda chosen: value("UNREGISTER_CONTROLLER", controllerId=chosen.randint(3000, 3003)): 1,
    lambda chosen: value("BEGIN_TRANSACTION"): 4,
    lambda chosen: value("END_TRANSACTION"): 4,
    lambda chosen: value("ABORT_TRANSACTION"): 2,
    lambda chosen: value("NO_OP"): 1,
    lambda chosen: value("TOPIC", name="cut", topicId=uuid(9))[:-3]: 1,
}  # fmt: skip
"""What makes a record -> how often."""
