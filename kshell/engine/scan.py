"""A line that is still being typed, taken apart without complaint: what completion and highlighting look at.

The rules are those of :mod:`kshell.engine.language`; where that one raises, this one says what is open. A test
holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kshell.tree.globs import escape


class Kind(Enum):
    """What a part of a line is."""

    WORD = "word"
    PIPE = "|"
    PROGRAM = "program"
    REDIRECTION = ">"
    TARGET = "target"
    EXCESS = "excess"
    """After the file of a redirection, where only a comment may stand."""
    COMMENT = "comment"


@dataclass(frozen=True)
class Part:
    """A part of a line: ``text`` is its literal meaning, ``pattern`` has quoted characters escaped.

    ``places[i]`` is where the character ``text[i]`` begins in the line. ``open`` is the quote that is not closed, or a
    backslash with nothing behind it, or empty. ``toggled`` is the place of the last quote mark, ``-1`` for none.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    pattern: str = ""
    places: tuple[int, ...] = ()
    open: str = ""
    toggled: int = -1
    quoted: bool = False


def scan(line: str) -> list[Part]:
    """The parts of a line, in order; blanks are left out."""
    return _Scanner(line).parts()


def words(line: str) -> list[Part]:
    """The parts that are words."""
    return [part for part in scan(line) if part.kind is Kind.WORD]


class _Scanner:
    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.found: list[Part] = []

    def parts(self) -> list[Part]:
        kind = Kind.WORD
        while self._skip_blanks():
            char = self.line[self.at]
            if char == "#":
                self._rest(Kind.COMMENT)
            elif char == "|" and kind is Kind.WORD:
                self._mark(Kind.PIPE, 1)
                if self._skip_blanks():
                    self._rest(Kind.PROGRAM)
            elif char == ">" and kind is Kind.WORD:
                self._mark(Kind.REDIRECTION, 2 if self.line.startswith(">>", self.at) else 1)
                kind = Kind.TARGET
            elif char in "|>":
                self._mark(Kind.EXCESS, 1)
            else:
                self.found.append(_WordScanner(self.line, self.at, kind).part())
                self.at = self.found[-1].end
                kind = Kind.EXCESS if kind is Kind.TARGET else kind
        return self.found

    def _skip_blanks(self) -> bool:
        while self.at < len(self.line) and self.line[self.at].isspace():
            self.at += 1
        return self.at < len(self.line)

    def _mark(self, kind: Kind, length: int) -> None:
        self.found.append(Part(kind, self.at, self.at + length, self.line[self.at : self.at + length]))
        self.at += length

    def _rest(self, kind: Kind) -> None:
        rest = self.line[self.at :]
        self.found.append(Part(kind, self.at, len(self.line), rest.rstrip()))
        self.at = len(self.line)


class _WordScanner:
    """One word, from ``at`` on."""

    def __init__(self, line: str, at: int, kind: Kind) -> None:
        self.line = line
        self.start = self.at = at
        self.kind = kind
        self.text: list[str] = []
        self.pattern: list[str] = []
        self.places: list[int] = []
        self.open = ""
        self.toggled = -1
        self.quoted = False

    def part(self) -> Part:
        while self.at < len(self.line):
            char = self.line[self.at]
            if char.isspace() or char in "|>":
                break
            if char in "'\"":
                self._quoted(char)
            elif char == "\\":
                self._escaped()
            else:
                self._take(char, self.at, char)
                self.at += 1
        return Part(
            self.kind,
            self.start,
            self.at,
            "".join(self.text),
            "".join(self.pattern),
            tuple(self.places),
            self.open,
            self.toggled,
            self.quoted,
        )

    def _take(self, char: str, place: int, pattern: str) -> None:
        self.text.append(char)
        self.pattern.append(pattern)
        self.places.append(place)

    def _escaped(self) -> None:
        self.quoted = True
        place = self.at
        self.at += 2
        if place + 1 == len(self.line):
            self.open, self.at = "\\", place + 1
        else:
            self._take(self.line[place + 1], place, escape(self.line[place + 1]))

    def _quoted(self, mark: str) -> None:
        self.quoted = True
        self.toggled = self.at
        self.at += 1
        while self.at < len(self.line):
            place, char = self.at, self.line[self.at]
            self.at += 1
            if char == mark:
                self.toggled = place
                return
            if char == "\\" and mark == '"' and self.line[self.at : self.at + 1] in ('"', "\\"):
                char = self.line[self.at]
                self.at += 1
            self._take(char, place, escape(char))
        self.open = mark


_SPECIAL = frozenset("'\"\\|>#*?[]{}")


class Place:
    """Where a word is replaced, and how a replacement must be written to mean itself there.

    What was typed stays as it is, and an open quote stays open, unless a quote mark stands in what is replaced: then
    the whole word is written anew.
    """

    def __init__(self, word: Part, cut: int) -> None:
        """``cut`` is where in ``word.text`` the replaced text begins."""
        kept = word.end - (word.open == "\\")
        self.start = word.places[cut] if cut < len(word.places) else kept
        self._quote = word.open.strip("\\")
        self._opening = self._before = ""
        if word.toggled >= self.start:
            self.start, self._before, self._opening = word.start, word.text[:cut], self._quote
        elif self._quote == '"' and cut and word.text[cut - 1] == "\\" and self.start - word.places[cut - 1] == 1:
            # A backslash that stands alone would take what is written behind it for escaped: it is written again, too.
            self.start, self._before = word.places[cut - 1], "\\"

    def written(self, text: str, *, whole: bool) -> str:
        """``text`` as it must be typed; ``whole`` when the word ends with it."""
        return self._opening + _quoted(self._before + text, self._quote) + (self._quote if whole else "")


def _quoted(text: str, mark: str) -> str:
    if mark == "'":
        return text.replace("'", "'\\''")
    if mark:
        return text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(f"\\{char}" if char in _SPECIAL or char.isspace() else char for char in text)
