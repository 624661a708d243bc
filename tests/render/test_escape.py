"""The choke point: nothing that a terminal or a page acts on is left, in any format, for any text."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell import escape
from kshell.engine.formats import FORMATS
from kshell.engine.result import Result, Text, Value
from tests.render import samples
from tests.render.samples import invisible, printed

ANY = st.text(st.characters(blacklist_categories=()))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\n\t\r", "\\n\\t\\r"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202e\u061c\u200f\u2066", "\\u202e\\u061c\\u200f\\u2066"),
        ("\u2028\u2029\ufeff\u200b\xad", "\\u2028\\u2029\\ufeff\\u200b\\xad"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("a\\b é 日 😀", "a\\b é 日 😀"),
    ],
)
def test_terminal(raw: str, shown: str) -> None:
    assert escape.terminal(raw) == shown


def test_every_control_and_format_character_is_unsafe_but_those_that_are_visible() -> None:
    spared = set()
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        unsafe = escape.unsafe().match(char) is not None
        # The fast way out must never let one through.
        assert not (unsafe and char.isprintable())
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and not unsafe:
            spared.add(char)
    assert spared == samples.SIGNS


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("result", samples.hostile(), ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("width", [None, 30])
def test_hostile_names(result: Result, fmt: str, width: int | None) -> None:
    text = printed(result, fmt, width=width)
    left = invisible(text)
    assert left <= ({"\t"} if fmt in ("csv", "tsv") else set())
    text.encode("utf-8")
    if fmt in ("markdown", "html") and not (isinstance(result, Text) and fmt == "markdown"):
        assert "<script" not in text


@pytest.mark.parametrize("fmt", FORMATS)
@given(ANY)
def test_no_escape_character_without_colour(fmt: str, text: str) -> None:
    for result in (Text(text), Text(text, markdown=True), Value(text, text, {text: text})):
        shown = printed(result, fmt)
        assert not escape.unsafe().search(shown.replace("\n", "").replace("\t", ""))


def test_lines_of_hostile_values_are_not_broken() -> None:
    assert printed(Value("/x", "config", samples.HOSTILE), "text").count("\n") == 1
    assert printed(Value("/x", "config", samples.HOSTILE), "tsv", header=False).count("\n") == 1
    assert printed(Value("/x", "config", samples.HOSTILE), "markdown").count("\n") == 3


def test_markdown_at_the_start_of_a_line() -> None:
    assert escape.markdown("- a", line_start=True) == "\\- a"
    assert escape.markdown("1. a", line_start=True) == "1\\. a"
    assert escape.markdown("-1") == "-1"
