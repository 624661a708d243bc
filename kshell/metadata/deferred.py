"""Records that a replay does not decode when it meets them: *filers* take them as bytes, by the first bytes of a value.

Three kinds of filers, for the record types that are most frequent after those of partitions:

- :class:`Filer`: configs, ACLs, quotas and other types that declare :class:`LatestByKey`. Only the address of the
  latest record of each key waits, until an image is made. What was overwritten or removed by then is never decoded.
- :class:`RegistrationFiler` and :class:`ChangeFiler`: registrations of brokers. Brokers write the same content again
  and again, but for id, incarnation and epoch. The rest of such a record, its *essence*, is decoded once.
- :class:`NewTopics`, which has the filers of TopicRecord and RemoveTopicRecord: topics that come and go, as some jobs
  create them by the thousand, wait for the next image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.families.cluster import BROKERS, REGISTER_BROKER, REGISTRATION_CHANGE, Broker, change_registration
from kshell.metadata.families.configs import CONFIGS, TOPIC_CONFIG
from kshell.metadata.families.topics import NAMES, REMOVE_TOPIC, TOPIC, TOPICS, create, remove
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
"""Keys that may wait before they are replayed (at most twice as many do); each takes some two hundred bytes."""


KeyedAddresses = dict[bytes, dict[bytes, int]]
"""Key of a value in a family -> the address of its latest record; a tombstone's address has its bits inverted.

Keys are the undecoded bytes of records, in two parts: the fields that identify a table of the family
(:attr:`LatestByKey.above`, often none), then the rest of the key.
"""


class LatestRecords:
    """The latest records of keys of all families that wait to be replayed, and the filers that add to them."""

    def __init__(self) -> None:
        self._by_family: dict[str, KeyedAddresses] = {}
        self._filed = 0
        self.filers: dict[bytes, RecordFiler] = {}
        """The first bytes of a value -> the filer of records that begin with them."""
        for kind in record_types().values():
            if kind.latest is not None:
                addresses = self._by_family.setdefault(kind.latest.family, {})
                for version, head in kind.heads():
                    self.filers[head] = Filer(partial(_key_reader, kind.api_key, version), kind.latest, addresses).file

    def take(self, family: str | None = None) -> list[int]:
        """Remove the waiting records of one family, or of all, and return their addresses in log order."""
        addresses: list[int] = []
        for waiting in self._by_family.values() if family is None else [self._by_family[family]]:
            if waiting:
                addresses += (max(address, ~address) for below in waiting.values() for address in below.values())
                waiting.clear()
        addresses.sort()
        return addresses

    def forget(self, family: str, above: bytes) -> None:
        """Drop the waiting records of a table that was removed as a whole; ``above`` is the first part of its keys."""
        self._by_family[family].pop(above, None)

    def overflows(self, filed: int) -> bool:
        """Count ``filed`` more records; return whether so many keys wait that they should be replayed now."""
        self._filed += filed
        if self._filed < _MOST_KEYS:
            return False
        self._filed = 0
        return sum(len(below) for waiting in self._by_family.values() for below in waiting.values()) > _MOST_KEYS


RecordFiler = Callable[[Buffer, int, int, int, Delta], bool]
"""Takes an undecoded record of one type and version, if its effect is known without decoding it:

(the bytes that the record is in, the position in them at which its message begins, after the head of its value, the
position after its value, the address of its value, the state after all records before it except those that wait)
-> whether it was taken; else it must be decoded and replayed.
"""


class Filer:
    """Files the latest record of each key, for one version of a type that declares :class:`LatestByKey`."""

    __slots__ = ("_addresses", "_family", "_make", "_must_exist", "_read")

    def __init__(self, make: Callable[[], KeyReader], declared: LatestByKey, addresses: KeyedAddresses) -> None:
        self._make = make
        """Makes the reader of keys, when the first record comes: most logs have records of few types."""
        self._read: KeyReader | None = None
        self._family = declared.family
        self._must_exist = declared.must_exist
        self._addresses = addresses

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Let the record wait in place of an earlier one of its key.

        Returns:
            ``False`` if its key cannot be read, or if it removes a value that must exist but does not: then it must be
            replayed, after the waiting records of its family.
        """
        if self._read is None:
            self._read = self._make()
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
            was_there = bool(table) and Uuid(key) in table
            if not (was_there if waiting is None else waiting >= 0):
                return False
        else:
            was_there = bool(table)  # perhaps: to be sure, the key would have to be decoded
        if was_there:
            self._addresses.setdefault(above, {})[key] = ~address
        elif below is not None:
            below.pop(key, None)
            if not below:
                del self._addresses[above]
        return True


@cache
def _key_reader(api_key: int, version: int) -> KeyReader:
    """Return the reader of the key that a type declares as its ``LatestByKey``, for one version."""
    kind = record_types()[api_key]
    assert kind.latest is not None
    return key_reader(kind.schema, version, kind.latest.key, kind.latest.tombstone, kind.latest.above)


_ID, _EPOCH, _INCARNATION = 4, 8, 16
"""Sizes in bytes: of a broker's id, which comes first in the message, of its epoch, and of its incarnation."""
_MOST_ESSENCES = 1 << 12
_MOST_BROKERS = 1 << 12
_WITH_MIGRATION = 2
"""The first version of RegisterBrokerRecord with a byte (isMigratingZkBroker) between the id and the incarnation."""


class _Waiting:
    """The state of a broker that records have changed since the last image.

    ``broker`` is its registration, except for id, epoch and incarnation: brokers with equal registrations share the
    object. ``address`` is that of the last record that changed anything; ``None`` if none did since the last image.
    """

    __slots__ = ("address", "broker", "epoch", "incarnation")

    def __init__(self, broker: Broker, epoch: bytes, incarnation: bytes, address: int | None) -> None:
        self.broker = broker
        self.epoch = epoch
        self.incarnation = incarnation
        self.address = address


class _Change:
    """A decoded BrokerRegistrationChangeRecord, and a cache of its results."""

    __slots__ = ("_after", "_data")

    def __init__(self, data: Message) -> None:
        self._data = data
        self._after: dict[int, tuple[Broker, Broker]] = {}
        """``id()`` of a broker object -> (that broker, the broker after the change)."""

    def applied(self, broker: Broker, registrations: Registrations) -> Broker:
        """Return the broker after the change: the same object if the change has no effect on it."""
        cached = self._after.get(id(broker))
        if cached is None:
            after = registrations.interned(change_registration(broker, self._data))
            if len(self._after) >= _MOST_BROKERS:
                self._after.clear()
            cached = self._after[id(broker)] = (broker, broker if after == broker else after)
        return cached[1]


class Registrations:
    """Registrations of brokers that wait for the next image, and a cache of decoded registrations and changes.

    The first record of an essence is replayed, and :meth:`learn` caches its decoded form. Later records of the same
    essence are taken by the filers. :meth:`apply` puts the result into a delta.
    """

    def __init__(self) -> None:
        self.waiting: dict[bytes, _Waiting] = {}
        """Broker id in four bytes, as records have it -> the broker's state."""
        self.registered: dict[bytes, Broker] = {}
        """The essence of a registration -> a broker with that registration."""
        self.changes: dict[bytes, _Change] = {}
        """The essence of a change -> the decoded change."""
        self._interned: dict[tuple[object, ...], Broker] = {}
        self.filers: dict[bytes, RegistrationFiler | ChangeFiler] = {
            **{head: RegistrationFiler(self, version) for version, head in REGISTER_BROKER.heads()},
            **{head: ChangeFiler(self, version) for version, head in REGISTRATION_CHANGE.heads()},
        }
        """The first bytes of a value -> the filer of records that begin with them."""

    def interned(self, broker: Broker) -> Broker:
        """Return one object for all equal brokers that changes result in: the caches of changes go by its identity."""
        if len(self._interned) >= _MOST_BROKERS:
            self._interned.clear()
        # A dictionary is not hashable. Its identity serves, because a change never replaces it.
        key = tuple(id(field) if isinstance(field, dict) else field for field in broker)
        return self._interned.setdefault(key, broker)

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Cache the decoded form of a record that was just replayed, for later records of the same essence."""
        filer = self.filers.get(value[:HEAD_SIZE])
        if filer is not None:
            filer.learn(value, data, delta)

    def apply(self, delta: Delta, log: RecordLog) -> None:
        """Put the waiting brokers into a delta. None waits afterwards."""
        for broker_id, waiting in self.waiting.items():
            if waiting.address is not None:
                broker = waiting.broker._replace(
                    id=_number(broker_id), epoch=_number(waiting.epoch), incarnation_id=Uuid(waiting.incarnation)
                )
                delta.put(BROKERS.name, broker.id, broker, log.origin(waiting.address))
        self.waiting.clear()


class RegistrationFiler:
    """Takes RegisterBrokerRecords of one version."""

    def __init__(self, registrations: Registrations, version: int) -> None:
        self._registrations = registrations
        self._head = bytes((version,))
        # Positions in the message; the rest begins after the epoch.
        self._incarnation = _ID + (version >= _WITH_MIGRATION)
        self._epoch = self._incarnation + _INCARNATION
        self._rest = self._epoch + _EPOCH

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Take the record if a registration of the same essence was decoded before; return whether it was taken."""
        template = self._registrations.registered.get(self._essence(region, start, end))
        if template is None:
            return False
        incarnation = region[start + self._incarnation : start + self._epoch]
        epoch = region[start + self._epoch : start + self._rest]
        self._registrations.waiting[region[start : start + _ID]] = _Waiting(template, epoch, incarnation, address)
        return True

    def _essence(self, region: Buffer, start: int, end: int) -> bytes:
        """Return a registration's version and message without the broker's id, incarnation and epoch."""
        return self._head + region[start + _ID : start + self._incarnation] + region[start + self._rest : end]

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Cache the broker that a record which was just replayed resulted in."""
        registered = self._registrations.registered
        if len(registered) >= _MOST_ESSENCES:
            registered.clear()
        registered[self._essence(value, HEAD_SIZE, len(value))] = delta.peek(BROKERS.name)[data["brokerId"]].value


class ChangeFiler:
    """Takes BrokerRegistrationChangeRecords of one version."""

    def __init__(self, registrations: Registrations, version: int) -> None:
        self._registrations = registrations
        self._head = bytes((version,))

    def file(self, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Take the record, if a change of the same essence was decoded before and the broker has the record's epoch."""
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
        """Cache the decoded form of a change that was just replayed."""
        changes = self._registrations.changes
        if len(changes) >= _MOST_ESSENCES:
            changes.clear()
        changes[self._head + value[HEAD_SIZE + _ID + _EPOCH :]] = _Change(data)


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


AddressesByTopic = dict[bytes, Addresses]
"""Topic id -> the addresses of its partitions' records: a shortcut past the image's table of topics."""
_TOPIC_PREFIX = bytes((TOPIC_CONFIG,))


class _NewTopic(NamedTuple):
    """A topic that waits; ``name`` is as records have it: its length plus one, then the text."""

    name: bytes
    address: int
    """The address of its TopicRecord."""
    partitions: Addresses


class NewTopics:
    """Topics that were created since the last image, and wait for the next one.

    One that is removed before that is never created. A topic whose id or name another one has does not wait, so it does
    not matter when those that wait are created. Records of their partitions are filed as for any topic: ``filed`` has
    their addresses, too.

    Until :meth:`apply`, the delta's tables lack the topics that wait. It must be called before anything else reads or
    writes topics or their names (the replay does so for the types in ``_OF_TOPICS``).
    """

    def __init__(
        self, log: RecordLog, changes: PartitionChanges, filed: AddressesByTopic, latest: LatestRecords
    ) -> None:
        self._log = log
        self._changes = changes
        self._filed = filed
        self._latest = latest
        self._waiting: dict[bytes, _NewTopic] = {}
        self._names: set[bytes] = set()

    def filers(self) -> dict[bytes, RecordFiler]:
        """Make the filers of TopicRecord and RemoveTopicRecord, by the first bytes of a value.

        They refer to this object. If it referred to them, too, the log's bytes would stay in memory after
        :meth:`Replayer.release`: one-shots run without the collector of cycles.
        """
        creating, removing = _topic_key_readers()
        filers: dict[bytes, RecordFiler] = {head: partial(self._file_new, read) for head, read in creating.items()}
        return filers | {head: partial(self._file_removal, read) for head, read in removing.items()}

    def _file_new(self, read: KeyReader, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Let the topic of a TopicRecord wait, unless another one has its id or its name; return whether it waits."""
        parts = read(region, start, end)
        if parts is None:
            return False
        name, topic_id, _ = parts
        if topic_id in self._waiting or name in self._names:
            return False
        if topic_id in delta.peek(TOPICS) or _text(name) in delta.peek(NAMES):
            return False
        partitions: Addresses = {}
        self._waiting[topic_id] = _NewTopic(name, address, partitions)
        self._names.add(name)
        self._filed[topic_id] = partitions
        return True

    def _file_removal(self, read: KeyReader, region: Buffer, start: int, end: int, address: int, delta: Delta) -> bool:
        """Remove the topic of a RemoveTopicRecord, if it exists; return whether it did."""
        parts = read(region, start, end)
        return parts is not None and self.remove(parts[1], delta)

    def remove(self, topic_id: bytes, delta: Delta) -> bool:
        """Remove a topic together with its configs, whether it waits or not; return ``False`` if it does not exist."""
        topic = self._waiting.pop(topic_id, None)
        if topic is None:
            present: Topic | None = delta.peek(TOPICS).get(topic_id)
            if present is None:
                return False
            remove(delta, present.id)
            text = present.name.encode("utf-8", "surrogateescape")
            name = write_uvarint(len(text) + 1) + text
        else:
            name = topic.name
            self._names.discard(name)
            if delta.peek(CONFIGS.name):
                delta.drop(CONFIGS.name, ("TOPIC", _text(name)))
        self._filed.pop(topic_id, None)
        self._latest.forget(CONFIGS.name, _TOPIC_PREFIX + name)
        return True

    def apply(self, delta: Delta) -> None:
        """Create the topics that wait."""
        if not self._waiting:
            return
        table = delta.table(TOPICS)
        for topic_id, (name, address, partitions) in self._waiting.items():
            origin, records = self._log.origin(address), TopicRecords(self._log, self._changes, None)
            records.addresses = partitions
            topic = create(delta, _text(name), Uuid(topic_id), origin)
            table[topic.id] = RecordedTopic(topic.name, topic.id, origin, records)
        self._waiting.clear()
        self._names.clear()


def _text(name: bytes) -> str:
    """The text of a name as records have it: those that wait are so short that their length takes one byte."""
    return name[1:].decode("utf-8", "surrogateescape")


@cache
def _topic_key_readers() -> tuple[dict[bytes, KeyReader], dict[bytes, KeyReader]]:
    """Return the key readers of TopicRecord (name, then id) and of RemoveTopicRecord, each by the head of a value."""
    creating = {
        head: key_reader(TOPIC.schema, version, ("name", "topicId"), False, first_part=1)
        for version, head in TOPIC.heads()
    }
    removing = {
        head: key_reader(REMOVE_TOPIC.schema, version, ("topicId",), True) for version, head in REMOVE_TOPIC.heads()
    }
    return creating, removing
