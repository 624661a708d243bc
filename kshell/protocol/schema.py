"""The language in which messages and records are declared: a name, the versions that exist, and one line per field.

Decoders, the encoder and redaction derive from these declarations. For example::

    endPoints              []BrokerEndpoint
      name                 string
      port                 uint16
    rack                   string?                     nullable
    inControlledShutdown   bool            1+          exists from version 1 on
    logDirs                []uuid          3+  tag 0   a tagged field
    leader                 int32           tag 1 = -2  with a default
    salt                   bytes           secret

The fields of a struct are indented below the field that uses it. A ``secret`` field is redacted; ``secret:config``
means that the record's config key decides whether it is. The source is Kafka's message definitions (KIP-482 for tags
and flexible versions); a test compares them with these declarations.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

PRIMITIVES = frozenset("bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes".split())

Default = bool | int | str | tuple[()] | None


class Versions(NamedTuple):
    """An inclusive range of versions; ``high`` is ``None`` for "and all later ones"."""

    low: int
    high: int | None

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse ``"2"``, ``"0-3"`` or ``"1+"``."""
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version and (self.high is None or version <= self.high)

    def __str__(self) -> str:
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"


ALL_VERSIONS = Versions(0, None)


class Field(NamedTuple):
    """One field of a message. ``type`` names a primitive type or a struct, whose fields are ``fields``.

    With ``array``, the field is an array of that type, and ``nullable`` is about the array. ``default`` is also set if
    the declaration has none (``has_default`` is false then).
    """

    name: str
    type: str
    array: bool = False
    nullable: bool = False
    versions: Versions = ALL_VERSIONS
    tag: int | None = None
    default: Default = None
    has_default: bool = False
    secret: str | None = None
    fields: tuple[Field, ...] = ()

    @property
    def is_struct(self) -> bool:
        return self.type not in PRIMITIVES


_LINE = re.compile(
    r"(?P<indent> *)(?P<name>\w+) +(?P<array>\[\])?(?P<type>\w+)(?P<null>\?)?"
    r"(?: +(?P<versions>\d+(?:\+|-\d+)?))?(?: +tag (?P<tag>\d+))?(?: *= *(?P<default>\S+))?"
    r"(?: +(?P<secret>secret\S*))?$"
)
_IMPLICIT: dict[str, Default] = {"bool": False, "string": "", "bytes": "", "uuid": None}


def _default(text: str | None, kind: str, array: bool) -> Default:
    if text is None:
        return () if array else _IMPLICIT.get(kind, 0)
    if text == "null":
        return None
    if kind == "bool":
        return text == "true"
    return text if kind == "string" else int(text)


def parse_fields(text: str) -> tuple[Field, ...]:
    """Parse the text of a declaration. Raises ``ValueError``, which names the line or the field that is wrong."""
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        match = _LINE.match(line.rstrip())
        if match is None:
            raise ValueError(f"not a field declaration: {line.strip()!r}")
        rows.append(match)
    fields, used = _block(rows, 0, len(rows[0]["indent"]) if rows else 0)
    if used != len(rows):
        raise _wrong_indentation(rows[used])
    return fields


def _block(rows: list[re.Match[str]], at: int, indent: int) -> tuple[tuple[Field, ...], int]:
    fields: list[Field] = []
    while at < len(rows) and len(rows[at]["indent"]) >= indent:
        row = rows[at]
        if len(row["indent"]) > indent:
            if not fields[-1].is_struct or fields[-1].fields:
                raise _wrong_indentation(row)
            nested, at = _block(rows, at, len(row["indent"]))
            hidden = next((field.name for field in nested if field.secret), None)
            if hidden:
                raise ValueError(f"{hidden}: only a field of the record itself can be secret")
            fields[-1] = fields[-1]._replace(fields=nested)
            continue
        fields.append(_field(row))
        at += 1
    for field in fields:
        if field.is_struct and not field.fields:
            raise ValueError(f"{field.name}: {field.type} is not a primitive type, and has no fields of its own")
    return tuple(fields), at


def _wrong_indentation(row: re.Match[str]) -> ValueError:
    return ValueError(f"wrong indentation: {row.group(0).strip()!r}")


def _field(row: re.Match[str]) -> Field:
    return Field(
        name=row["name"],
        type=row["type"],
        array=row["array"] is not None,
        nullable=row["null"] is not None,
        versions=Versions.parse(row["versions"]) if row["versions"] else ALL_VERSIONS,
        tag=int(row["tag"]) if row["tag"] else None,
        default=_default(row["default"], row["type"], row["array"] is not None),
        has_default=row["default"] is not None,
        secret=row["secret"],
    )


class Schema:
    """The declaration of a message: Kafka's name, versions, the first ``flexible`` version, fields (parsed on use)."""

    def __init__(self, name: str, versions: str, text: str = "", *, flexible: int = 0) -> None:
        self.name = name
        self.versions = Versions.parse(versions)
        self.flexible = flexible
        self.text = text

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return parse_fields(self.text)

    @cached_property
    def secrets(self) -> dict[str, str]:
        """Name of a top-level field -> ``"secret"`` or ``"secret:config"``, for the fields that are secret."""
        return {field.name: field.secret for field in self.fields if field.secret}

    def __repr__(self) -> str:
        return f"Schema({self.name} {self.versions})"
