"""Entries of the image: a value and its origin, the record that wrote it. :func:`plain` is a value's JSON form."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

from kshell.protocol.primitives import Uuid

T_co = TypeVar("T_co", covariant=True)


class BatchPosition(NamedTuple):
    """The batch that holds a record: its file, the byte at which it begins there, and its leader epoch."""

    file: str
    position: int
    epoch: int
    in_snapshot: bool


class Origin(NamedTuple):
    """The record that last wrote a value. In a snapshot ``offset`` counts records of the file: it is not the log's."""

    offset: int
    timestamp: int
    record_type: str
    version: int
    place: BatchPosition


new_origin = partial(tuple.__new__, Origin)
"""Make an :class:`Origin` from a tuple of its fields, in a third of the time: a replay makes one for each record."""


class Entry(Generic[T_co]):
    """A value and its origin. Never changed once it is made; entries with equal values are equal."""

    __slots__ = ("origin", "value")

    def __init__(self, value: T_co, origin: Origin) -> None:
        self.value = value
        self.origin = origin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        # Not the value: it may be secret, and a repr ends in logs and tracebacks.
        return f"Entry(offset={self.origin.offset})"


class Provenance(NamedTuple):
    """The last metadata record in an image (``MetadataProvenance``); ``timestamp`` is in epoch milliseconds."""

    offset: int
    epoch: int
    timestamp: int


@cache
def camel(name: str) -> str:
    """Return a name in lowerCamelCase: ``partition_epoch`` -> ``partitionEpoch``."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_SCALARS = frozenset((str, int, float, bool, type(None)))


@cache
def _json_names(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(camel, fields))


def plain(value: Any) -> Any:
    """Return a value in its JSON form: named tuples become objects, UUIDs base64, other bytes hex, tuples lists."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is Uuid:
        return str(value)
    if kind is tuple or kind is list or isinstance(value, tuple | list):
        parts = [part if type(part) in _SCALARS else plain(part) for part in value]
        fields = getattr(value, "_fields", None)
        return parts if fields is None else dict(zip(_json_names(fields), parts, strict=True))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


_NEWER = "UNKNOWN({})"
NEWER_ENUM = (_NEWER,)
"""The template of the names that :func:`enum_name` gives to codes no release defines; ``{}`` is the code."""


def enum_name(names: dict[int, str], code: int) -> str:
    """Return Kafka's name of an enumeration's code, or ``UNKNOWN(99)`` for a code that no release defines."""
    return names.get(code) or _NEWER.format(code)


SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
