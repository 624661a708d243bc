"""Encoders: bytes that are written out by hand."""

from __future__ import annotations

import pytest

from kshell.protocol.decoder import UNKNOWN_TAGS
from kshell.protocol.encoder import encode
from kshell.protocol.schema import Schema

FIELDS = """
  name   string
  rack   string?
  ids    []int16
  on     bool     = true
  level  int8     tag 1 = 3
  late   int32    1+
"""


def test_a_flexible_message() -> None:
    raw = encode(Schema("F", "0-1", FIELDS), 1, {"name": "ab", "rack": None, "ids": [1, -1], "late": 5, "level": 4})
    assert raw.hex(" ") == "03 61 62 00 03 00 01 ff ff 01 00 00 00 05 01 01 01 04"


def test_a_plain_message_has_no_tags_and_fixed_lengths() -> None:
    raw = encode(Schema("P", "0-1", FIELDS, flexible=2), 0, {"name": "ab", "rack": None, "ids": [1], "level": 4})
    assert raw.hex(" ") == "00 02 61 62 ff ff 00 00 00 01 00 01 01 04"


def test_absent_fields_get_their_default_and_absent_tags_nothing() -> None:
    assert encode(Schema("F", "0-1", FIELDS), 0, {}).hex(" ") == "01 01 01 01 00"


def test_tags_are_written_in_order() -> None:
    message = {UNKNOWN_TAGS: [{"tag": 300, "data": b"z"}, {"tag": 0, "data": b"a"}], "level": 1}
    assert encode(Schema("T", "0", "  level  int8  tag 1"), 0, message).hex(" ") == "03 00 01 61 01 01 01 ac 02 01 7a"


def test_an_absent_struct_is_written_with_its_defaults() -> None:
    assert encode(Schema("S", "0", "  pair  Pair\n    low  int8 = 7\n    high  int8"), 0, {}) == b"\x07\x00\x00\x00"


def test_a_version_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="has no version 3"):
        encode(Schema("F", "0-1", FIELDS), 3, {})
