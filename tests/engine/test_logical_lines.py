"""Lines that a quote leaves open go on, in a script, a cell and a pasted block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.execution import _MOST_JOINED, logical_lines
from kshell.engine.language import parse_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pwd\nls", [(1, "pwd"), (2, "ls")]),
        ('sql "\nSELECT 1\n" -o json\npwd', [(1, 'sql "\nSELECT 1\n" -o json'), (4, "pwd")]),
        ("a 'b\nc' 'd\ne'\nf", [(1, "a 'b\nc' 'd\ne'"), (4, "f")]),
        ('a "it\'s\nb"\nc', [(1, 'a "it\'s\nb"'), (3, "c")]),
        ("cat 'open\nls\npwd", [(1, "cat 'open"), (2, "ls"), (3, "pwd")]),
        ('cat \'open\na "b\nc"', [(1, "cat 'open"), (2, 'a "b\nc"')]),
        ("ls # don't\npwd", [(1, "ls # don't"), (2, "pwd")]),
        ("ls | grep 'x\npwd'", [(1, "ls | grep 'x"), (2, "pwd'")]),
        ("ls \\\npwd", [(1, "ls \\"), (2, "pwd")]),
        ("select 1 -- it's\npwd 'a'", [(1, "select 1 -- it's"), (2, "pwd 'a'")]),
        ("ls; cat 'a\nb'", [(1, "ls; cat 'a\nb'")]),
        ("", [(1, "")]),
    ],
)
def test_what_belongs_together(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(logical_lines(text.split("\n"))) == expected


def test_a_quote_does_not_go_on_for_ever() -> None:
    lines = ["cat '", *["ls"] * _MOST_JOINED, "'"]
    assert [text for _, text in logical_lines(lines)] == lines
    assert len(list(logical_lines([*lines[:-2], "'"]))) == 1


def test_lines_are_read_no_further_than_needed() -> None:
    def given() -> Iterator[str]:
        yield "pwd"
        yield "cat 'a"
        yield "b'"
        raise AssertionError("nobody asked for this line")

    lines = logical_lines(given())
    assert [next(lines), next(lines)] == [(1, "pwd"), (2, "cat 'a\nb'")]


@given(st.lists(st.text(alphabet="ab'\"\\# |;", max_size=6), max_size=12))
def test_no_line_is_lost_or_comes_twice(lines: list[str]) -> None:
    joined = list(logical_lines(lines))
    assert [line for _, text in joined for line in text.split("\n")] == lines
    numbers = [number for number, _ in joined]
    assert all(lines[number - 1] == text.split("\n")[0] for number, text in joined)
    assert numbers == sorted(set(numbers))


def test_a_word_may_have_newlines() -> None:
    ((_, text),) = logical_lines(['sql "SELECT topic', "FROM partitions", '" -o json'])
    assert [word.text for word in parse_line(text).words] == ["sql", "SELECT topic\nFROM partitions\n", "-o", "json"]
