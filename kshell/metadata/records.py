"""Metadata record types, and how a record's value is decoded. A type is declared by decorating its replay function.

::

    @record(2, "TopicRecord", "0", \"\"\"
        name     string
        topicId  uuid
    \"\"\")
    def topic(delta, data, origin): ...

The codec, the name in ``dump``, ``info``'s counts, redaction, completion and the tests derive from that. A record's
value consists of a *head*, the unsigned varints frame version (1), api key and version, and of the message
(``org.apache.kafka.server.common.serialization.AbstractApiMessageSerde``).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from kshell.discovery import module_names
from kshell.protocol.control import NewerControlError, control_name, control_version, decode_control
from kshell.protocol.decoder import Decoder, Message, decoder
from kshell.protocol.primitives import DecodeError, read_uvarint
from kshell.protocol.schema import Schema

if TYPE_CHECKING:
    from kshell.metadata.delta import Delta
    from kshell.metadata.values import Origin
    from kshell.protocol.batches import RawRecord

FRAME_VERSION = 1

Replay = Callable[["Delta", Message, "Origin"], None]


class ReplayError(Exception):
    """A record was decoded but does not fit the image. Kafka's own loader throws here; kshell lists and skips it."""


class LatestByKey(NamedTuple):
    """The declaration that a record overwrites every earlier record of the same key.

    Only the latest record of a key is then replayed, and late: when an image is made. So the replay function of such a
    type may write one value of one family only, and must not read the image.
    """

    family: str
    """The family in which a record sets or removes a value."""
    key: tuple[str, ...]
    """The fields that identify the value, which are adjacent in the message."""
    above: int = 0
    """How many of these fields identify a table, in a family with two levels of which other records remove a table."""
    tombstone: str | bool = False
    """Whether a record removes the value, or the field that decides it: a null text or a true boolean removes it."""
    must_exist: bool = False
    """Whether removing a value that does not exist is an error. The key must then be a UUID, as in the family."""


HEAD_SIZE = 3
"""Bytes of a value's head: frame version, api key and version take one byte each for every known type."""


_ONE_BYTE = 0x7F
"""The largest number that a varint holds in one byte."""


class RecordType(NamedTuple):
    """A type of metadata record; ``name`` is Kafka's, such as ``TOPIC_RECORD``."""

    api_key: int
    name: str
    schema: Schema
    replay: Replay
    latest: LatestByKey | None = None

    def heads(self) -> Iterator[tuple[int, bytes]]:
        """Yield (version, head of its values) of every known version."""
        low, high = self.schema.versions
        for version in range(low, (low if high is None else high) + 1):
            yield version, bytes((FRAME_VERSION, self.api_key, version))


_TYPES: dict[int, RecordType] = {}


def record(
    api_key: int, name: str, versions: str, fields: str = "", latest: LatestByKey | None = None
) -> Callable[[Replay], RecordType]:
    """Declare a record type; the decorated function replays its records.

    Args:
        api_key: Kafka's number of the type.
        name: Kafka's name, ``TopicRecord``.
        versions: the known versions, ``0-2``.
        fields: the message in the schema language (:mod:`kshell.protocol.schema`).
        latest: the declaration for a type whose records overwrite earlier ones of the same key.

    Raises:
        ValueError: the api key is declared already, or takes more than the one byte that :data:`HEAD_SIZE` allows.
    """
    if not 0 <= api_key <= _ONE_BYTE:
        raise ValueError(f"{name}: api key {api_key} takes two bytes, and HEAD_SIZE counts one")

    def declare(replay: Replay) -> RecordType:
        kind = RecordType(api_key, upper_snake(name), Schema(name, versions, fields), replay, latest)
        if _TYPES.setdefault(api_key, kind) is not kind:
            raise ValueError(f"api key {api_key} is declared twice: {_TYPES[api_key].name} and {kind.name}")
        return kind

    return declare


def upper_snake(name: str) -> str:
    """Return the name of a type as Kafka prints it: ``PartitionChangeRecord`` -> ``PARTITION_CHANGE_RECORD``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


@cache
def load_families() -> None:
    """Import every module of :mod:`kshell.metadata.families`, which declares the record types and families."""
    import kshell.metadata.families as package

    for name in module_names(package.__path__):
        importlib.import_module(f"{package.__name__}.{name}")


def record_types() -> dict[int, RecordType]:
    """Return every declared type, by api key."""
    load_families()
    return _TYPES


class Undecoded(NamedTuple):
    """A record's value that was not decoded. ``malformed``: it violates its schema; else it is newer than kshell."""

    raw: bytes
    reason: str
    malformed: bool

    def __repr__(self) -> str:
        return f"Undecoded({len(self.raw)} bytes, {self.reason!r})"  # not the bytes: they may be secret


class Decoded(NamedTuple):
    """A record's value: the type's name (``UNKNOWN_31`` if unknown), the version, and either message or bytes."""

    name: str
    version: int
    type: RecordType | None
    data: Message | None
    undecoded: Undecoded | None

    def __repr__(self) -> str:
        return f"Decoded({self.name} v{self.version})"  # not the message: it may hold secrets


def decode_known(value: bytes) -> tuple[RecordType, int, Message] | None:
    """Return (type, version, message) of a value, ``None`` if it cannot be decoded: a faster :func:`decode_value`."""
    decoding = _HEADS.get(value[:HEAD_SIZE]) or _learn(value)
    if isinstance(decoding, Decoded):
        return None
    kind, version, decode = decoding
    try:
        data, end = decode(value, HEAD_SIZE)
    except DecodeError:
        return None
    return (kind, version, data) if end == len(value) else None


def decode_value(value: bytes | None) -> Decoded:
    """Decode the value of a metadata record. Never raises: if it cannot be decoded, the result has the reason."""
    if value is None:
        return Decoded("UNKNOWN", -1, None, None, Undecoded(b"", "the record has no value", True))
    decoding = _HEADS.get(value[:HEAD_SIZE]) or _learn(value)
    if isinstance(decoding, Decoded):
        return decoding
    kind, version, decode = decoding
    try:
        data, end = decode(value, HEAD_SIZE)
    except DecodeError as error:
        return Decoded(kind.name, version, kind, None, Undecoded(value, str(error), True))
    if end == len(value):
        return Decoded(kind.name, version, kind, data, None)
    reason = f"{len(value) - end} bytes too many after a {kind.name} v{version}"
    return Decoded(kind.name, version, kind, None, Undecoded(value, reason, True))


def decode_record(raw: RawRecord, *, control: bool) -> Decoded:
    """Decode a metadata record or a control record. Never raises. A metadata record that has a key is not decoded."""
    if control:
        return _decode_control(raw)
    decoded = decode_value(raw.value)
    if raw.key is None:
        return decoded
    return decoded._replace(data=None, undecoded=Undecoded(raw.value or b"", "a metadata record has a key", True))


def _decode_control(raw: RawRecord) -> Decoded:
    name = control_name(raw.key)
    try:
        _, version, data = decode_control(raw.key, raw.value)
    except DecodeError as error:
        undecoded = Undecoded(raw.value or b"", error.reason, not isinstance(error, NewerControlError))
        return Decoded(name, control_version(raw.value), None, None, undecoded)
    return Decoded(name, version, None, data, None)


_HEADS: dict[bytes, tuple[RecordType, int, Decoder]] = {}
"""Head of a value -> (type, version, decoder of the message), for heads that were met before."""


def _learn(value: bytes) -> tuple[RecordType, int, Decoder] | Decoded:
    """Return how to decode values with this value's head, and remember it; or why the value cannot be decoded."""
    try:
        frame, pos = read_uvarint(value, 0)
        api_key, pos = read_uvarint(value, pos)
        version, pos = read_uvarint(value, pos)
    except DecodeError as error:
        return Decoded("UNKNOWN", -1, None, None, Undecoded(value, str(error), True))
    kind = record_types().get(api_key)
    reason = _unknown(frame, api_key, version, kind)
    if reason is None and pos != HEAD_SIZE:
        reason = "frame version, api key and version are not written in one byte each"
    if kind is None or reason is not None:
        name = kind.name if kind else f"UNKNOWN_{api_key}"
        return Decoded(name, version, kind, None, Undecoded(value, reason or "", False))
    decoding = _HEADS[value[:HEAD_SIZE]] = (kind, version, decoder(kind.schema, version))
    return decoding


def _unknown(frame: int, api_key: int, version: int, kind: RecordType | None) -> str | None:
    """Return why a value with such a head is newer than kshell; ``None`` if it is not."""
    if frame != FRAME_VERSION:
        return f"frame version {frame} is not known (only {FRAME_VERSION})"
    if kind is None:
        return f"record type {api_key} is not known"
    if version not in kind.schema.versions:
        return f"{kind.name} version {version} is not known (only {kind.schema.versions})"
    return None
