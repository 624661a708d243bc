"""Logs of one kind of record each, made with kshell's encoders: what a busy cluster's log can be full of.

Each begins with a feature level and a few brokers. Batches have 1 to 40 records, as those of ``Gen.java``.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kshell.protocol.batches import write_batch
from tests.builders import LOG, TIME, encode_value, kind, leader_change, uuid

_BROKERS = 12
Make = Callable[[random.Random], Iterator[bytes]]


def _value(name: str, version: int = 0, /, **data: object) -> bytes:
    return encode_value(kind(name), version, data)


def _uuid(rng: random.Random) -> bytes:
    return uuid(rng.getrandbits(127))


def _registration(broker: int, epoch: int, rng: random.Random) -> bytes:
    listener = {"name": "PLAINTEXT", "host": f"broker{broker}.example", "port": 9092, "securityProtocol": 0}
    features = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 25}]
    return _value(
        "REGISTER_BROKER", 3, brokerId=broker, brokerEpoch=epoch, incarnationId=_uuid(rng), endPoints=[listener],
        features=features, rack=f"rack{broker % 3}", fenced=True, logDirs=[uuid(broker + 1)],
    )  # fmt: skip


def _configs(rng: random.Random) -> Iterator[bytes]:
    """Values that change, of 2,000 keys."""
    while True:
        name = rng.choice(("retention.ms", "retention.bytes", "segment.ms", "max.message.bytes"))
        topic = f"topic-{rng.randrange(500)}"
        yield _value("CONFIG", resourceType=2, resourceName=topic, name=name, value=str(rng.randrange(10**9)))


def _config_churn(rng: random.Random) -> Iterator[bytes]:
    """Keys that come and go."""
    for number in itertools.count():
        broker = str(rng.randrange(_BROKERS))
        for value in (str(number), None):
            name = f"listener.name.l{number}.ssl.keystore.type"
            yield _value("CONFIG", resourceType=4, resourceName=broker, name=name, value=value)


def _quotas(rng: random.Random) -> Iterator[bytes]:
    """Of 2,000 users; one change in four removes."""
    while True:
        entity = [{"entityType": "user", "entityName": f"user-{rng.randrange(2000)}"}]
        key = rng.choice(("producer_byte_rate", "consumer_byte_rate"))
        remove = rng.random() < 0.25
        value = 0.0 if remove else float(rng.randrange(10**9))
        yield _value("CLIENT_QUOTA", entity=entity, key=key, value=value, remove=remove)


def _acls(rng: random.Random) -> Iterator[bytes]:
    """Each is removed when 200 younger ones are there."""
    alive: list[bytes] = []
    while True:
        alive.append(_uuid(rng))
        yield _value(
            "ACCESS_CONTROL_ENTRY", id=alive[-1], resourceType=2, resourceName=f"topic-{rng.randrange(500)}",
            patternType=3, principal=f"User:user-{rng.randrange(2000)}", host="*", operation=3, permissionType=3,
        )  # fmt: skip
        if len(alive) > 200:
            yield _value("REMOVE_ACCESS_CONTROL_ENTRY", id=alive.pop(0))


def _scram(rng: random.Random) -> Iterator[bytes]:
    """New passwords of 500 users."""
    while True:
        yield _value(
            "USER_SCRAM_CREDENTIAL", name=f"user-{rng.randrange(500)}", mechanism=1, salt=rng.randbytes(20),
            storedKey=rng.randbytes(32), serverKey=rng.randbytes(32), iterations=4096,
        )  # fmt: skip


def _tokens(rng: random.Random) -> Iterator[bytes]:
    """Delegation tokens that expire."""
    alive: list[str] = []
    for number in itertools.count():
        alive.append(str(uuid(rng.getrandbits(127))))
        yield _value(
            "DELEGATION_TOKEN", owner=f"User:user-{number % 300}", requester=f"User:user-{number % 300}", renewers=[],
            issueTimestamp=TIME + number, maxTimestamp=TIME + number + 10**9, expirationTimestamp=TIME + number + 10**8,
            tokenId=alive[-1],
        )  # fmt: skip
        if len(alive) > 200:
            yield _value("REMOVE_DELEGATION_TOKEN", tokenId=alive.pop(0))


def _fencing(rng: random.Random) -> Iterator[bytes]:
    """Brokers that lose their session and come back, with the same registration."""
    for turn in itertools.count():
        for broker in range(_BROKERS):
            yield _value("BROKER_REGISTRATION_CHANGE", 2, brokerId=broker, brokerEpoch=broker, fenced=(-1, 1)[turn % 2])


def _restarts(rng: random.Random) -> Iterator[bytes]:
    """Brokers that register again and again."""
    for epoch in itertools.count(_BROKERS):
        broker = epoch % _BROKERS
        yield _registration(broker, epoch, rng)
        yield _value("BROKER_REGISTRATION_CHANGE", 2, brokerId=broker, brokerEpoch=epoch, fenced=-1)


def _producer_ids(rng: random.Random) -> Iterator[bytes]:
    for number in itertools.count():
        yield _value("PRODUCER_IDS", brokerId=number % _BROKERS, brokerEpoch=1, nextProducerId=number * 1000)


def _topics(rng: random.Random) -> Iterator[bytes]:
    """Topics of one to three partitions, with a config, that live for a while."""
    alive: list[bytes] = []
    for number in itertools.count():
        alive.append(_uuid(rng))
        yield _value("TOPIC", name=f"job-{number}", topicId=alive[-1])
        yield _value("CONFIG", resourceType=2, resourceName=f"job-{number}", name="retention.ms", value=str(number))
        for partition in range(number % 3 + 1):
            first = rng.randrange(_BROKERS)
            brokers = [(first + place) % _BROKERS for place in range(3)]
            yield _value(
                "PARTITION", 2, topicId=alive[-1], partitionId=partition, replicas=brokers, isr=brokers,
                leader=brokers[0], leaderEpoch=0, partitionEpoch=0, directories=[uuid(one + 1) for one in brokers],
            )  # fmt: skip
        if len(alive) > 200:
            yield _value("REMOVE_TOPIC", topicId=alive.pop(0))


def _no_ops(rng: random.Random) -> Iterator[bytes]:
    return itertools.repeat(_value("NO_OP"))


KINDS: dict[str, Make] = {
    "configs": _configs,
    "configs that come and go": _config_churn,
    "quotas": _quotas,
    "ACLs that come and go": _acls,
    "SCRAM": _scram,
    "tokens that come and go": _tokens,
    "fencing": _fencing,
    "broker restarts": _restarts,
    "producer ids": _producer_ids,
    "topics that come and go": _topics,
    "NoOps": _no_ops,
}


PLACES = {
    "producer ids": "/image/producerIds/nextProducerId",
    "configs that come and go": "/image/configs",
    "ACLs that come and go": "/image/acls/byId",
    "tokens that come and go": "/image/delegationToken",
    "topics that come and go": "/image/topics/byName",
}
"""What is there at every moment of a log of that kind: where keys come and go, all of them."""


def made(name: str, records: int, directory: Path) -> Path:
    """A log of so many records of a kind; made once."""
    target = directory / f"{name.replace(' ', '-')}-{records}" / LOG
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            for batch in _batches(name, records):
                file.write(batch)
        Path(file.name).replace(target)
    return target


def _batches(name: str, records: int) -> Iterator[bytes]:
    rng = random.Random(11)
    yield write_batch([leader_change()], base_offset=0, epoch=1, timestamp=TIME, control=True)
    first = [_value("FEATURE_LEVEL", name="metadata.version", featureLevel=25)]
    first += [_registration(broker, broker, rng) for broker in range(_BROKERS)]
    values = itertools.chain(first, KINDS[name](rng))
    offset = 1
    while offset < records:
        size = min(rng.randint(1, 40), records - offset)
        batch: list[tuple[bytes | None, bytes | None]] = [(None, value) for value in itertools.islice(values, size)]
        yield write_batch(batch, base_offset=offset, epoch=1, timestamp=TIME + offset * 250)
        offset += size
