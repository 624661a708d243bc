"""JSON text with an indent is what the standard library makes of the same value."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.json_text import to_json

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aé"\\/\t')
)
_KEYS = st.text('aé"') | st.integers() | st.booleans() | st.none()
_VALUES = st.recursive(
    _SCALARS, lambda below: st.lists(below) | st.dictionaries(_KEYS, below) | st.lists(below).map(tuple), max_leaves=30
)


@given(_VALUES, st.sampled_from([0, 1, 2, 4]))
def test_an_indent_makes_what_the_standard_library_makes(value: Any, indent: int) -> None:
    assert to_json(value, indent) == json.dumps(value, indent=indent, ensure_ascii=False)


@given(_VALUES)
def test_one_line_makes_what_the_standard_library_makes(value: Any) -> None:
    assert to_json(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class _Pair(NamedTuple):
    first: int
    second: str


@pytest.mark.parametrize("indent", [None, 2])
def test_mappings_and_named_tuples_are_objects_and_arrays(indent: int | None) -> None:
    text = to_json(MappingProxyType({"a": [MappingProxyType({}), _Pair(1, "x")]}), indent)
    assert json.loads(text) == {"a": [{}, [1, "x"]]}


@pytest.mark.parametrize("indent", [None, 2])
def test_numbers_that_json_does_not_know_are_strings_as_kafka_has_them(indent: int | None) -> None:
    values = {"a": [float("nan"), float("inf"), float("-inf"), 1.5]}
    assert json.loads(to_json(values, indent)) == {"a": ["NaN", "Infinity", "-Infinity", 1.5]}


@pytest.mark.parametrize("indent", [None, 2])
def test_what_is_no_plain_value_is_refused(indent: int | None) -> None:
    with pytest.raises(TypeError, match="set is no plain value"):
        to_json({"a": {1}}, indent)
