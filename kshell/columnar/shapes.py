"""Turn the declaration of a record type into the steps by which many of its values are decoded together.

Values of the same *shape* have the same fields, one after another: their arrays have the same lengths, the same tagged
fields were written, the same fields are null. :mod:`~kshell.columnar.walk` takes all values through the steps at
once and splits them where their shapes differ. Rare shapes and unusual values (unknown tags, long texts, left-over
bytes) drop out there, and the caller decodes them one by one. So no step decides what is wrong with a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from kshell.metadata.printing import default
from kshell.protocol.schema import Field, Schema

# Types of fixed size -> the numpy type of their bytes.
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
    """A value of fixed size. ``omitted``: the default value, which is not printed; ``None``: every value is printed."""

    name: str
    type: str
    omitted: Any = None


class Chars(NamedTuple):
    """A string, or bytes that are redacted."""

    name: str
    nullable: bool
    lead: int | None
    """The length byte of the default value, which is not printed; ``None``: every value is printed."""
    hidden: str | None
    """The JSON text that is printed instead of every value; ``None``: values are printed."""
    follows: bool
    """Whether the config key of the record decides if the value is redacted."""


class Array(NamedTuple):
    """An array whose elements all have the steps ``element``; ``lead`` as in :class:`Chars`."""

    element: Steps
    nullable: bool
    lead: int | None


class Maybe(NamedTuple):
    """A nullable struct: a byte says whether it is null. ``omits_null``: null is not printed."""

    steps: Steps
    omits_null: bool


class Tags(NamedTuple):
    """Tagged fields: tag -> text before the value, and the value's steps. ``is_first``: there are no other fields."""

    by_tag: Mapping[int, tuple[str, Steps]]
    is_first: bool


class Tag(NamedTuple):
    """The next tagged field, after those with the tags ``previous``; ``remaining`` are left, this one included."""

    tags: Tags
    previous: frozenset[int]
    remaining: int


class Until(NamedTuple):
    """A check that a tagged field ends where its size says: ``at`` bytes after base number ``base``."""

    base: int
    at: int


Step = Union[str, Fixed, Chars, Array, Maybe, Tags, Tag, Until]  # noqa: UP007  # names what is below
Steps = tuple[Step, ...]
"""What to do with a value, in order. A step that is a string prints that text."""


class Unshaped(Exception):
    """A declaration has something that can only be decoded one by one."""


class Secrets(NamedTuple):
    """Redacted fields: ``hidden`` has the text printed instead; those in ``follow`` depend on the config key."""

    hidden: Mapping[str, str] = {}
    follow: frozenset[str] = frozenset()


_NONE = Secrets()


def steps(schema: Schema, version: int, secrets: Secrets = _NONE) -> Steps:
    """Return the steps of a declaration at a version, which print its values as JSON. Raises Unshaped."""
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
        raise Unshaped  # redaction prints such a field even if it was not written
    return (*parts, Tags(tagged, is_first=len(parts) == 1), "}")


def _steps(field: Field, version: int, secrets: Secrets, omitted: Any) -> Steps:
    """Return the steps of a field's value. ``omitted``: the value that is not printed; an ellipsis: print every one."""
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
