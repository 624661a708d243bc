"""A declaration that has everything a declaration can have."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.metadata.records import _HEADS, _TYPES, record
from kshell.protocol.decoder import Message
from tests.builders import batch, encode_value
from tests.columnar.alone import same
from tests.columnar.test_values import plain_message
from tests.protocol.strategies import messages

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("every_shape")

EVERYTHING = """
  city      string
  sky       Sky?
    name    string?
    height  int64            tag 0 = 7
    bits    []bool
  days      []Day?
    name    string
    hours   []Hour
      at    uint16
      rain  float64
  wind      uint32
  note      string           tag 0
  motto     string?          tag 1 = null
  open      bool             tag 2 = true
  small     int8             tag 3 = -1
  place     Place?           tag 4 = null
    id      uuid
  more      Place            tag 5
    id      uuid
  words     []string?        tag 6 = null
  others    []uint32         tag 7
"""


def test_a_new_type_takes_one_declaration() -> None:
    try:
        made = record(99, "WeatherRecord", "0", EVERYTHING)(lambda delta, data, origin: None)
        from kshell.columnar.shapes import steps

        assert steps(made.schema, 0)

        @settings(max_examples=150, deadline=None)
        @given(st.lists(messages(made.schema, 0, unknown_tags=False), min_size=1, max_size=4))
        def check(some: list[Message]) -> None:
            same(batch([encode_value(made, 0, message) for message in some]))

        check()
        rng = random.Random(1)
        for _ in range(20):
            some = [encode_value(made, 0, plain_message(made.schema.fields, 0, rng)) for _ in range(20)]
            cut = [bytes(one[: rng.randrange(len(one))]) + rng.randbytes(rng.randrange(3)) for one in some]
            same(batch([*some, *cut]))
    finally:
        _TYPES.pop(99, None)
        _HEADS.pop(b"\x01\x63\x00", None)
