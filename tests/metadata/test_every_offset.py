"""Random logs that make no sense, at every offset: images, problems, and the past of each partition.

The reference replays each record by its declaration, one after another, on a delta of its own; nothing is filed there.
"""

from __future__ import annotations

import gc
import random
from typing import Any, NamedTuple

import pytest

from kshell.metadata import partition_changes
from kshell.metadata.delta import Delta
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.history import Recorder
from kshell.metadata.image import EMPTY, Image, families
from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.records import ReplayError, decode_value
from kshell.metadata.replay import Replayer
from kshell.metadata.values import BatchPosition, Entry, Origin
from kshell.protocol.batches import Batch, iter_records
from tests.builders import TIME, batches, control_batch, leader_change, metadata, snapshot, timed_batch, uuid, value
from tests.builders import batch as batch_of

_LOGS = 20
_OFFSETS = 300
_IDS = [uuid(number + 5) for number in range(4)]
_NAMES = ["a", "b", "c" * 130, "a"]
_MARKERS = ("BEGIN_TRANSACTION", "END_TRANSACTION", "ABORT_TRANSACTION")
Touched = tuple[Any, int]
"""A topic's id and a partition's number."""


def _some(rng: random.Random) -> list[int]:
    return [rng.randrange(4) for _ in range(rng.randrange(4))]


def _partition(rng: random.Random) -> bytes:
    replicas = _some(rng)
    elr: dict[str, Any] = {}
    if rng.random() < 0.3:
        elr = {"eligibleLeaderReplicas": _some(rng), "lastKnownElr": _some(rng)}
    return value(
        "PARTITION", 2, topicId=rng.choice(_IDS), partitionId=rng.randrange(3), replicas=replicas, isr=_some(rng),
        removingReplicas=[], addingReplicas=[], leader=rng.randrange(-1, 3), leaderEpoch=rng.choice((0, 2**31 - 1)),
        partitionEpoch=rng.choice((0, 2**31 - 1)), leaderRecoveryState=rng.choice((0, 0, 0, 1, 5)),
        directories=[uuid(rng.randrange(2))] * (len(replicas) if rng.random() < 0.9 else 5), **elr,
    )  # fmt: skip


def _change(rng: random.Random) -> bytes:
    version = rng.randrange(3)
    data: dict[str, Any] = {}
    if rng.random() < 0.5:
        data["isr"] = _some(rng)
    if rng.random() < 0.5:
        data["leader"] = rng.randrange(-2, 3)
    if rng.random() < 0.2:
        data["leaderRecoveryState"] = rng.choice((0, 1, 7))
    if rng.random() < 0.3 and version > 1:
        data["eligibleLeaderReplicas"] = _some(rng)
    if rng.random() < 0.2:
        data["replicas"] = _some(rng)
    if rng.random() < 0.2 and version > 0:
        data["directories"] = [uuid(rng.randrange(3)) for _ in range(rng.randrange(4))]
    return value("PARTITION_CHANGE", version, topicId=rng.choice(_IDS), partitionId=rng.randrange(4), **data)


def _other(rng: random.Random) -> bytes:
    topic, name, number = rng.choice(_IDS), rng.choice(_NAMES), rng.randrange(3)
    own_name = _NAMES[_IDS.index(topic)]
    listener, client = {"entityType": "user", "entityName": None}, {"entityType": "client-id", "entityName": name}
    return rng.choice((
        lambda: value("TOPIC", name=own_name, topicId=topic),
        lambda: value("TOPIC", name=name, topicId=topic),
        lambda: value("REMOVE_TOPIC", topicId=topic),
        lambda: value("CLEAR_ELR", topicName=rng.choice(("", name))),
        lambda: value("CONFIG", resourceType=2, resourceName=name, name=rng.choice("kl"),
                      value=rng.choice(("x", "y" * 200, "", None))),
        lambda: value("REGISTER_BROKER", rng.randrange(5), brokerId=number - 1, brokerEpoch=rng.choice((1, 1, 2, -1)),
                      incarnationId=uuid(rng.randrange(3)), endPoints=[], features=[], rack=rng.choice((None, "r")),
                      fenced=rng.random() < 0.5),
        lambda: _registration_change(rng),
        lambda: _registration_change(rng),
        lambda: value("FENCE_BROKER", id=number, epoch=rng.randrange(2)),
        lambda: value("UNREGISTER_BROKER", brokerId=number, brokerEpoch=1),
        lambda: value("ACCESS_CONTROL_ENTRY", id=topic, resourceType=2, resourceName=name, patternType=3,
                      principal="User:x", host="*", operation=3, permissionType=3),
        lambda: value("REMOVE_ACCESS_CONTROL_ENTRY", id=topic),
        lambda: value("CLIENT_QUOTA", entity=rng.choice(([listener], [listener, client], [client, listener], [])),
                      key="producer_byte_rate", value=float(number), remove=rng.random() < 0.5),
        lambda: value("USER_SCRAM_CREDENTIAL", name=name, mechanism=1, salt=b"s" * rng.choice((0, 5, 200)),
                      storedKey=b"k", serverKey=b"", iterations=4096 + number),
        lambda: value("REMOVE_USER_SCRAM_CREDENTIAL", name=name, mechanism=rng.choice((1, 2))),
        lambda: value("DELEGATION_TOKEN", owner="User:x", requester="User:y", renewers=["User:z"] * number,
                      issueTimestamp=1, maxTimestamp=2, expirationTimestamp=number, tokenId=name),
        lambda: value("REMOVE_DELEGATION_TOKEN", tokenId=name),
        lambda: value("PRODUCER_IDS", brokerId=1, brokerEpoch=1, nextProducerId=number),
        lambda: value("NO_OP"),
        lambda: rng.choice((b"\x01\x7e\x00", b"\x01\x05\x09", b"\x02", b"", b"\x01\x05\x00",
                            b"\x01\x03\x01" + bytes(20), b"\x02" + _change(rng)[1:], _change(rng)[:-1],
                            _change(rng) + b"x", _partition(rng)[:-3])),
    ))()  # fmt: skip


def _registration_change(rng: random.Random) -> bytes:
    version = rng.randrange(4)
    data: dict[str, Any] = {}
    if rng.random() < 0.7:
        data["fenced"] = rng.choice((-1, -1, 1, 1, 0, 5))
    if rng.random() < 0.3 and version > 0:
        data["inControlledShutdown"] = rng.randrange(2)
    if rng.random() < 0.2 and version > 1:
        data["logDirs"] = [uuid(rng.randrange(2))]
    return value(
        "BROKER_REGISTRATION_CHANGE", version, brokerId=rng.randrange(3) - 1, brokerEpoch=rng.choice((1, 1, 2, -1)),
        **data,
    )  # fmt: skip


def _record(rng: random.Random, *, of_partitions: bool) -> bytes:
    if rng.random() < 0.06:
        return value(rng.choice(_MARKERS))
    kinds = (_partition, _change, _change, _change, _other, _other) if of_partitions else (_other,)
    return rng.choice(kinds)(rng)


def _base(seed: int) -> Image:
    """What a snapshot before the log holds: nothing every other time."""
    rng = random.Random(-seed)
    replayer = Replayer()
    if seed % 2:
        values = []
        for topic_id, name in zip(_IDS[:3], _NAMES, strict=False):
            values.append(value("TOPIC", name=name, topicId=topic_id))
            for number in range(rng.randrange(4)):
                replicas = _some(rng)
                elr = rng.choice(({}, {"eligibleLeaderReplicas": [1], "lastKnownElr": [2]}))
                values.append(
                    value("PARTITION", 2, topicId=topic_id, partitionId=number, replicas=replicas, isr=replicas,
                          leader=1, leaderEpoch=3, partitionEpoch=4, **elr)
                )  # fmt: skip
        for found in batches(snapshot(values)):
            replayer.snapshot_batch(found, "snapshot")
    return replayer.image()


def nonsense(seed: int) -> bytes:
    """The bytes of a log: batches of one record to eighty, some with times of their own, control batches between them.

    In every other log most records are of partitions, in the others most are not.
    """
    rng = random.Random(seed)
    raw = [control_batch([leader_change()])]
    offset = 1
    while offset < _OFFSETS:
        if rng.random() < 0.05:
            raw.append(control_batch([leader_change(), leader_change()], offset))
            offset += 2
            continue
        values = [
            _record(rng, of_partitions=seed % 4 < 2) for _ in range(rng.randint(1, 80 if rng.random() < 0.1 else 6))
        ]
        if rng.random() < 0.2:
            times = [TIME + rng.randrange(5) for _ in values]
            raw.append(timed_batch(values, times, offset, append=rng.random() < 0.5))
        else:
            raw.append(batch_of(values, offset))
        offset += len(values)
    return b"".join(raw)


class _State(NamedTuple):
    """What the reference has at an offset: the image, the problems' offsets and reasons, what each partition was."""

    tables: dict[str, Any]
    problems: list[tuple[int, str]]
    partitions: dict[Touched, list[tuple[int, Entry[Any]] | None]]


def _reference(log: list[Batch], base: Image) -> list[_State]:
    """The state after each record."""
    delta, problems, states = Delta(base), [], []
    past: dict[Touched, list[tuple[int, Entry[Any]] | None]] = {
        (topic.id, number): [(-1, entry)] for topic in base[TOPICS].values() for number, entry in topic.partitions()
    }
    waiting: list[tuple[bytes, Origin]] | None = None

    def replay(raw: bytes, origin: Origin, effective: int) -> None:
        nonlocal delta
        decoded = decode_value(raw)
        if decoded.data is None or decoded.type is None:
            problems.append((origin.offset, decoded.undecoded.reason if decoded.undecoded else ""))
            return
        before = {topic.id: topic for topic in delta.peek(TOPICS).values()}
        try:
            decoded.type.replay(delta, decoded.data, origin)
        except ReplayError as error:
            problems.append((origin.offset, str(error)))
        delta = Delta(delta.apply(EMPTY.provenance))
        for topic_id in {*before, *delta.peek(TOPICS)}:
            _note(past, topic_id, before.get(topic_id), delta.peek(TOPICS).get(topic_id), effective)

    for found in log:
        for raw in iter_records(found):
            if not found.is_control:
                decoded = decode_value(raw.value)
                place = BatchPosition("log", found.position, found.epoch, False)
                origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
                body = raw.value or b""
                marker = body[1] if len(body) > 2 and body[0] == 1 and body[1] in (23, 24, 25) else None
                if marker is None and waiting is not None:
                    waiting.append((body, origin))
                elif marker is None:
                    replay(body, origin, raw.offset)
                elif (marker == 23) == (waiting is not None):
                    reason = "a transaction is already open" if waiting is not None else "no transaction is open"
                    problems.append((raw.offset, reason))
                elif marker == 23:
                    waiting = []
                else:
                    held, waiting = waiting or [], None
                    for value_, where in held if marker == 24 else ():
                        replay(value_, where, raw.offset)
            states.append(_State(metadata(_image(delta)), list(problems), {key: list(of) for key, of in past.items()}))
    return states


def _image(delta: Delta) -> Image:
    return Image({name: dict(delta.peek(name)) for name in delta._tables}, EMPTY.provenance)


def _note(
    past: dict[Touched, list[tuple[int, Entry[Any]] | None]], topic_id: Any, before: Any, after: Any, effective: int
) -> None:
    """What the last record made of a topic's partitions."""
    if after is None or (before is not None and after is not before and after.origin is not before.origin):
        for key in [key for key in past if key[0] == topic_id]:
            past[key].append(None)  # another topic begins, or none
    for number, entry in after.partitions() if after is not None else ():
        known = past.setdefault((topic_id, number), [])
        if not known or known[-1] is None or known[-1][1].origin != entry.origin:
            known.append((effective, entry))


def _origins(tables: Any) -> dict[Any, Origin]:
    """Where each value comes from, but those of partitions."""
    found: dict[Any, Origin] = {}
    for family in families():
        for key, entry in dict(tables.get(family, {}) if isinstance(tables, dict) else tables[family]).items():
            below = {None: entry} if isinstance(entry, Entry) else entry
            found |= {(family, key, name): inner.origin for name, inner in below.items()}
    return found


@pytest.mark.parametrize("seed", range(_LOGS))
def test_images_and_problems_at_every_offset(seed: int) -> None:
    log = batches(nonsense(seed))
    base = _base(seed)
    recorder, growing, seldom = Recorder(base), Replayer(base), Replayer(base)
    for found in log:
        recorder.log_batch(found, "log")
    published: list[tuple[int, Image]] = []
    rng = random.Random(seed)
    states = _reference(log, base)
    for found in log:
        growing.log_batch(found, "log")
        if rng.random() < 0.2:
            growing.release(0)
        published.append((found.last_offset, growing.image()))
        seldom.log_batch(found, "log")
        problems = [(problem.origin.offset, problem.reason) for problem in seldom.problems]
        assert problems == states[found.last_offset].problems, found.last_offset
        if rng.random() < 0.03:
            published.append((found.last_offset, seldom.image()))
    for offset, state in enumerate(states):
        assert metadata(recorder.history.at(offset)) == state.tables, offset
        problems = [(problem.origin.offset, problem.reason) for problem in recorder.history.problems_between(0, offset)]
        assert problems == state.problems, offset
    for until in (len(states) - 1, len(states) // 2):
        runs = recorder.history.provenances(until)
        provenances = [
            run.provenance._replace(offset=offset) if run.advances else run.provenance
            for run in runs
            for offset in range(run.start, run.end)
        ]
        assert provenances == [recorder.history.provenance(offset) for offset in range(until + 1)]
    for offset, image in published:  # they stay as they were, whatever came later
        assert metadata(image) == states[offset].tables, offset
        assert _origins(image) == _origins(states[offset].tables), offset
    for offset in rng.sample(range(len(states)), 25):
        early = Replayer(base, until=offset)
        for found in log:
            if found.base_offset <= offset:
                early.log_batch(found, "log")
        assert metadata(early.image()) == states[offset].tables, offset


@pytest.mark.parametrize("seed", range(_LOGS))
def test_every_version_of_every_partition(seed: int) -> None:
    log = batches(nonsense(seed))
    base = _base(seed)
    recorder = Recorder(base)
    for found in log:
        recorder.log_batch(found, "log")
    states = _reference(log, base)
    for offset, state in enumerate(states):
        if offset % 7 and offset != len(states) - 1:
            continue
        for topic_id, topic in recorder.history.at(offset)[TOPICS].items():
            recorded = next((held for _, held in recorder.history.versions(TOPICS, (topic_id,), offset)), None)
            if recorded is None:
                assert topic is base[TOPICS][topic_id]
                continue
            for number in topic.partition_ids():
                expected = state.partitions[topic_id, number]
                last = max((at for at, one in enumerate(expected) if one is None), default=-1)
                got = [(since, entry.value, entry.origin) for since, entry in recorded.versions(number, offset)]
                versions = [(one[0], one[1].value, one[1].origin) for one in expected[last + 1 :] if one is not None]
                if versions[0][0] < 0:
                    first = recorded.first(number)
                    assert (first.value, first.origin) == versions[0][1:]
                    del versions[0]
                assert got[::-1] == versions, (offset, number)


_ONE_PARTITION = [
    value("TOPIC", name="t", topicId=uuid(1)),
    value("PARTITION", topicId=uuid(1), partitionId=0, replicas=[1, 2], isr=[1], leader=1, leaderEpoch=0,
          partitionEpoch=0),
]  # fmt: skip


def _counted(changes: PartitionChanges) -> list[int]:
    """How many records each later look goes through; one number a look."""
    steps: list[int] = []
    real = changes.last

    def counted(before: Any, addresses: Any) -> Any:
        steps.append(len(addresses))
        return real(before, addresses)

    changes.last = counted  # type: ignore[assignment,method-assign]
    return steps


@pytest.mark.parametrize("data", [{"leader": 2}, {"replicas": [1, 2], "isr": [2]}], ids=["leader", "replicas"])
def test_a_partition_with_many_changes_is_not_replayed_from_its_first_for_each(data: dict[str, Any]) -> None:
    """Each of them fits, or must be tried; a look at the state after each costs the same whatever came before."""
    number = 20_000
    change = value("PARTITION_CHANGE", topicId=uuid(1), partitionId=0, **data)
    replayer = Replayer()
    steps = _counted(replayer.changes)
    replayer.log_batch(batches(batch_of(_ONE_PARTITION))[0], "log")
    for at in range(0, number, 100):
        replayer.log_batch(batches(batch_of([change] * 100, 2 + at))[0], "log")
        replayer.image()[TOPICS][uuid(1)].scan()
    entry = replayer.image()[TOPICS][uuid(1)].partition(0)
    assert entry.value.partition_epoch == number
    assert entry.value.isr == ((2,) if "isr" in data else (1,))
    assert entry.origin.offset == number + 1
    assert sum(steps) < 3 * number


def test_looks_back_at_a_partition_with_many_changes_begin_at_a_waypoint() -> None:
    number = 10_000
    change = value("PARTITION_CHANGE", topicId=uuid(1), partitionId=0, leader=2)
    recorder = Recorder()
    recorder.log_batch(batches(batch_of([*_ONE_PARTITION, *[change] * number]))[0], "log")
    assert recorder.history.at(number + 1)[TOPICS][uuid(1)].partition(0).value.partition_epoch == number
    steps = _counted(recorder.changes)
    for epoch in range(0, number, 97):
        entry = recorder.history.at(epoch + 1)[TOPICS][uuid(1)].partition(0)
        assert (entry.value.partition_epoch, entry.origin.offset) == (epoch, epoch + 1)
    assert sum(steps) < 1024 * number / 97


def _states() -> list[partition_changes._State]:
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is partition_changes._State]


def test_partitions_that_were_looked_at_hold_nothing_that_is_to_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition's way is remembered; what its states lead to is bounded, however many partitions there were."""
    monkeypatch.setattr(partition_changes, "_MOST_REMEMBERED", 100)
    replicas = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    of_others = _states()
    recorder, offset, changes = Recorder(), 1, 100

    def feed(values: list[bytes]) -> None:
        nonlocal offset
        for batch in batches(batch_of(values, offset)):
            recorder.log_batch(batch, "log")
        offset += len(values)

    made = [value("PARTITION", partitionId=number, topicId=_IDS[0], **replicas) for number in range(20)]
    feed([value("TOPIC", name="t", topicId=_IDS[0]), *made])
    for number in range(20):
        feed([
            value("PARTITION_CHANGE", partitionId=number, topicId=_IDS[0], leader=1 + change % 3)
            for change in range(changes)
        ])  # fmt: skip
        topic = recorder.history.at(offset)[TOPICS][_IDS[0]]
        assert topic.partition(number).value.leader_epoch == changes
        recorded = next(held for _, held in recorder.history.versions(TOPICS, (_IDS[0],), offset))
        assert len(list(recorded.versions(number, offset))) == changes + 1
    known = set(map(id, of_others))
    states = [state for state in _states() if id(state) not in known]
    assert states
    assert sum(len(state.at_epochs) + len(state.after) for state in states) < 1000
