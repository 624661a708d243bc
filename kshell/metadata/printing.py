"""Decoded messages as Kafka's own JSON converters write them.

UUIDs and bytes are base64; a tagged field that was written with its default value is left out (Kafka's generated
``…JsonConverter`` classes do not write it either). Unknown tags, which those do not show at all, are kept in hex.

What a message needs is found once per declaration: most fields are printed as they are.
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
    """The function that prints messages of a declaration. It changes the message that it is given, and returns it."""
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
    """The value of a tagged field that is not printed, as a decoder gives it."""
    if field.array and field.default == ():
        return []
    if field.type == "bytes" and field.default == "":
        return b""
    return ZERO_UUID if field.type == "uuid" and not field.array else field.default


def _change(field: Field) -> Callable[[Any], Any] | None:
    """What must happen to a field's value, or ``None`` when JSON knows it as it is."""
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
