"""Records that later ones of the same key overwrite: of each key, the address of the last one.

A replay of the newest state decodes a config, an ACL or a quota when an image is made of it, and not before: what was
overwritten until then, or came and went, is never decoded.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from kshell.metadata.delta import Delta
from kshell.metadata.records import LatestByKey, record_types
from kshell.protocol.key_reader import KeyReader, key_reader
from kshell.protocol.primitives import Buffer, Uuid

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
        found: list[int] = []
        for waiting in self._by_family.values() if family is None else [self._by_family[family]]:
            if waiting:
                found += (max(address, ~address) for below in waiting.values() for address in below.values())
                waiting.clear()
        found.sort()
        return found

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
        found = self._read(region, start, end)
        if found is None:
            return False
        above, key, is_tombstone = found
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
    found = []
    for kind in record_types().values():
        if kind.latest is not None:
            for version, head in kind.heads():
                read = key_reader(kind.schema, version, kind.latest.key, kind.latest.tombstone, kind.latest.above)
                found.append((head, kind.latest, read))
    return found
