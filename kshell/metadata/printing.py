"""Decoded messages in the JSON form that Kafka's own generated ``…JsonConverter`` classes write.

UUIDs and bytes are base64; a tagged field with its default value is left out, as Kafka's converters do. Unknown tags,
which Kafka's converters do not show at all, are kept in hex.

Which fields must be converted is found once per schema: most are printed as they are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kshell.protocol.decoder import UNKNOWN_TAGS, Message
from kshell.protocol.primitives import ZERO_UUID, Uuid
from kshell.protocol.schema import Field, Schema

Printer = Callable[[Message], Message]

_printers: dict[Schema, Printer] = {}


def printer(schema: Schema) -> Printer:
    """Return the function that converts messages of a schema. It changes the message it is given, and returns it."""
    cached = _printers.get(schema)
    if cached is None:
        cached = _printers[schema] = _printer(schema.fields)
    return cached


def _printer(fields: tuple[Field, ...]) -> Printer:
    convert = [(field.name, change) for field in fields if (change := _change(field)) is not None]
    tagged = [(field.name, default(field)) for field in fields if field.tag is not None]

    def print_message(message: Message) -> Message:
        for name, default in tagged:
            if name in message and message[name] == default:
                del message[name]
        for name, change in convert:
            if message.get(name) is not None:
                message[name] = change(message[name])
        if UNKNOWN_TAGS in message:
            message[UNKNOWN_TAGS] = [{"tag": tag["tag"], "data": tag["data"].hex()} for tag in message[UNKNOWN_TAGS]]
        return message

    return print_message


def default(field: Field) -> Any:
    """Return a tagged field's default, with which it is not printed, in the form in which the decoder returns it."""
    if field.array and field.default == ():
        return []
    if field.type == "bytes" and field.default == "":
        return b""
    return ZERO_UUID if field.type == "uuid" and not field.array else field.default


def _change(field: Field) -> Callable[[Any], Any] | None:
    """Return the function that converts a field's value; ``None`` if JSON can hold the value as it is."""
    simple: dict[str, Callable[[Any], Any]] = {"uuid": _uuid, "bytes": _base64}
    change = _printer(field.fields) if field.is_struct else simple.get(field.type)
    if change is None or not field.array:
        return change
    change_value = change
    return lambda values: [change_value(value) for value in values]


@lru_cache(maxsize=1 << 14)
def _uuid(value: Uuid) -> str:
    return str(value)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
