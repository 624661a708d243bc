"""What is read of a record's key without decoding it: never another verdict, never another key, than the decoder's."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kshell.metadata.records import RecordType, record_types
from kshell.protocol.decoder import decode
from kshell.protocol.primitives import DecodeError
from kshell.protocol.readers import key_reader
from kshell.protocol.schema import Field, Schema
from tests.builders import encode_value, uuid

_HEAD = 3
_MESSAGES = 300
_KINDS = [kind for kind in record_types().values() if kind.latest is not None]
_EDGES = b"\x00\x01\x02\x7f\x80\x81\xff"


def _value(field: Field, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        element = field._replace(array=False, nullable=False)
        return [_value(element, rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    if field.is_struct:
        return {inner.name: _value(inner, rng) for inner in field.fields}
    size = rng.choice((0, 1, 3, 126, 127, 128, 300))
    texts = {"string": "x" * size, "bytes": b"y" * size, "uuid": uuid(rng.randrange(3)), "bool": rng.random() < 0.5}
    return texts.get(field.type, rng.randrange(3))


def _message(kind: RecordType, rng: random.Random) -> dict[str, Any]:
    return {
        field.name: _value(field, rng) for field in kind.schema.fields if kind.schema.versions.low in field.versions
    }


def _damaged(raw: bytes, rng: random.Random) -> bytes:
    """Cut off, made longer, a byte changed, or a length written in one byte more than it needs."""
    at = rng.randrange(len(raw))
    return rng.choice((
        lambda: raw[:at],
        lambda: raw + rng.choice((b"\x00", b"x")),
        lambda: raw[:at] + rng.choice(_EDGES).to_bytes(1, "big") + raw[at + 1 :],
        lambda: raw[:at] + bytes((raw[at] | 0x80, 0)) + raw[at + 1 :],
        lambda: raw[:-1] + bytes((1, 9, 2)) + b"ab",  # a tagged field that nobody knows
    ))()  # fmt: skip


def _is_tombstone(kind: RecordType, message: dict[str, Any]) -> bool:
    assert kind.latest is not None
    decides = kind.latest.tombstone
    if isinstance(decides, bool):
        return decides
    return message[decides] is None or message[decides] is True


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.name)
def test_the_key_and_whether_it_is_removed_are_what_the_decoder_says(kind: RecordType) -> None:
    assert kind.latest is not None
    rng = random.Random(kind.api_key)
    read = key_reader(kind.schema, 0, kind.latest.key, kind.latest.tombstone, kind.latest.above)
    keys: dict[tuple[bytes | bool, ...], Any] = {}
    accepted = 0
    for _ in range(_MESSAGES):
        whole = encode_value(kind, 0, _message(kind, rng))[_HEAD:]
        for raw in (whole, *(_damaged(whole, rng) for _ in range(20))):
            start = rng.randrange(3)
            found = read(bytes(start) + raw + rng.randbytes(rng.randrange(9)), start, start + len(raw))
            try:
                message = decode(kind.schema, 0, raw)
            except DecodeError:
                assert found is None, raw
                continue
            if found is None:
                continue
            accepted += 1
            *parts, is_tombstone = found
            assert is_tombstone == _is_tombstone(kind, message), raw
            key = [message[name] for name in kind.latest.key]
            assert keys.setdefault(tuple(parts), [key[: kind.latest.above], key[kind.latest.above :]]) == [
                key[: kind.latest.above],
                key[kind.latest.above :],
            ], raw
    assert accepted >= _MESSAGES // 3
    if not any(field.array for field in kind.schema.fields if field.name in kind.latest.key):
        assert len(keys) == len({repr(key) for key in keys.values()})  # one key has not two forms


def test_a_text_in_a_key_whose_length_is_written_in_more_bytes_than_it_needs_is_left_to_the_decoder() -> None:
    schema = Schema("Sample", "0", "  name  string\n  value  string?")
    read = key_reader(schema, 0, ("name",), "value")
    assert read(b"\x02a\x02b\x00", 0, 5) == (b"", b"\x02a", False)
    assert read(b"\x02a\x00\x00", 0, 4) == (b"", b"\x02a", True)
    assert decode(schema, 0, b"\x82\x00a\x02b\x00") == {"name": "a", "value": "b"}
    assert read(b"\x82\x00a\x02b\x00", 0, 6) is None
    assert decode(schema, 0, b"\x02a\x80\x00\x00")["value"] is None
    assert read(b"\x02a\x80\x00\x00", 0, 5) is None


def test_a_tombstone_of_several_elements_is_left_to_the_decoder() -> None:
    schema = Schema("Sample", "0", "  parts  []string\n  remove  bool")
    read = key_reader(schema, 0, ("parts",), "remove")
    assert read(b"\x03\x02a\x02b\x00\x00", 0, 7) == (b"", b"\x03\x02a\x02b", False)
    assert read(b"\x03\x02a\x02b\x01\x00", 0, 7) is None
    assert read(b"\x02\x02a\x01\x00", 0, 5) == (b"", b"\x02\x02a", True)


def test_fields_of_a_key_that_do_not_lie_side_by_side_are_refused() -> None:
    schema = Schema("Sample", "0", "  first  int8\n  between  int8\n  last  int8")
    with pytest.raises(ValueError, match="first, last do not lie side by side"):
        key_reader(schema, 0, ("first", "last"), tombstone=False)
