"""The tokens of a line, what may be run of them, and what completion writes into them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.execution import commands
from kshell.engine.language import Insertion, Token, TokenKind, parse_line, parts, quote, scan
from kshell.errors import UsageError

LINES = st.text(alphabet="ab/ '\"\\|>#*[{\t-", max_size=24)


def of(kind: TokenKind, tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.kind is kind]


@given(LINES)
def test_what_the_parser_accepts_is_scanned_alike(text: str) -> None:
    try:
        line = parse_line(text)
    except UsageError:
        return
    tokens = scan(text)
    words = [(w.text, w.pattern, w.column, w.quoted) for w in line.words]
    assert [(p.text, p.pattern, p.start, p.quoted) for p in of(TokenKind.WORD, tokens)] == words
    assert [p.text for p in of(TokenKind.TARGET, tokens)] == ([line.target] if line.target is not None else [])
    assert [p.text for p in of(TokenKind.PROGRAM, tokens)] == ([line.program] if line.program is not None else [])
    assert not of(TokenKind.EXCESS, tokens)
    assert not any(token.open for token in tokens)


@given(LINES)
def test_tokens_cover_the_line_in_order(text: str) -> None:
    at = 0
    for token in scan(text):
        assert text[at : token.start].strip() == ""
        assert token.start < token.end
        at = token.end
    assert text[at:].strip() == ""


@given(LINES, st.text(alphabet="ab '\"\\|>#*?[]{}~\u2028", min_size=1, max_size=8), st.booleans(), st.data())
def test_a_replacement_means_itself(text: str, new: str, whole: bool, data: st.DataObject) -> None:
    line = f"cat x{text}"
    word = scan(line)[-1]
    if word.kind is not TokenKind.WORD or word.end != len(line):
        return
    cut = data.draw(st.integers(0, len(word.text)))
    place = Insertion(word, cut)
    written = line[: place.start] + place.written(new, ends_word=whole)
    if not whole and word.open.strip("\\"):
        written += word.open
    assert parse_line(written).words[-1].text == word.text[:cut] + new


@pytest.mark.parametrize(
    ("text", "mark"), [("cat 'a", "'"), ('cat "a', '"'), ("cat a\\", "\\"), ("cat 'a'", ""), ("cat 'a'\"b", '"')]
)
def test_what_is_open(text: str, mark: str) -> None:
    assert scan(text)[-1].open == mark


@given(st.text(alphabet="ab ;&|>'\"\\#", min_size=1, max_size=8))
def test_a_quoted_text_is_one_word_of_one_command(text: str) -> None:
    line = f"cat {quote(text)}"
    assert [part.text for part in parts(line)] == [line]
    assert parse_line(line).words[-1].text == text


@pytest.mark.parametrize("typed", ["pwd > ", "cat "])
def test_a_completed_name_with_a_separator_stays_one_word(typed: str) -> None:
    word = scan(f"{typed}a")[-1]
    line = typed + Insertion(word, 0).written("a;b && c", ends_word=True)
    assert [part.text for part in parts(line)] == [line]


@pytest.mark.parametrize("line", ["pwd &&", "&& pwd", "pwd && && pwd", "pwd; && pwd"])
def test_a_command_that_is_missing_beside_and_is_an_error(line: str) -> None:
    with pytest.raises(UsageError, match="a command is missing next to &&"):
        commands(line)


def test_empty_commands_beside_semicolons_are_none() -> None:
    assert [part.text.strip() for part in commands("; pwd ;; ls && cd ;")] == ["pwd", "ls", "cd"]


@pytest.mark.parametrize(
    ("line", "column"),
    [("ls /image 2>/dev/null", 10), ("ls 2>>x", 3), ("ls 1>x", 3), ("ls 2>&1 | cat", 3), ("ls &> x", 3), ("ls >&2", 3)],
)
def test_streams_of_the_systems_shell_are_refused(line: str, column: int) -> None:
    """They wrote a file named &2, or took the 2 for a path."""
    with pytest.raises(UsageError, match="only > FILE and >> FILE") as raised:
        parse_line(line)
    assert raised.value.column == column


@pytest.mark.parametrize(
    ("line", "words", "target"),
    [
        ("cat 2 > x", ["cat", "2"], "x"),
        ("cat '2'> x", ["cat", "2"], "x"),
        ("cat 2 >'&1'x", ["cat", "2"], "&1x"),
        ("cat orders/2>x", ["cat", "orders/2"], "x"),
        ("cat a\\&>x", ["cat", "a&"], "x"),
        ("2>x", ["2"], "x"),
        ("ls > a&b", ["ls"], "a&b"),
        ("dump | jq . 2>&1", ["dump"], None),
    ],
)
def test_what_only_looks_like_them_is_taken(line: str, words: list[str], target: str | None) -> None:
    parsed = parse_line(line)
    assert [word.text for word in parsed.words] == words and parsed.target == target
