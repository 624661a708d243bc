"""Our declarations of records say what Kafka's own message definitions say, in every release that has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import pytest

from kshell.metadata.records import record_types
from kshell.protocol.api import NEVER, Api
from kshell.protocol.apis import API_NAMES
from kshell.protocol.control import CONTROL_TYPES
from kshell.protocol.error_codes import error_codes, error_name, is_retriable
from kshell.protocol.schema import Field, Schema, Versions
from tests.kafka import jars, messages
from tests.server.apis import apis

pytestmark = pytest.mark.live

RELEASES = ("3.3.2", "3.9.2", "4.3.1")
NEWER_THAN_RELEASED = {"UnregisterControllerRecord"}
"""Declared although no release up to the latest has them."""

FIRST_WRITTEN = {"UserScramCredentialRecord": (3, 5), "DelegationTokenRecord": (3, 6), "AccessControlRecord": (99,)}
"""Records that earlier releases define, with another layout of the same version, and no release before these writes.
AccessControlRecord (api key 6) went away unused."""


class Shape(NamedTuple):
    """What a field is on the wire at one version."""

    path: str
    type: str
    nullable: bool
    tag: int | None
    default: object


def ours(fields: tuple[Field, ...], version: int, prefix: str = "") -> Iterator[Shape]:
    """Return the fields of a declaration at a version, nested ones after the field that holds them."""
    for field in fields:
        if version not in field.versions:
            continue
        kind = "struct" if field.is_struct else field.type
        path = prefix + field.name
        default = None if field.is_struct else field.default
        yield Shape(path, "[]" * field.array + kind, field.nullable, field.tag, default if not field.array else None)
        yield from ours(field.fields, version, path + ".")


def theirs(message: messages.Message, version: int) -> Iterator[Shape]:
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


def wire_order(shapes: Iterator[Shape]) -> tuple[list[Shape], set[Shape]]:
    """Return the fields in the order of the wire, and the tagged ones, whose order the tags say."""
    found = list(shapes)
    return [shape for shape in found if shape.tag is None], {shape for shape in found if shape.tag is not None}


def compare(schema: Schema, message: messages.Message) -> None:
    """Fail unless a declaration and Kafka's definition agree at every version that Kafka has."""
    valid = Versions.parse(message["validVersions"])
    assert schema.name == message["name"]
    assert message["flexibleVersions"] == f"{schema.flexible}+"
    assert valid.high is not None
    for version in range(valid.low, valid.high + 1):
        assert version in schema.versions
        assert wire_order(ours(schema.fields, version)) == wire_order(theirs(message, version)), f"version {version}"


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_records(release: str) -> None:
    jars.require(release)
    declared = {kind.api_key: kind for kind in record_types().values()}
    for name, message in messages.metadata_records(release).items():
        if tuple(map(int, release.split("."))) < FIRST_WRITTEN.get(name, (0,)):
            continue
        compare(declared[message["apiKey"]].schema, message)


@pytest.mark.parametrize("release", RELEASES)
def test_control_records(release: str) -> None:
    jars.require(release)
    declared = {kind.schema.name: kind.schema for kind in CONTROL_TYPES.values()}
    found = messages.control_records(release)
    assert found
    for name, message in found.items():
        compare(declared[name], message)


def test_nothing_is_declared_that_kafka_does_not_have() -> None:
    jars.require()
    metadata = messages.metadata_records(jars.LATEST)
    names = {kind.schema.name for kind in record_types().values()}
    assert names - metadata.keys() == NEWER_THAN_RELEASED
    for kind in record_types().values():
        if kind.schema.name in metadata:
            assert str(kind.schema.versions) == str(Versions.parse(metadata[kind.schema.name]["validVersions"]))
    assert {kind.schema.name for kind in CONTROL_TYPES.values()} == messages.control_records(jars.LATEST).keys()


Pair = tuple[int, Shape | None, Shape | None]


def differences(schema: Schema, message: messages.Message, *, defaults: bool) -> list[Pair]:
    """Return (version, our field, Kafka's field) where a request or response differs at the versions that both have.

    Ours may be null where Kafka's is not, may have tagged fields of later releases, and calls ``records`` bytes.
    """
    valid = Versions.parse(message["validVersions"])
    assert message["flexibleVersions"] == ("none" if schema.flexible == NEVER else f"{schema.flexible}+")
    found: list[Pair] = []
    for version in range(schema.versions.low, (schema.versions.high or 0) + 1):
        if version not in valid:
            continue
        mine, my_tags = wire_order(ours(schema.fields, version))
        kafkas, their_tags = wire_order(theirs(message, version))
        names = {shape.path for shape in their_tags}
        tagged = sorted(shape for shape in my_tags if shape.path in names)
        pairs = [*zip_longest(mine, kafkas), *zip_longest(tagged, sorted(their_tags))]
        found += [(version, *pair) for pair in pairs if not same(*pair, defaults=defaults)]
    return found


def same(mine: Shape | None, kafkas: Shape | None, *, defaults: bool) -> bool:
    """Return whether a field of ours reads what Kafka's writes, and writes what it reads."""
    if mine is None or kafkas is None or (kafkas.nullable and not mine.nullable):
        return False
    if kafkas.type == "records":
        kafkas = kafkas._replace(type="bytes", default=mine.default)
    if not defaults:
        kafkas = kafkas._replace(default=mine.default)
    return mine == kafkas._replace(nullable=mine.nullable)


RENAMED = {("ListConfigResources", "3.9.2")}
"""Declared by the later name; before, the fields had other names too."""


CASES = [(api, release) for api in apis().values() for release in RELEASES if (api.name, release) not in RENAMED]


@pytest.mark.parametrize(("api", "release"), CASES, ids=[f"{api.name}-{release}" for api, release in CASES])
def test_requests_and_responses(api: Api, release: str) -> None:
    jars.require(release)
    by_key = {message["apiKey"]: message for message in messages.requests(release).values()}
    if api.key not in by_key:
        assert release != jars.LATEST
        return
    request, latest = by_key[api.key], release == jars.LATEST
    assert request["name"] == api.request.name
    assert differences(api.request, request, defaults=latest) == []
    assert differences(api.response, messages.responses(release)[api.response.name], defaults=latest) == []


def test_every_version_of_the_latest_release_is_known() -> None:
    jars.require()
    for name, request in messages.requests(jars.LATEST).items():
        made = apis().get(request["apiKey"])
        if made is not None and name == made.request.name:
            high = Versions.parse(request["validVersions"]).high
            assert high is not None
            assert made.versions.high == high - request.get("latestVersionUnstable", False), name


def test_error_codes_and_apis_are_kafkas_own() -> None:
    jars.require()
    lines = jars.run(jars.classes(jars.LATEST, "ProtocolNames"), "ProtocolNames").split("\n")
    rows = [line.split(" ") for line in lines if line]
    errors = {int(row[1]): (row[2], row[3] == "true") for row in rows if row[0] == "error"}
    assert {code: (error_name(code), is_retriable(code)) for code in error_codes()} == errors
    assert {int(row[1]): row[2] for row in rows if row[0] == "api"} == API_NAMES


def test_a_difference_of_a_message_is_seen() -> None:
    message = {
        "name": "X", "flexibleVersions": "1+", "validVersions": "0-1", "fields": [
            {"name": "A", "versions": "0+", "type": "records"},
            {"name": "B", "versions": "1+", "type": "string", "taggedVersions": "1+", "tag": "0", "default": "b"},
        ],
    }  # fmt: skip
    for right in ("a bytes\nb string 1+ tag 0 = b", "a bytes?\nb string? 1+ tag 0 = b\nc int8 1+ tag 1"):
        assert differences(Schema("X", "0-1", right, flexible=1), message, defaults=True) == []
    for wrong in (
        "a string\nb string 1+ tag 0 = b", "a bytes\nb string 1+ tag 1 = b", "a bytes\nb string 1+ tag 0 = c",
        "a bytes", "a bytes\nb string 1+ = b", "a bytes\nc int8\nb string 1+ tag 0 = b", "b string 1+ tag 0 = b",
    ):  # fmt: skip
        assert differences(Schema("X", "0-1", wrong, flexible=1), message, defaults=True)


def test_a_difference_is_seen() -> None:
    message = {
        "name": "X", "flexibleVersions": "0+", "validVersions": "0-1", "fields": [
            {"name": "A", "versions": "0+", "type": "int32"},
            {"name": "B", "versions": "1+", "type": "string", "nullableVersions": "1+",
             "taggedVersions": "1+", "tag": "0", "default": "null"},
        ],
    }  # fmt: skip
    compare(Schema("X", "0-1", "a int32\nb string? 1+ tag 0 = null"), message)
    for wrong in (
        "a int32\nb string? 1+ tag 1 = null", "a int32\nb string? 1+ tag 0", "a int32\nb string 1+ tag 0 = null",
        "a int32\nb string? tag 0 = null", "a int64\nb string? 1+ tag 0 = null", "b string? 1+ tag 0 = null\nc int32",
        "a int32\nb string? 1+ = null", "a int32", "a int32 = -1\nb string? 1+ tag 0 = null",
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            compare(Schema("X", "0-1", wrong), message)
