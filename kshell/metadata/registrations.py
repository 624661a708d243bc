"""Brokers that register, are fenced and come back: their records, without decoding what was decoded before.

A cluster's brokers say the same of themselves again and again. A registration differs from the one before it in the
broker's incarnation and epoch; a change of one says one of a few things. What is left of a record without those is its
*essence*, decoded once. What the records add up to waits for the next image.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.families.cluster import (
    BROKERS,
    REGISTER_BROKER,
    REGISTRATION_CHANGE,
    Broker,
    change_registration,
)
from kshell.metadata.record_log import RecordLog
from kshell.metadata.records import HEAD_SIZE
from kshell.metadata.values import Entry
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import Buffer, Uuid

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
    """What a change says, and what it made of brokers."""

    __slots__ = ("_after", "_data")

    def __init__(self, data: Message) -> None:
        self._data = data
        self._after: dict[int, tuple[Broker, Broker]] = {}
        """The identity of a broker -> that broker, and what it became."""

    def applied(self, broker: Broker, registrations: Registrations) -> Broker:
        """The broker after the change: the same object where it changes nothing."""
        known = self._after.get(id(broker))
        if known is None:
            after = registrations.interned(change_registration(broker, self._data))
            if len(self._after) >= _MOST_BROKERS:
                self._after.clear()
            known = self._after[id(broker)] = (broker, broker if after == broker else after)
        return known[1]


class Registrations:
    """What waits of the brokers, and what records like those that come have said."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, _Waiting] = {}
        """By the broker's id, as records have it."""
        self.registered: dict[bytes, Broker] = {}
        """The essence of a registration -> a broker that registered so."""
        self.changes: dict[bytes, _Change] = {}
        """The essence of a change -> what it says."""
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
        """Remember what a record says that was just replayed."""
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
        """Remember what a record says that was just replayed."""
        known = self._registrations.registered
        if len(known) >= _MOST_ESSENCES:
            known.clear()
        known[self._essence(value, HEAD_SIZE, len(value))] = delta.peek(BROKERS.name)[data["brokerId"]].value


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
            known = broker.epoch.to_bytes(_EPOCH, "big", signed=True)
            waiting = self._registrations.waiting[broker_id] = _Waiting(broker, known, broker.incarnation_id, None)
        if waiting.epoch != epoch:
            return False
        after = change.applied(waiting.broker, self._registrations)
        if after is not waiting.broker:
            waiting.broker, waiting.address = after, address
        return True

    def learn(self, value: bytes, data: Message, delta: Delta) -> None:
        """Remember what a record says that was just replayed."""
        known = self._registrations.changes
        if len(known) >= _MOST_ESSENCES:
            known.clear()
        known[self._head + value[HEAD_SIZE + _ID + _EPOCH :]] = _Change(data)


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)
