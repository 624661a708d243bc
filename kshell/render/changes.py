"""What changed between two screens of text, and lines with that in reverse video, cut to a width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from kshell.render.cells import ELLIPSIS, cells

_WORD = re.compile(r"\S+")
_PIECE = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
_REVERSE, _FORWARD = "\x1b[7m", "\x1b[27m"


def changed_words(before: list[str], now: list[str]) -> list[set[int]]:
    """For every line of ``now`` the places of the characters that are new: whole words that the line before has not.

    Lines that only moved up or down are the same; a line in another one's place is compared word by word with the one
    there that has most in common with it.
    """
    found: list[set[int]] = [set() for _ in now]
    for tag, a, b, c, d in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            for at in range(c, d):
                found[at] = _new(_partner(before[a:b], now[at], at - c), now[at])
    return found


def _partner(before: list[str], line: str, place: int) -> str:
    """The line that shares the most words; of several, the nearest."""
    words = set(line.split())

    def likeness(at: int) -> tuple[int, int]:
        return len(words.intersection(before[at].split())), -abs(at - place)

    return before[max(range(len(before)), key=likeness)] if before else ""


def _new(before: str, now: str) -> set[int]:
    old = _WORD.findall(before)
    words = list(_WORD.finditer(now))
    places: set[int] = set()
    for tag, _, _, c, d in SequenceMatcher(None, old, [word[0] for word in words], autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            for word in words[c:d]:
                places.update(range(*word.span()))
    return places


def fitted(line: str, places: set[int], columns: int) -> str:
    """The line, which may hold colours, in at most ``columns``, with the characters at ``places`` in reverse video."""
    fits = not places and cells(uncolored(line)) <= columns
    return line if fits else "".join(_pieces(line, places, columns))


def uncolored(line: str) -> str:
    """The line without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line) if "\x1b" in line else line


def _pieces(line: str, places: set[int], columns: int) -> Iterator[str]:
    cut = cells(uncolored(line)) > columns
    room = columns - cut
    at, used, reverse = 0, 0, False
    for piece in _PIECE.findall(line):
        if len(piece) > 1:
            # A colour that begins or ends puts an end to the reverse video, too.
            yield piece + (_REVERSE if reverse else "")
            continue
        used += cells(piece)
        if used > room:
            break
        if (at in places) != reverse:
            reverse = not reverse
            yield _REVERSE if reverse else _FORWARD
        yield piece
        at += 1
    if reverse:
        yield _FORWARD
    if cut:
        yield ("\x1b[0m" if "\x1b" in line else "") + ELLIPSIS
