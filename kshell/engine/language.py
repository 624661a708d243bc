"""The grammar of the command language: words with quotes, globs, comments, redirection and a pipe into a program.

::

    cat '/image/configs/TOPIC:a b' -o json > out.json     # a comment
    dump --type TOPIC_RECORD -o jsonl | jq .data.name

Quotes work as in a POSIX shell: single quotes keep everything literal, double quotes let a backslash escape ``"`` and
``\\``, and an unquoted backslash makes the next character literal. Everything after an unquoted ``|`` is one command
line for ``sh -c``.

:func:`scan` is the only reader of this grammar. It never raises, so completion and highlighting can use it on a line
that is still being typed; :func:`parse_line`, for a line to run, raises for an open quote and other faults.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from kshell.errors import UsageError
from kshell.tree.globs import escape


class TokenKind(Enum):
    """The kind of a token: a word, an operator, or what follows an operator."""

    WORD = "word"
    PIPE = "|"
    PROGRAM = "program"
    REDIRECTION = ">"
    TARGET = "target"
    EXCESS = "excess"
    """After the file of a redirection, where only a comment may stand."""
    COMMENT = "comment"
    SEPARATOR = ";"
    """Between two commands, ``;`` or ``&&``; only where a line may have several."""


class Token(NamedTuple):
    """A piece of a line, ``line[start:end]``.

    Attributes:
        text: its literal meaning, without quotes and backslashes.
        pattern: ``text`` with quoted characters escaped, so that only unquoted ``*?[]{}`` work as a glob.
        columns: for each character of ``text``, the column of the line where it begins.
        open: the quote that is not closed, or a backslash at the end of the line; empty if there is neither.
        last_mark: the column of the last quote mark; -1 without one.
        quoted: whether any part of it is quoted.
    """

    kind: TokenKind
    start: int
    end: int
    text: str = ""
    pattern: str = ""
    columns: tuple[int, ...] = ()
    open: str = ""
    last_mark: int = -1
    quoted: bool = False


class Word(NamedTuple):
    """A word of a parsed line; its fields are those of its :class:`Token`, and ``column`` is where it begins."""

    text: str
    pattern: str
    column: int
    quoted: bool = False


class Line(NamedTuple):
    """A parsed line: its words, and the file (``target``) or the ``program`` that gets the output, if any."""

    words: list[Word]
    target: str | None = None
    append: bool = False
    program: str | None = None


def scan(line: str, *, several: bool = False) -> list[Token]:
    """Return the tokens of a line, without the blanks between them. ``several``: ``;`` and ``&&`` separate commands."""
    tokens: list[Token] = []
    kind = TokenKind.WORD
    at = _after_blanks(line, 0)
    while at < len(line):
        char = line[at]
        if char == "#":
            tokens.append(_rest(line, at, TokenKind.COMMENT))
        elif several and (mark := _separator(line, at)):
            tokens.append(Token(TokenKind.SEPARATOR, at, at + len(mark), mark))
            kind = TokenKind.WORD
        elif char == "|" and kind is TokenKind.WORD:
            tokens.append(Token(TokenKind.PIPE, at, at + 1, char))
            program = _after_blanks(line, at + 1)
            if program < len(line):
                tokens.append(_rest(line, program, TokenKind.PROGRAM))
        elif char == ">" and kind is TokenKind.WORD:
            mark = ">>" if line.startswith(">>", at) else ">"
            tokens.append(Token(TokenKind.REDIRECTION, at, at + len(mark), mark))
            kind = TokenKind.TARGET
        elif char in "|>":
            tokens.append(Token(TokenKind.EXCESS, at, at + 1, char))
        else:
            tokens.append(_WordReader(line, at, several=several).token(kind))
            kind = TokenKind.EXCESS if kind is TokenKind.TARGET else kind
        at = _after_blanks(line, tokens[-1].end)
    return tokens


class LineCommand(NamedTuple):
    """A command of a line, and the column where it starts; ``if_done``: runs only after exit code 0 (``&&``)."""

    text: str
    start: int
    if_done: bool


def parts(line: str) -> list[LineCommand]:
    """Split a line into commands at ``;`` and ``&&`` outside quotes; return at least one, perhaps empty.

    The program after a pipe, and a comment, reach to the end of the line with all their semicolons.
    """
    commands: list[LineCommand] = []
    start, if_done = 0, False
    for token in scan(line, several=True):
        if token.kind is TokenKind.SEPARATOR:
            commands.append(LineCommand(line[start : token.start], start, if_done))
            start, if_done = token.end, token.text == "&&"
    return [*commands, LineCommand(line[start:], start, if_done)]


def _separator(line: str, at: int) -> str:
    """Return the separator of commands at a column, ``;`` or ``&&``; empty if there is none."""
    return next((mark for mark in (";", "&&") if line.startswith(mark, at)), "")


def open_quote(line: str) -> str:
    """Return what to put before the next line, to scan it alone, if this line leaves a quote open; else nothing.

    That is the quote mark, after a ``>`` if the quote is in the file of a redirection or behind it, where ``|`` starts
    no program.
    """
    token = _unclosed(line)
    if token is None:
        return ""
    return token.open if token.kind is TokenKind.WORD else f">{token.open}"


def check_quotes(line: str) -> None:
    """Raise UsageError with the column of the quote mark if a line of one or more commands leaves a quote open."""
    token = _unclosed(line)
    if token is not None:
        goes_on = "\n" in line[token.last_mark :]
        hint = "the quoted text goes on to the end: no line from here on was run" if goes_on else None
        raise UsageError(f"the quote {token.open} is not closed", column=token.last_mark, hint=hint)


def _unclosed(line: str) -> Token | None:
    tokens = scan(line, several=True)
    return tokens[-1] if tokens and tokens[-1].open in ("'", '"') else None


def words_in(line: str) -> list[Token]:
    """Return the tokens of a line that are words: the command and its arguments."""
    return [token for token in scan(line) if token.kind is TokenKind.WORD]


def parse_line(text: str) -> Line:
    """Parse a line with one command in order to run it. Raises UsageError with the column of the fault."""
    shell_words: list[Word] = []
    tokens = iter(scan(text))
    for token in tokens:
        if token.kind is TokenKind.WORD:
            _check_closed(token)
            shell_words.append(Word(token.text, token.pattern, token.start, token.quoted))
        elif token.kind is TokenKind.PIPE:
            program = next(tokens, None)
            if not shell_words:
                raise UsageError("there is no command before the pipe", column=token.start)
            if program is None:
                raise UsageError("there is no program after the pipe", column=token.start)
            return Line(shell_words, program=program.text)
        elif token.kind is TokenKind.REDIRECTION:
            target, rest = next(tokens, None), next(tokens, None)
            if not shell_words:
                raise UsageError("there is no command before the redirection", column=token.start)
            if (column := _stream_column(text, shell_words, token)) is not None:
                raise UsageError("only > FILE and >> FILE are known here", hint=_STREAMS, column=column)
            if target is None or target.kind is not TokenKind.TARGET:
                raise UsageError("there is no file after the redirection", column=token.start)
            _check_closed(target)
            if rest is not None and rest.kind is not TokenKind.COMMENT:
                raise UsageError("only a comment may follow the file", column=rest.start)
            return Line(shell_words, target=target.text, append=token.text == ">>")
    return Line(shell_words)


def _stream_column(line: str, shell_words: list[Word], mark: Token) -> int | None:
    """The column of a redirection by number as in ``2> FILE``, ``&> FILE`` or ``>&2``; ``None`` if it is none."""
    last = shell_words[-1]
    is_number = last.text in ("1", "2", "&") and not last.quoted and last.column == mark.start - 1
    if is_number and len(shell_words) > 1:
        return last.column
    return mark.start if line.startswith("&", mark.end) else None


def _check_closed(token: Token) -> None:
    if token.open == "\\":
        raise UsageError("nothing follows the backslash", column=token.end - 1)
    if token.open:
        raise UsageError(f"the quote {token.open} is not closed", column=token.last_mark)


def _after_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at].isspace():
        at += 1
    return at


def _rest(line: str, at: int, kind: TokenKind) -> Token:
    return Token(kind, at, len(line), line[at:].rstrip())


_LITERAL: Final = {"'": re.compile("[^']+"), '"': re.compile(r'[^"\\]+|\\')}
"""Quote mark -> characters that stand for themselves inside such quotes, as many as follow one another."""
_STREAMS = "errors and notes go to standard error of kshell itself; put a blank before > if the 2 is an argument"


class _WordReader:
    """Reads one word of a line from column ``at`` on; :meth:`token` is called once and returns it."""

    def __init__(self, line: str, at: int, *, several: bool = False) -> None:
        self._line = line
        self._several = several
        self._start = self._at = at
        self._text: list[str] = []
        self._pattern: list[str] = []
        self._columns: list[int] = []
        self._open = ""
        self._last_mark = -1

    def token(self, kind: TokenKind) -> Token:
        quoted = False
        while self._at < len(self._line):
            char = self._line[self._at]
            if char.isspace() or char in "|>" or (self._several and _separator(self._line, self._at)):
                break
            if char in "'\"":
                quoted = True
                self._quotation(char)
            elif char == "\\":
                quoted = True
                if self._at + 1 < len(self._line):
                    self._add(self._line[self._at + 1], escape(self._line[self._at + 1]), width=2)
                else:
                    self._open = char
                    self._at += 1
            else:
                self._add(char, char)
        text, pattern = "".join(self._text), "".join(self._pattern)
        columns = tuple(self._columns)
        return Token(kind, self._start, self._at, text, pattern, columns, self._open, self._last_mark, quoted)

    def _add(self, char: str, pattern: str, *, width: int = 1) -> None:
        """Add a character to the word. ``width``: its columns in the line, two if a backslash escapes it."""
        self._text.append(char)
        self._pattern.append(pattern)
        self._columns.append(self._at)
        self._at += width

    def _quotation(self, mark: str) -> None:
        self._last_mark = self._at
        self._at += 1
        while self._at < len(self._line):
            char = self._line[self._at]
            if char == mark:
                self._last_mark = self._at
                self._at += 1
                return
            escaped = self._line[self._at + 1 : self._at + 2]
            if char == "\\" and mark == '"' and escaped in ('"', "\\"):
                self._add(escaped, escape(escaped), width=2)
            else:
                literal = _LITERAL[mark].match(self._line, self._at)
                assert literal is not None
                self._text.append(literal[0])
                self._pattern.append(escape(literal[0]))
                self._columns += range(self._at, literal.end())
                self._at = literal.end()
        self._open = mark


_SPECIAL = frozenset("'\"\\|>#*?[]{};&")


def quote(text: str) -> str:
    """Quote a text, if necessary, so that it is one literal word of a line."""
    if text and not any(char.isspace() or char in _SPECIAL for char in text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


class Insertion:
    """The position at which completion replaces the end of a word, and the quoting of the new text there.

    The text before ``start`` stays as typed, and an open quote stays open. Only if a quote mark is in the replaced
    part, the whole word is written again.
    """

    def __init__(self, token: Token, cut: int) -> None:
        """``cut`` is the index in ``token.text`` at which the replaced part begins."""
        end = token.end - (token.open == "\\")
        self.start = token.columns[cut] if cut < len(token.columns) else end
        self._quote = token.open.strip("\\")
        self._opening = self._before = ""
        if token.last_mark >= self.start:
            self.start, self._before, self._opening = token.start, token.text[:cut], self._quote
        elif self._quote == '"' and cut and token.text[cut - 1] == "\\" and self.start - token.columns[cut - 1] == 1:
            # A single backslash would escape what is written behind it, so it is written again as well.
            self.start, self._before = token.columns[cut - 1], "\\"

    def written(self, text: str, *, ends_word: bool) -> str:
        """Return ``text`` quoted for that position. ``ends_word``: close an open quote after it."""
        return self._opening + _inside(self._before + text, self._quote) + (self._quote if ends_word else "")


def _inside(text: str, mark: str) -> str:
    """Escape a text for a position inside the open quote ``mark``, or outside quotes if that is empty."""
    if mark == "'":
        return text.replace("'", "'\\''")
    if mark:
        return text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(f"\\{char}" if char in _SPECIAL or char.isspace() else char for char in text)
