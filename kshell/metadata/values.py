"""Values of the image and where they came from; :func:`plain` gives Kafka's lowerCamelCase names."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

from kshell.protocol.primitives import Uuid

T_co = TypeVar("T_co", covariant=True)


class Place(NamedTuple):
    """The batch that a record came in: its file's name, the byte it starts at, its epoch, and the file's kind."""

    file: str
    position: int
    epoch: int
    in_snapshot: bool


class Origin(NamedTuple):
    """The record that last wrote a value. In a snapshot ``offset`` counts within the file: it is not the log's."""

    offset: int
    timestamp: int
    record_type: str
    version: int
    place: Place


new_origin = partial(tuple.__new__, Origin)
"""An :class:`Origin` of a tuple of its fields, at a third of the cost: a replay makes one for each record."""


class Entry(Generic[T_co]):
    """A value and its origin; immutable by convention, compared by value alone."""

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
    """The last record in an image (``MetadataProvenance``): offset, epoch, timestamp in epoch milliseconds."""

    offset: int
    epoch: int
    timestamp: int


@cache
def camel(name: str) -> str:
    """``partition_epoch`` -> ``partitionEpoch``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def plain(value: Any) -> Any:
    """A value as JSON knows it: named tuples become objects, UUIDs base64, other bytes hex, tuples lists."""
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {camel(name): plain(item) for name, item in zip(value._fields, value, strict=True)}
        return [plain(item) for item in value]
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


_NEWER = "UNKNOWN({})"
NEWER_ENUM = (_NEWER,)
"""What :func:`enum_name` calls codes that no release defines; ``{}`` stands for the number."""


def enum_name(names: dict[int, str], code: int) -> str:
    """Kafka's name of a code; a code that no release defines keeps its number: ``UNKNOWN(99)``."""
    return names.get(code) or _NEWER.format(code)


SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
