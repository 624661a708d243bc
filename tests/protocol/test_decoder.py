"""Decoders: every declared message and version, there and back, cut, over-long, random, and greedy."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.metadata.image import families
from kshell.metadata.records import record_types
from kshell.protocol.control import CONTROL_TYPES
from kshell.protocol.decoder import UNKNOWN_TAGS, decode, decoder
from kshell.protocol.encoder import encode
from kshell.protocol.primitives import DecodeError, write_uvarint
from kshell.protocol.schema import Field, Schema
from tests.protocol.strategies import messages

FIELDS = """
  flag     bool
  small    int8
  port     uint16
  wide     uint32
  ratio    float64
  id       uuid
  name     string
  rack     string?
  blob     bytes
  maybe    bytes?
  numbers  []int32
  bits     []bool
  ids      []uuid?
  words    []string
  rows     []Row
    key    string
    cells  []Cell?
      at   int64
  late     int16     1+
  extra    []int16?  1+  tag 3 = null
  inner    Inner
    low    int16
    note   string?   tag 0 = null
"""
FLEXIBLE = Schema("Flexible", "0-1", FIELDS)
PLAIN = Schema("Plain", "0-1", FIELDS, flexible=99)
TURNS = Schema("Turns", "0-1", FIELDS, flexible=1)

SCHEMAS = [
    *(kind.schema for _, kind in sorted(record_types().items())),
    *(kind.schema for kind in CONTROL_TYPES.values()),
    FLEXIBLE,
    PLAIN,
    TURNS,
]
VERSIONS = [
    pytest.param(schema, version, id=f"{schema.name}-{version}")
    for schema in SCHEMAS
    for version in range(schema.versions.low, (schema.versions.high or 0) + 1)
]
every_version = pytest.mark.parametrize(("schema", "version"), VERSIONS)


def test_the_declared_types_and_their_highest_versions_are_listed() -> None:
    single = {1, 2, 4, 7, 8, 9, 10, 11, 12, 14, 15, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}
    highest = dict.fromkeys(single, 0) | {0: 4, 3: 2, 5: 2, 17: 3}
    assert {key: kind.schema.versions.high for key, kind in record_types().items()} == highest, (
        "list the api key here, with the highest version of its schema"
    )
    assert all(kind.schema.versions.low == 0 for kind in record_types().values())


def test_every_field_of_a_record_is_in_some_known_version() -> None:
    def unreachable(fields: tuple[Field, ...], high: int, path: str) -> list[str]:
        return [
            name
            for field in fields
            for name in (
                *([f"{path}.{field.name} {field.versions}"] if field.versions.low > high else ()),
                *unreachable(field.fields, high, f"{path}.{field.name}"),
            )
        ]

    found = [
        name
        for kind in record_types().values()
        for name in unreachable(kind.schema.fields, kind.schema.versions.high or 0, kind.name)
    ]
    assert found == [], "widen the version range of @record"


def test_names_of_records_and_paths_of_families_are_their_own() -> None:
    names = Counter(kind.name for kind in record_types().values())
    assert [name for name, count in names.items() if count > 1] == [], "two record types have one name"
    paths = Counter(declared.path for declared in families().values())
    assert [path for path, count in paths.items() if count > 1] == [], "two families have one path: one would be hidden"


@every_version
def test_what_was_encoded_is_decoded(schema: Schema, version: int) -> None:
    @settings(max_examples=40)
    @given(messages(schema, version))
    def check(message: dict[str, object]) -> None:
        assert decode(schema, version, encode(schema, version, message)) == message

    check()


@every_version
def test_every_cut_and_every_byte_too_many_is_an_error(schema: Schema, version: int) -> None:
    @settings(max_examples=8)
    @given(messages(schema, version), st.binary(min_size=1, max_size=3))
    def check(message: dict[str, object], more: bytes) -> None:
        whole = encode(schema, version, message)
        for size in range(len(whole)):
            with pytest.raises(DecodeError):
                decode(schema, version, whole[:size])
        with pytest.raises(DecodeError, match=f"{len(more)} bytes too many") as caught:
            decode(schema, version, whole + more)
        assert caught.value.position == len(whole)

    check()


@every_version
def test_any_bytes_decode_or_are_a_decode_error(schema: Schema, version: int) -> None:
    @settings(max_examples=30)
    @given(messages(schema, version), st.data())
    def check(message: dict[str, object], data: st.DataObject) -> None:
        raw = bytearray(encode(schema, version, message))
        for _ in range(data.draw(st.integers(1, 3))):
            if raw:
                raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        for buf in (bytes(raw), data.draw(st.binary(max_size=80))):
            try:
                again = decode(schema, version, buf)
            except DecodeError:
                continue
            assert isinstance(again, dict)

    check()


@every_version
def test_a_message_of_defaults_can_be_written(schema: Schema, version: int) -> None:
    decoded = decode(schema, version, encode(schema, version, {}))
    required = [f.name for f in schema.fields if version in f.versions and (f.tag is None or version < schema.flexible)]
    assert list(decoded) == required


def test_a_decoder_starts_anywhere_and_says_where_it_ended() -> None:
    raw = encode(FLEXIBLE, 1, {})
    message, end = decoder(FLEXIBLE, 1)(b"before" + raw + b"after", 6)
    assert end == 6 + len(raw)
    assert message["name"] == ""


def test_a_version_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="has no version 2"):
        decoder(FLEXIBLE, 2)


def test_unknown_tags_are_kept_at_two_depths() -> None:
    inner = {"low": 7, UNKNOWN_TAGS: [{"tag": 5, "data": b"\x01\x02"}]}
    message = decode(FLEXIBLE, 0, encode(FLEXIBLE, 0, {})) | {
        "inner": inner,
        UNKNOWN_TAGS: [{"tag": 3, "data": b"late"}, {"tag": 200, "data": b""}],
    }
    assert decode(FLEXIBLE, 0, encode(FLEXIBLE, 0, message)) == message


def test_a_known_tag_must_end_where_its_size_says() -> None:
    schema = Schema("Tagged", "0", "  level  int16  tag 0")
    assert decode(schema, 0, b"\x01\x00\x02\x00\x09") == {"level": 9}
    for size in (1, 3):
        with pytest.raises(DecodeError, match="tagged field 0 does not end where its size says"):
            decode(schema, 0, b"\x01\x00" + bytes([size]) + b"\x00\x09\x00")


def test_null_is_refused_where_nothing_allows_it() -> None:
    for field in ("name  string", "name  bytes", "name  []int32", "name  []string", "name  []uuid"):
        for schema, raw in (
            (Schema("N", "0", f"  {field}"), b"\x00\x00"),
            (Schema("N", "0", f"  {field}", flexible=9), b"\xff" * 4),
        ):
            with pytest.raises(DecodeError, match="null where the declaration allows none"):
                decode(schema, 0, raw)


def test_long_lengths_and_counts_use_more_than_one_byte() -> None:
    schema = Schema("Long", "0", "  text  string\n  ids  []int16\n  rows  []Row\n    on  bool\n")
    message = {"text": "x" * 20_000, "ids": list(range(300)), "rows": [{"on": True}] * 200}
    assert decode(schema, 0, encode(schema, 0, message)) == message


def test_strings_that_are_not_utf_8_survive() -> None:
    schema = Schema("Text", "0", "  text  string")
    raw = b"\x04a\xff\xfe\x00"
    message = decode(schema, 0, raw)
    assert encode(schema, 0, message) == raw


GREEDY = [
    "string", "string?", "bytes", "[]int8", "[]int64", "[]uuid", "[]string", "[]bool", "[]Row\n    name  string",
    "[]Row\n    one  bool", "[]Row\n    ids  []uuid", "[]float64?",
]  # fmt: skip


@pytest.mark.parametrize("declared", GREEDY)
@pytest.mark.parametrize("claim", [70_000, 2**24, 2**31 - 1, 2**32 - 1])
@pytest.mark.parametrize("flexible", [True, False])
def test_a_claimed_size_is_never_trusted_with_memory(declared: str, claim: int, flexible: bool) -> None:
    schema = Schema("Greedy", "0", f"  field  {declared}", flexible=0 if flexible else 9)
    if flexible:
        raw = write_uvarint(claim) + bytes(64)
    elif declared.startswith("string"):
        raw = b"\x7f\xff" + bytes(64)
    else:
        raw = min(claim, 2**31 - 1).to_bytes(4, "big") + bytes(64)
    made = decoder(schema, 0)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            made(raw, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    "raw", [b"\xff\xff\xff\xff\x0f", b"\x01\x05\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f\x05\x00\x05\x00"]
)
def test_tags_are_bounded_too(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(Schema("Tags", "0"), 0, raw)
