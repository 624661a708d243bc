"""The command language: words with quotes, globs, comments, redirection and a pipe into a program.

::

    cat '/image/configs/TOPIC:a b' -o json > out.json     # a comment
    dump --type TOPIC_RECORD -o jsonl | jq .data.name

Quotes are a POSIX shell's: single quotes keep everything, double quotes let a backslash escape ``"`` and ``\\``, a bare
backslash takes the meaning from what follows. Everything after an unquoted ``|`` is one command line for ``sh -c``.
"""

from __future__ import annotations

from typing import NamedTuple

from kshell.errors import UsageError
from kshell.tree.globs import escape


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


def parse_line(text: str) -> Line:
    """Raises UsageError with the column of the fault."""
    return _Reader(text).line()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.words: list[Word] = []

    def line(self) -> Line:
        while self._skip_blanks():
            char = self.text[self.at]
            if char == "#":
                break
            if char == "|":
                return self._piped()
            if char == ">":
                return self._redirected()
            self.words.append(self._word())
        return Line(self.words)

    def _skip_blanks(self) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _piped(self) -> Line:
        program = self.text[self.at + 1 :].strip()
        if not self.words:
            raise UsageError("there is no command before the pipe", column=self.at)
        if not program:
            raise UsageError("there is no program after the pipe", column=self.at)
        return Line(self.words, program=program)

    def _redirected(self) -> Line:
        column = self.at
        append = self.text.startswith(">>", self.at)
        self.at += 2 if append else 1
        if not self.words:
            raise UsageError("there is no command before the redirection", column=column)
        if not self._skip_blanks() or self.text[self.at] in "#|>":
            raise UsageError("there is no file after the redirection", column=column)
        target = self._word().text
        if self._skip_blanks() and self.text[self.at] != "#":
            raise UsageError("only a comment may follow the file", column=self.at)
        return Line(self.words, target=target, append=append)

    def _word(self) -> Word:
        start = self.at
        text: list[str] = []
        pattern: list[str] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char.isspace() or char in "|>":
                break
            if char in "'\"":
                quoted = True
                inner = self._quoted(char)
                text.append(inner)
                pattern.append(escape(inner))
            elif char == "\\":
                quoted = True
                literal = self.text[self.at + 1 : self.at + 2]
                if not literal:
                    raise UsageError("nothing follows the backslash", column=self.at)
                self.at += 2
                text.append(literal)
                pattern.append(escape(literal))
            else:
                self.at += 1
                text.append(char)
                pattern.append(char)
        return Word("".join(text), "".join(pattern), start, quoted)

    def _quoted(self, mark: str) -> str:
        start = self.at
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == mark:
                return "".join(out)
            if char == "\\" and mark == '"' and self.text[self.at : self.at + 1] in ('"', "\\"):
                char = self.text[self.at]
                self.at += 1
            out.append(char)
        raise UsageError(f"the quote {mark} is not closed", column=start)


def quote(word: str) -> str:
    """The word as it must be typed to mean itself."""
    if word and not any(char.isspace() or char in "'\"\\|>#*?[]{}" for char in word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
