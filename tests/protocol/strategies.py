"""Hypothesis strategies for messages, derived from the declarations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kshell.protocol.decoder import UNKNOWN_TAGS, Message
from kshell.protocol.primitives import Uuid
from kshell.protocol.schema import Field, Schema


def _integers(bits: int, signed: bool = True) -> SearchStrategy[int]:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high)


def _survives(text: str) -> bool:
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == text
    except UnicodeEncodeError:
        return False


_TEXT = st.binary(max_size=6).map(lambda raw: raw.decode("utf-8", "surrogateescape")) | st.text(max_size=200)
_PRIMITIVES: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "uint16": _integers(16, signed=False),
    "int32": _integers(32),
    "uint32": _integers(32, signed=False),
    "int64": _integers(64),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "bytes": st.binary(max_size=200),
    # What cannot be encoded in UTF-8 other than as an escaped byte does not come out of a decoder either.
    "string": _TEXT.filter(_survives),
}


def messages(schema: Schema, version: int, *, unknown_tags: bool = True) -> SearchStrategy[Message]:
    """Messages of a version: every field that is not tagged, any of the tagged ones, perhaps unknown tags."""
    return _struct(schema.fields, version, version >= schema.flexible, unknown_tags)


def _struct(fields: tuple[Field, ...], version: int, flexible: bool, unknown: bool) -> SearchStrategy[Message]:
    mine = [field for field in fields if version in field.versions]
    tagged = [field for field in mine if field.tag is not None and flexible]
    required = {f.name: _value(f, version, flexible, unknown) for f in mine if f not in tagged}
    optional: dict[str, SearchStrategy[Any]] = {f.name: _value(f, version, flexible, unknown) for f in tagged}
    if flexible and unknown:
        optional[UNKNOWN_TAGS] = _unknown({field.tag for field in tagged})
    return st.fixed_dictionaries(required, optional=optional)


def _unknown(taken: set[int | None]) -> SearchStrategy[list[dict[str, Any]]]:
    numbers = st.integers(0, 300).filter(lambda number: number not in taken)
    tags = st.dictionaries(numbers, st.binary(max_size=20), min_size=1, max_size=3)
    return tags.map(lambda found: [{"tag": tag, "data": data} for tag, data in sorted(found.items())])


def _value(field: Field, version: int, flexible: bool, unknown: bool) -> SearchStrategy[Any]:
    one: SearchStrategy[Any]
    if field.is_struct:
        one = _struct(field.fields, version, flexible, unknown)
    else:
        one = _PRIMITIVES[field.type]
    if field.array:
        one = st.lists(one, max_size=3) | (
            st.lists(one, min_size=130, max_size=130) if field.type == "int8" else one_list(one)
        )
    return st.none() | one if field.nullable else one


def one_list(one: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    """Lists of one element."""
    return st.lists(one, min_size=1, max_size=1)
