"""Paths, names as segments, and the errors of a wrong path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.session import Session
from kshell.errors import NoSuchPathError, NotADirectoryNodeError
from kshell.metadata.names import decode_name, encode_entity, encode_name, sort_key
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.tree.paths import split


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(DirectorySource(demo_directory()))


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("/", ()),
        ("", ("a", "b")),
        (".", ("a", "b")),
        ("..", ("a",)),
        ("../../../..", ()),
        ("c//d/", ("a", "b", "c", "d")),
        ("~", ("image",)),
        ("~/topics", ("image", "topics")),
        ("~x", ("a", "b", "~x")),
        ("/c/./d/../e", ("c", "e")),
    ],
)
def test_split(path: str, segments: tuple[str, ...]) -> None:
    assert split(path, ("a", "b")) == segments


def test_a_wrong_name_gets_a_proposal(session: Session) -> None:
    with pytest.raises(NoSuchPathError, match="/image/topics/byName/ordes: no such path") as caught:
        session.node("/image/topics/byName/ordes/0")
    assert caught.value.hint == "did you mean orders?"


def test_a_name_like_no_other_is_told_where_the_others_are(session: Session) -> None:
    with pytest.raises(NoSuchPathError) as caught:
        session.node("/image/topics/byName/entirely-different/0")
    assert caught.value.hint == "`ls /image/topics/byName` lists what is there"


def test_below_a_leaf(session: Session) -> None:
    with pytest.raises(NotADirectoryNodeError, match="metadataVersion: not a directory"):
        session.node("/image/features/metadataVersion/x")


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders", "orders"),
        ("a b(c)", "a b(c)"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
        ("a\x1b[m\n", "a%1B[m%0A"),
        ("\x7f\x9f", "%7F%C2%9F"),
        ("naïve", "naïve"),
        ("", "<empty>"),
        ("<empty>", "%3Cempty>"),
    ],
)
def test_encode_name(name: str, segment: str) -> None:
    assert encode_name(name) == segment


def test_entities() -> None:
    assert encode_entity(None) == "<default>"
    assert encode_entity("<default>") == "%3Cdefault>"
    assert encode_entity("a(b)/c") == "a%28b%29%2Fc"


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1))
def test_a_segment_stands_for_one_name(name: str) -> None:
    segment = encode_name(name)
    assert decode_name(segment) == name
    assert "/" not in segment and segment not in (".", "..") and segment.isprintable() == name_prints(segment)


def name_prints(segment: str) -> bool:
    """Whatever is left unprintable is not a control character: those are all encoded."""
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in segment)
    return segment.isprintable()


def test_numbers_sort_as_numbers_and_first() -> None:
    assert sorted(["10", "9", "name", "id", "-1", "٣"], key=sort_key) == ["9", "10", "-1", "id", "name", "٣"]


def test_a_name_may_have_more_digits_than_a_number_can() -> None:
    names = ["9" * 5000, "1" + "0" * 4999, "9" * 4999, "10", "9", "a"]
    assert sorted(names, key=sort_key) == ["9", "10", "9" * 4999, "1" + "0" * 4999, "9" * 5000, "a"]


def test_an_empty_name_has_a_segment_that_leads_back() -> None:
    assert decode_name(encode_name("")) == ""
    assert decode_name(encode_name("<empty>")) == "<empty>"
