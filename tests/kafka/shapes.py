"""What a message is on the wire, by our declaration and by Kafka's definition of it, and how the two differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from kshell.protocol.api import NEVER
from kshell.protocol.schema import Field, Schema, Versions
from tests.kafka.messages import Message


class Shape(NamedTuple):
    """What a field is on the wire at one version."""

    path: str
    type: str
    nullable: bool
    tag: int | None
    default: object


Difference = tuple[int, Shape | None, Shape | None]
"""A version, the field as we declare it, and the field as Kafka defines it."""


def our_shapes(fields: tuple[Field, ...], version: int, prefix: str = "") -> Iterator[Shape]:
    """Return the fields of a declaration at a version, nested ones after the field that holds them."""
    for field in fields:
        if version not in field.versions:
            continue
        kind = "struct" if field.is_struct else field.type
        path = prefix + field.name
        default = None if field.is_struct else field.default
        yield Shape(path, "[]" * field.array + kind, field.nullable, field.tag, default if not field.array else None)
        yield from our_shapes(field.fields, version, path + ".")


def kafkas_shapes(message: Message, version: int) -> Iterator[Shape]:
    """Return the fields of Kafka's definition at a version, in the same order."""
    structs = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", ())}

    def walk(fields: list[dict[str, Any]], prefix: str) -> Iterator[Shape]:
        for field in fields:
            if version not in Versions.parse(field["versions"]):
                continue
            kind = field["type"].removeprefix("[]")
            array = field["type"].startswith("[]")
            inner = field.get("fields") or structs.get(kind)
            path = prefix + field["name"][0].lower() + field["name"][1:]
            tagged = "taggedVersions" in field and version in Versions.parse(field["taggedVersions"])
            nullable = "nullableVersions" in field and version in Versions.parse(field["nullableVersions"])
            default = None if inner or array else _default(field.get("default"), kind)
            shown = "[]" * array + ("struct" if inner else kind)
            yield Shape(path, shown, nullable, int(field["tag"]) if tagged else None, default)
            if inner:
                yield from walk(inner, path + ".")

    return walk(message["fields"], "")


def _default(text: str | None, kind: str) -> object:
    if text == "null":
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    if kind in ("string", "bytes"):
        return text or ""
    if kind == "uuid":
        return None
    return int(str(text or "0"), 0)


def wire_order(shapes: Iterator[Shape]) -> tuple[list[Shape], list[Shape]]:
    """Return the fields in the order of the wire, and the tagged ones by their tags."""
    every = list(shapes)
    tagged = [shape for shape in every if shape.tag is not None]
    return [shape for shape in every if shape.tag is None], sorted(
        tagged, key=lambda shape: (shape.tag or 0, shape.path)
    )


def highest_version(message: Message) -> int:
    """Return the highest version of a definition."""
    high = Versions.parse(message["validVersions"]).high
    assert high is not None
    return high


def flexible_versions(schema: Schema) -> str:
    """Return the versions with tagged fields of a declaration, as Kafka writes them."""
    return "none" if schema.flexible == NEVER else f"{schema.flexible}+"


def record_differences(schema: Schema, message: Message) -> list[str]:
    """Say where a record's declaration differs from Kafka's definition at the versions that Kafka has."""
    if schema.name != message["name"]:
        return [f"is declared as {schema.name}"]
    if (flexible := flexible_versions(schema)) != message["flexibleVersions"]:
        return [f"is declared flexible at {flexible}, in Kafka at {message['flexibleVersions']}"]
    reasons = []
    for version in range(Versions.parse(message["validVersions"]).low, highest_version(message) + 1):
        if version not in schema.versions:
            reasons.append(f"version {version} is not declared")
            continue
        pairs = _pairs(wire_order(our_shapes(schema.fields, version)), wire_order(kafkas_shapes(message, version)))
        reasons += [shown((version, mine, kafkas)) for mine, kafkas in pairs if mine != kafkas][:1]
    return reasons


def message_differences(schema: Schema, message: Message, *, defaults: bool) -> list[Difference]:
    """Return where a request or a response differs at the versions that both have.

    Ours may be null where Kafka's is not, may have tagged fields of later releases, and calls ``records`` bytes.
    """
    valid = Versions.parse(message["validVersions"])
    differences: list[Difference] = []
    for version in range(schema.versions.low, (schema.versions.high or 0) + 1):
        if version not in valid:
            continue
        mine, my_tags = wire_order(our_shapes(schema.fields, version))
        kafkas, kafkas_tags = wire_order(kafkas_shapes(message, version))
        names = {shape.path for shape in kafkas_tags}
        tagged = [shape for shape in my_tags if shape.path in names]
        pairs = _pairs((mine, tagged), (kafkas, kafkas_tags))
        differences += [(version, *pair) for pair in pairs if not _is_same(*pair, defaults=defaults)]
    return differences


def shown(difference: Difference) -> str:
    """Return a difference as a sentence: what is missing, what is too much, or both fields."""
    version, mine, kafkas = difference
    if mine is None and kafkas is not None:
        return f"version {version}: the field {kafkas.path} ({kafkas.type}) is not declared"
    if kafkas is None and mine is not None:
        return f"version {version}: Kafka has no field {mine.path}"
    return f"version {version}: {mine} is declared, Kafka has {kafkas}"


def _pairs(
    mine: tuple[list[Shape], list[Shape]], kafkas: tuple[list[Shape], list[Shape]]
) -> list[tuple[Shape | None, Shape | None]]:
    return [pair for ours, theirs in zip(mine, kafkas, strict=True) for pair in _aligned(ours, theirs)]


def _aligned(mine: list[Shape], kafkas: list[Shape]) -> Iterator[tuple[Shape | None, Shape | None]]:
    """Pair fields by their place; from the first whose names differ on, one side has a field that the other lacks."""
    for at, (ours, theirs) in enumerate(zip_longest(mine, kafkas)):
        if ours is not None and theirs is not None and ours.path != theirs.path:
            is_missing = theirs.path not in {shape.path for shape in mine[at:]}
            yield (None, theirs) if is_missing else (ours, None)
            return
        yield ours, theirs


def _is_same(mine: Shape | None, kafkas: Shape | None, *, defaults: bool) -> bool:
    """Return whether a field of ours reads what Kafka's writes, and writes what it reads."""
    if mine is None or kafkas is None or (kafkas.nullable and not mine.nullable):
        return False
    if kafkas.type == "records":
        kafkas = kafkas._replace(type="bytes", default=mine.default)
    if not defaults:
        kafkas = kafkas._replace(default=mine.default)
    return mine == kafkas._replace(nullable=mine.nullable)
