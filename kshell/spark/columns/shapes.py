"""Many values of one declaration at once: those of the same shape have the same fields, one after another.

A *shape* is what the bytes say besides the values: how long arrays are, which tagged fields were written, what is null.
A declaration becomes a list of steps; values walk through it together, and part where their shapes do. What is rare or
odd (a shape that few values have, unknown tags, long texts, left-over bytes) is not walked to its end: whoever asked
decodes it one by one. So nothing is decided here about what is wrong with a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from kshell.metadata.printing import default
from kshell.protocol.schema import Field, Schema

FIXED = {
    "int8": ">i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "uint32": ">u4",
    "int64": ">i8",
    "float64": ">f8",
    "bool": "|u1",
    "uuid": "|V16",
}


class Fixed(NamedTuple):
    """A value of fixed size; ``omitted``: the one that is not printed, ``None`` where every one is."""

    name: str
    type: str
    omitted: Any = None


class Chars(NamedTuple):
    """A string, or bytes that are hidden. ``lead``: the length byte of what is not printed, ``None`` if all is."""

    name: str
    nullable: bool
    lead: int | None
    hidden: str | None
    """What is printed instead, whatever it is."""
    follows: bool
    """Whether the record's config key decides if it is shown."""


class Array(NamedTuple):
    """Elements of equal steps; ``lead`` as for :class:`Chars`."""

    element: Steps
    nullable: bool
    lead: int | None


class Maybe(NamedTuple):
    """A struct behind a byte that says whether it is there; ``omits_null``: null is not printed."""

    steps: Steps
    omits_null: bool


class Tags(NamedTuple):
    """Tagged fields: by tag the text before one, and its steps. ``is_first``: no other field stands before them."""

    by_tag: Mapping[int, tuple[str, Steps]]
    is_first: bool


class Tag(NamedTuple):
    """One of the ``remaining`` tagged fields, after the tags ``previous``."""

    tags: Tags
    previous: frozenset[int]
    remaining: int


class Until(NamedTuple):
    """Where a tagged field must end: so many bytes after a base."""

    base: int
    at: int


Step = Union[str, Fixed, Chars, Array, Maybe, Tags, Tag, Until]  # noqa: UP007  # names what is below
Steps = tuple[Step, ...]
"""A string is text that is printed as it is."""


class Unshaped(Exception):
    """A declaration that has something which is only decoded one by one."""


class Secrets(NamedTuple):
    """Of a record's fields: what is printed instead of some, and which follow the config key."""

    hidden: Mapping[str, str] = {}
    follow: frozenset[str] = frozenset()


_NONE = Secrets()


def steps(schema: Schema, version: int, secrets: Secrets = _NONE) -> Steps:
    """A declaration at a version. Raises Unshaped."""
    if version < schema.flexible:
        raise Unshaped
    return _struct(schema.fields, version, secrets)


def _struct(fields: Sequence[Field], version: int, secrets: Secrets) -> Steps:
    mine = [field for field in fields if version in field.versions]
    parts: list[Step] = ["{"]
    for index, field in enumerate(field for field in mine if field.tag is None):
        parts += [f"{',' if index else ''}{json.dumps(field.name)}:", *_steps(field, version, secrets, ...)]
    tagged = {
        field.tag: (f"{json.dumps(field.name)}:", _steps(field, version, _NONE, default(field)))
        for field in mine
        if field.tag is not None
    }
    if not (set(secrets.hidden) | secrets.follow) <= {field.name for field in mine if field.tag is None}:
        raise Unshaped  # hidden even where they are not written
    return (*parts, Tags(tagged, is_first=len(parts) == 1), "}")


def _steps(field: Field, version: int, secrets: Secrets, omitted: Any) -> Steps:
    """The steps of a field's value. ``omitted``: the value that is not printed; an ellipsis where every one is."""
    name, hidden = field.name, secrets.hidden.get(field.name)
    lead = None if omitted is ... else 0 if omitted is None else 1
    if not field.array and (field.type == "string" or (field.type == "bytes" and hidden is not None)):
        if omitted not in (..., None, ""):
            raise Unshaped
        return (Chars(name, field.nullable, lead, hidden, name in secrets.follow),)
    if hidden is not None or name in secrets.follow:
        raise Unshaped
    if field.array:
        element = field._replace(array=False, nullable=False)
        return (Array(_steps(element, version, _NONE, ...), field.nullable, lead),)
    if field.is_struct:
        below = _struct(field.fields, version, _NONE)
        return (Maybe(below, omitted is None),) if field.nullable else below
    if field.type not in FIXED or (field.type == "uuid" and omitted is not ...):
        raise Unshaped
    return (Fixed(name, field.type, None if omitted is ... else omitted),)
