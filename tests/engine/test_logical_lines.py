"""Lines that a quote leaves open go on, in a script, a cell and a pasted block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine import execution
from kshell.engine.execution import commands, is_query, line_of_fault, logical_lines
from kshell.engine.language import open_quote, parse_line
from kshell.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pwd\nls", [(1, "pwd"), (2, "ls")]),
        ('sql "\nSELECT 1\n" -o json\npwd', [(1, 'sql "\nSELECT 1\n" -o json'), (4, "pwd")]),
        ("a 'b\nc' 'd\ne'\nf", [(1, "a 'b\nc' 'd\ne'"), (4, "f")]),
        ('a "it\'s\nb"\nc', [(1, 'a "it\'s\nb"'), (3, "c")]),
        ("pwd\ncat 'open\nls\npwd", [(1, "pwd"), (2, "cat 'open\nls\npwd")]),
        ('cat \'open\na "b\nc"', [(1, 'cat \'open\na "b\nc"')]),
        ("ls > 'a\nb' | grep 'c\nd'", [(1, "ls > 'a\nb' | grep 'c\nd'")]),
        ("ls 'a\nb' | grep 'c\nd'", [(1, "ls 'a\nb' | grep 'c"), (3, "d'")]),
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


def test_a_quote_may_go_on_for_any_number_of_lines() -> None:
    lines = ['sql "SELECT', *["  1,"] * 1000, '1"', "pwd"]
    assert list(logical_lines(lines)) == [(1, "\n".join(lines[:-1])), (1003, "pwd")]


def test_each_line_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []

    def counted(line: str) -> str:
        scanned.append(len(line))
        return open_quote(line)

    monkeypatch.setattr(execution, "open_quote", counted)
    lines = ['sql "SELECT', *[f'  \\"name {number}\\",' for number in range(1000)], '1"']
    assert len(list(logical_lines(lines))) == 1
    assert sum(scanned) <= sum(map(len, lines)) + len(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [("cat 'open\nls", 7), ("cat 'a\nb' 'c\nd", 8), ('pwd; cat "a\n\n" "', 9), ("pwd && cat 'x", 7), ("'a\nb' &&", 8)],
)
def test_no_command_of_a_line_with_a_mistake_runs_and_the_error_has_its_line(text: str, line: int) -> None:
    with pytest.raises(UsageError) as raised:
        commands(text)
    assert line_of_fault(7, text, raised.value) == line


def test_only_a_quote_that_goes_on_has_a_hint() -> None:
    with pytest.raises(UsageError, match="the quote ' is not closed") as raised:
        commands("cat 'a\nb' 'open")
    assert raised.value.hint is None
    with pytest.raises(UsageError, match="the quote ' is not closed") as raised:
        commands("cat 'open\nls")
    assert raised.value.hint == "the quoted text goes on to the end: no line from here on was run"


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


@given(st.lists(st.text(alphabet="ab'\"\\# |;>&", max_size=8), max_size=12))
def test_it_is_as_if_the_whole_had_been_scanned(lines: list[str]) -> None:
    joined = [text for _, text in logical_lines(lines)]
    for text in joined:
        parts = text.split("\n")
        assert all(open_quote("\n".join(parts[:count])) for count in range(1, len(parts)))
    assert not any(open_quote(text) for text in joined[:-1] if not is_query(text))


def test_a_word_may_have_newlines() -> None:
    ((_, text),) = logical_lines(['sql "SELECT topic', "FROM partitions", '" -o json'])
    assert [word.text for word in parse_line(text).words] == ["sql", "SELECT topic\nFROM partitions\n", "-o", "json"]
