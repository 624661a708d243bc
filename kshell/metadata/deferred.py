"""Records that are decoded only if somebody looks, or if no later record of their key comes.

A replay of the newest state decodes a config, an ACL or a quota when an image is made of it, and not before: of each
key it keeps the address of the last record. What was overwritten until then, or came and went, is never decoded.

Brokers report the same of themselves again and again: a registration differs from the one before it in the broker's
incarnation and epoch. What is left of a record without those is its *essence*, decoded once.

Topics come and go by the thousand where jobs make and remove them: their records are filed by topic, undecoded.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Protocol

from kshell.metadata.delta import Delta
from kshell.metadata.families.cluster import BROKERS, REGISTER_BROKER, REGISTRATION_CHANGE, Broker, change_registration
from kshell.metadata.families.configs import CONFIGS, TOPIC_CONFIG
from kshell.metadata.families.topics import REMOVE_TOPIC, TOPIC, TOPICS, create, remove
from kshell.metadata.partition_changes import PartitionChanges
from kshell.metadata.partitions import Topic
from kshell.metadata.record_log import RecordLog
from kshell.metadata.recorded_topics import Addresses, RecordedTopic, TopicRecords
from kshell.metadata.records import HEAD_SIZE, LatestByKey, record_types
from kshell.metadata.values import Entry
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import Buffer, Uuid, write_uvarint
from kshell.protocol.readers import KeyReader, key_reader

_MOST_KEYS = 1 << 16
"""Keys that wait, or twice as many; each takes some two hundred bytes."""


class KeyedAddresses(dict[bytes, dict[bytes, int]]):
    """Of each key of a family the address of the last record, of a tombstone with its bits inverted.

    The keys are as records have them: what tells the table below a family, if records remove one, and then the rest.
    """


class LatestRecords:
    """What waits to be replayed."""

    def __init__(self) -> None:
        self._by_family: dict[str, KeyedAddresses] = {}
        self._filed = 0
        self.filers: dict[bytes, Filer] = {}
        """The first bytes of a value -> what files records that begin so."""
        for head, declared, read in _key_readers():
            addresses = self._by_family.setdefault(declared.family, KeyedAddresses())
            self.filers[head] = Filer(read, declared, addresses)

    def take(self, family: str | None = None) -> list[int]:
        """The addresses of what waits, of one family or of all, in their order; it no longer waits."""
        addresses: list[int] = []
        for waiting in self._by_family.values() if family is None else [self._by_family[family]]:
            if waiting:
                addresses += (max(address, ~address) for below in waiting.values() for address in below.values())
                waiting.clear()
        addresses.sort()
        return addresses

    def forget(self, family: str, above: bytes) -> None:
        """Whatever waits below a key is overwritten, too."""
        self._by_family[family].pop(above, None)

    def overflows(self, filed: int) -> bool:
        """After so many more records: whether so much waits that it should be replayed."""
        self._filed += filed
        if self._filed < _MOST_KEYS:
            return False
        self._filed = 0
        return sum(len(below) for waiting in self._by_family.values() for below in waiting.values()) > _MOST_KEYS


class RecordFiler(Protocol):
    """Takes records of one type and version that need not be decoded."""

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Take a record, if it need not be decoded.

        Args:
            region: the bytes that it is in.
            start: where its message begins there.
            end: where it ends.
            address: of its value.
            delta: what everything before it that does not wait was replayed on.

        Returns:
            Whether it was taken; else it must be replayed.
        """


class Filer:
    """Files addresses by key."""

    __slots__ = ("_addresses", "_family", "_must_exist", "_read")

    def __init__(self, read: KeyReader, declared: LatestByKey, addresses: KeyedAddresses) -> None:
        self._read = read
        self._family = declared.family
        self._must_exist = declared.must_exist
        self._addresses = addresses

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether the record's key could be read; else it must be replayed after what waits of its family."""
        parts = self._read(region, start, end)
        if parts is None:
            return False
        above, key, is_tombstone = parts
        below = self._addresses.get(above)
        if not is_tombstone:
            if below is None:
                self._addresses[above] = {key: address}
            else:
                below[key] = address
            return True
        table = delta.peek(self._family)
        if self._must_exist:
            waiting = None if below is None else below.get(key)
            was_there = Uuid(key) in table
            if not (was_there if waiting is None else waiting >= 0):
                return False
        else:
            was_there = bool(table)  # or may have been: to know, the key would have to be decoded
        if was_there:
            self._addresses.setdefault(above, {})[key] = ~address
        elif below is not None:
            below.pop(key, None)
            if not below:
                del self._addresses[above]
        return True


@cache
def _key_readers() -> list[tuple[bytes, LatestByKey, KeyReader]]:
    """The heads of all records that are overwritten by key, what is declared of them, and what reads their keys."""
    readers = []
    for kind in record_types().values():
        if kind.latest is not None:
            for version, head in kind.heads():
                read = key_reader(kind.schema, version, kind.latest.key, kind.latest.tombstone, kind.latest.above)
                readers.append((head, kind.latest, read))
    return readers


_ID, _EPOCH, _INCARNATION = 4, 8, 16
"""Bytes of a broker's id, which comes first, of its epoch, and of its incarnation."""
_MOST_ESSENCES = 1 << 12
_MOST_BROKERS = 1 << 12
_WITH_MIGRATION = 2
"""The first version of a registration that has a byte between the id and the incarnation."""


class _Waiting:
    """A broker that records have changed since the last image.

    ``broker`` is right but for its id, epoch and incarnation: brokers that registered alike share it. ``address`` is
    that of the last record that changed anything.
    """

    __slots__ = ("address", "broker", "epoch", "incarnation")

    def __init__(self, broker: Broker, epoch: bytes, incarnation: bytes, address: int | None) -> None:
        self.broker = broker
        self.epoch = epoch
        self.incarnation = incarnation
        self.address = address


class _Change:
    """A change, and its result for brokers seen so far."""

    __slots__ = ("_after", "_data")

    def __init__(self, data: Message) -> None:
        self._data = data
        self._after: dict[int, tuple[Broker, Broker]] = {}
        """The identity of a broker -> that broker, and what it became."""

    def applied(self, broker: Broker, registrations: Registrations) -> Broker:
        """The broker after the change: the same object where it changes nothing."""
        cached = self._after.get(id(broker))
        if cached is None:
            after = registrations.interned(change_registration(broker, self._data))
            if len(self._after) >= _MOST_BROKERS:
                self._after.clear()
            cached = self._after[id(broker)] = (broker, broker if after == broker else after)
        return cached[1]


class Registrations:
    """The pending records of the brokers, and the decoded forms of records like them."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, _Waiting] = {}
        """By the broker's id, as records have it."""
        self.registered: dict[bytes, Broker] = {}
        """The essence of a registration -> a broker that registered so."""
        self.changes: dict[bytes, _Change] = {}
        """The essence of a change -> the decoded change."""
        self._interned: dict[tuple[Any, ...], Broker] = {}
        self.filers: dict[bytes, RegistrationFiler | ChangeFiler] = {
            **{head: RegistrationFiler(self, version) for version, head in REGISTER_BROKER.heads()},
            **{head: ChangeFiler(self, version) for version, head in REGISTRATION_CHANGE.heads()},
        }
        """The first bytes of a value -> what files records that begin so."""

    def interned(self, broker: Broker) -> Broker:
        """One object for brokers that changes made, and that are equal: then what changes make of it is known, too."""
        if len(self._interned) >= _MOST_BROKERS:
            self._interned.clear()
        # A dictionary is no key. A change leaves it the object that it is.
        key = tuple(id(field) if isinstance(field, dict) else field for field in broker)
        return self._interned.setdefault(key, broker)

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Remember the decoded form of a record that was just replayed."""
        filer = self.filers.get(value[:HEAD_SIZE])
        if filer is not None:
            filer.learn(value, data, delta)

    def apply(self, delta: Delta, log: RecordLog) -> None:
        """Put what waits into a delta; nothing waits any more."""
        for broker_id, waiting in self.waiting.items():
            if waiting.address is not None:
                broker = waiting.broker._replace(
                    id=_number(broker_id), epoch=_number(waiting.epoch), incarnation_id=Uuid(waiting.incarnation)
                )
                delta.put(BROKERS.name, broker.id, broker, log.origin(waiting.address))
        self.waiting.clear()


class _Parts(NamedTuple):
    """Where a registration's parts begin, counted from its message."""

    incarnation: int
    epoch: int
    rest: int


class RegistrationFiler:
    """Files registrations of one version."""

    def __init__(self, registrations: Registrations, version: int) -> None:
        self._registrations = registrations
        self._head = bytes((version,))
        start = _ID + (version >= _WITH_MIGRATION)
        self._parts = _Parts(start, start + _INCARNATION, start + _INCARNATION + _EPOCH)

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether a registration like it is known."""
        parts = self._parts
        template = self._registrations.registered.get(self._essence(region, start, end))
        if template is None:
            return False
        incarnation = region[start + parts.incarnation : start + parts.epoch]
        epoch = region[start + parts.epoch : start + parts.rest]
        self._registrations.waiting[region[start : start + _ID]] = _Waiting(template, epoch, incarnation, address)
        return True

    def _essence(self, region: Buffer, start: int, end: int) -> bytes:
        parts = self._parts
        return self._head + region[start + _ID : start + parts.incarnation] + region[start + parts.rest : end]

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Remember the decoded form of a record that was just replayed."""
        registered = self._registrations.registered
        if len(registered) >= _MOST_ESSENCES:
            registered.clear()
        registered[self._essence(value, HEAD_SIZE, len(value))] = delta.peek(BROKERS.name)[data["brokerId"]].value


class ChangeFiler:
    """Files changes of registrations, of one version."""

    def __init__(self, registrations: Registrations, version: int) -> None:
        self._registrations = registrations
        self._head = bytes((version,))

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether a change like it is known, and the broker is there."""
        change = self._registrations.changes.get(self._head + region[start + _ID + _EPOCH : end])
        if change is None:
            return False
        broker_id, epoch = region[start : start + _ID], region[start + _ID : start + _ID + _EPOCH]
        waiting = self._registrations.waiting.get(broker_id)
        if waiting is None:
            entry: Entry[Broker] | None = delta.peek(BROKERS.name).get(_number(broker_id))
            if entry is None:
                return False
            broker = entry.value
            epoch_bytes = broker.epoch.to_bytes(_EPOCH, "big", signed=True)
            waiting = self._registrations.waiting[broker_id] = _Waiting(
                broker, epoch_bytes, broker.incarnation_id, None
            )
        if waiting.epoch != epoch:
            return False
        after = change.applied(waiting.broker, self._registrations)
        if after is not waiting.broker:
            waiting.broker, waiting.address = after, address
        return True

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Remember the decoded form of a record that was just replayed."""
        changes = self._registrations.changes
        if len(changes) >= _MOST_ESSENCES:
            changes.clear()
        changes[self._head + value[HEAD_SIZE + _ID + _EPOCH :]] = _Change(data)


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


Filed = dict[bytes, Addresses]
"""A short way to the addresses of a topic's partitions, by the topic's id."""


def topic_filers(
    log: RecordLog, changes: PartitionChanges, filed: Filed, latest: LatestRecords
) -> dict[bytes, RecordFiler]:
    """The first bytes of a value -> what makes or removes topics of records that begin so."""
    creating, removing = _topic_key_readers()
    filers: dict[bytes, RecordFiler] = {}
    filers |= {head: _TopicFiler(read, log, changes, filed) for head, read in creating.items()}
    filers |= {head: _RemovalFiler(read, filed, latest) for head, read in removing.items()}
    return filers


def remove_topic(topic_id: Uuid, delta: Delta, filed: Filed, latest: LatestRecords) -> None:
    """A topic goes, and what waits of its configs. Raises ReplayError for one that is not there."""
    topic: Topic | None = delta.peek(TOPICS).get(topic_id)
    if topic is not None:
        filed.pop(topic_id, None)
        name = topic.name.encode("utf-8", "surrogateescape")
        latest.forget(CONFIGS.name, bytes((TOPIC_CONFIG,)) + write_uvarint(len(name) + 1) + name)
    remove(delta, topic_id)


class _TopicFiler:
    """Makes topics."""

    def __init__(self, read: KeyReader, log: RecordLog, changes: PartitionChanges, filed: Filed) -> None:
        self._read = read
        self._log = log
        self._changes = changes
        self._filed = filed

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether it is a topic that is not there yet."""
        parts = self._read(region, start, end)
        if parts is None:
            return False
        name, topic_id = parts[0][1:].decode("utf-8", "surrogateescape"), Uuid(parts[1])
        if topic_id in delta.peek(TOPICS):
            return False
        origin, records = self._log.origin(address), TopicRecords(self._log, self._changes, None)
        create(delta, name, topic_id, origin)
        delta.table(TOPICS)[topic_id] = RecordedTopic(name, topic_id, origin, records)
        self._filed[topic_id] = records.addresses
        return True


class _RemovalFiler:
    """Removes topics."""

    def __init__(self, read: KeyReader, filed: Filed, latest: LatestRecords) -> None:
        self._read = read
        self._filed = filed
        self._latest = latest

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Whether the topic is there."""
        parts = self._read(region, start, end)
        topic_id = None if parts is None else Uuid(parts[1])
        if topic_id is None or topic_id not in delta.peek(TOPICS):
            return False
        remove_topic(topic_id, delta, self._filed, self._latest)
        return True


@cache
def _topic_key_readers() -> tuple[dict[bytes, KeyReader], dict[bytes, KeyReader]]:
    """What reads the records that make topics, their name first, and those that remove them, by their heads."""
    creating = {
        head: key_reader(TOPIC.schema, version, ("name", "topicId"), False, first_part=1)
        for version, head in TOPIC.heads()
    }
    removing = {
        head: key_reader(REMOVE_TOPIC.schema, version, ("topicId",), True) for version, head in REMOVE_TOPIC.heads()
    }
    return creating, removing
