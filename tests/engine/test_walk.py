"""Values as one line of text."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.engine.walk import names_and_values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text, as it is", "a text, as it is"),
        ("", ""),
        (None, "null"),
        ([1, 2], "[1,2]"),
        ([], "[]"),
        ({}, "{}"),
        ({"isr": [], "leader": -1, "rack": None, "fenced": True}, "isr=[], leader=-1, rack=null, fenced=true"),
        ({"a": "one", "b": "two, c=3", "d": ""}, 'a=one, b="two, c=3", d=""'),
        ({"a": [{"host": "::1", "port": 1}], "b": {"c": {}}}, "a=[{host=::1,port=1}], b={c={}}"),
    ],
)
def test_a_value_on_one_line(value: Any, text: str) -> None:
    assert names_and_values(value) == text
