"""The command language: words with quotes, globs, comments, redirection and a pipe into a program.

::

    cat '/image/configs/TOPIC:a b' -o json > out.json     # a comment
    dump --type TOPIC_RECORD -o jsonl | jq .data.name

Quotes are a POSIX shell's: single quotes keep everything, double quotes let a backslash escape ``"`` and ``\\``, a bare
backslash takes the meaning from what follows. Everything after an unquoted ``|`` is one command line for ``sh -c``.

:func:`scan` is the only reader of this grammar. It never complains, so completion and highlighting can use it on a line
that is still being typed; :func:`parse_line` raises for what such a line must not have when it is run.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kshell.errors import UsageError
from kshell.tree.globs import escape


class TokenKind(Enum):
    """What a token is."""

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
        pattern: the same with quoted characters escaped, so that only unquoted ones are a glob's.
        columns: for each character of ``text``, where it begins in the line.
        open: the quote that is not closed, or a backslash with nothing behind it, or empty.
        last_mark: the column of the last quote mark; -1 without one.
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
    """A word: its literal ``text``, and as a ``pattern`` in which quoted characters are escaped."""

    text: str
    pattern: str
    column: int
    quoted: bool = False


class Line(NamedTuple):
    """A parsed line: its words, where the output goes, and the program it is piped through."""

    words: list[Word]
    target: str | None = None
    append: bool = False
    program: str | None = None


def scan(line: str, *, several: bool = False) -> list[Token]:
    """The tokens of a line, in order; blanks are left out. ``several``: it may have several commands."""
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
    """A command of a line of several; ``if_done``: it runs only if the one before it ended with 0 (``&&``)."""

    text: str
    start: int
    if_done: bool


def parts(line: str) -> list[LineCommand]:
    """The commands of a line, which ``;`` and ``&&`` separate outside quotes; there is always one.

    A pipe's program is one command line of ``sh``, with its own semicolons, and so is what stands in a comment.
    """
    commands: list[LineCommand] = []
    start, if_done = 0, False
    for token in scan(line, several=True):
        if token.kind is TokenKind.SEPARATOR:
            commands.append(LineCommand(line[start : token.start], start, if_done))
            start, if_done = token.end, token.text == "&&"
    return [*commands, LineCommand(line[start:], start, if_done)]


def _separator(line: str, at: int) -> str:
    """What separates two commands there; empty where nothing does."""
    return next((mark for mark in (";", "&&") if line.startswith(mark, at)), "")


def words(line: str) -> list[Token]:
    """The tokens that are words."""
    return [token for token in scan(line) if token.kind is TokenKind.WORD]


def parse_line(text: str) -> Line:
    """A line that is to be run. Raises UsageError with the column of the fault."""
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
            if target is None or target.kind is not TokenKind.TARGET:
                raise UsageError("there is no file after the redirection", column=token.start)
            _check_closed(target)
            if rest is not None and rest.kind is not TokenKind.COMMENT:
                raise UsageError("only a comment may follow the file", column=rest.start)
            return Line(shell_words, target=target.text, append=token.text == ">>")
    return Line(shell_words)


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


class _WordReader:
    """Reads one word, from ``at`` on."""

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
        """``width``: columns that the character takes; two where a backslash stands before it."""
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
                self._add(char, escape(char))
        self._open = mark


_SPECIAL = frozenset("'\"\\|>#*?[]{}")


def quote(text: str) -> str:
    """The text as it must be typed to mean itself."""
    if text and not any(char.isspace() or char in _SPECIAL for char in text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


class Insertion:
    """Where completion replaces the end of a word, and how the new text must be written to mean itself there.

    What was typed stays unchanged, and an open quote stays open, unless a quote mark stands in what is replaced: then
    the whole word is written again.
    """

    def __init__(self, token: Token, cut: int) -> None:
        """``cut`` is where in ``token.text`` the replaced text begins."""
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
        """``text`` as it must be typed; ``ends_word``: an open quote is closed after it."""
        return self._opening + _inside(self._before + text, self._quote) + (self._quote if ends_word else "")


def _inside(text: str, mark: str) -> str:
    """The text as it must be typed inside an open quote, or outside of any."""
    if mark == "'":
        return text.replace("'", "'\\''")
    if mark:
        return text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(f"\\{char}" if char in _SPECIAL or char.isspace() else char for char in text)
