"""Names as path segments: what is encoded comes back, and nothing unsafe stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.metadata.families.configs import resource_segment
from kshell.metadata.families.quotas import entity_segment
from kshell.metadata.names import decode_name, encode_entity, encode_name, sort_key

NAMES = st.binary(max_size=12).map(lambda raw: raw.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"])
)


@given(NAMES.filter(bool))
def test_an_encoded_name_is_safe_and_comes_back(name: str) -> None:
    segment = encode_name(name)
    assert decode_name(segment) == name
    assert "/" not in segment
    assert segment not in (".", "..", "")
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in segment)


@given(NAMES, NAMES)
def test_different_names_have_different_segments(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) == (one == other)
    assert (encode_entity(one) == encode_entity(other)) == (one == other)
    assert encode_entity(one) != encode_entity(None)


@pytest.mark.parametrize(
    ("name", "segment"),
    [("orders", "orders"), ("a/b", "a%2Fb"), ("50%", "50%25"), (".", "%2E"), ("..", "%2E%2E"), ("...", "..."),
     ("a\x1b[31m", "a%1B[31m"), ("a\nb", "a%0Ab"), ("é", "é"), ("(x)", "(x)")],
)  # fmt: skip
def test_what_is_encoded(name: str, segment: str) -> None:
    assert encode_name(name) == segment


def test_entities() -> None:
    assert entity_segment((("user", "b"), ("client-id", "a"))) == "clientId(a)_user(b)"
    assert entity_segment((("user", None), ("ip", "1.2.3.4"))) == "ip(1.2.3.4)_user(<default>)"
    assert entity_segment((("user", "(x)/y"),)) == "user(%28x%29%2Fy)"
    assert entity_segment((("user", "<default>"),)) != entity_segment((("user", None),))


def test_resources() -> None:
    assert resource_segment(("BROKER", "")) == "BROKER"
    assert resource_segment(("TOPIC", "a/b")) == "TOPIC:a%2Fb"


def test_numbers_sort_as_numbers() -> None:
    assert sorted(["10", "9", "b", "a", "2x"], key=sort_key) == ["9", "10", "2x", "a", "b"]
