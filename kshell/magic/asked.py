"""A line of a cell, taken apart: ``{{…}}`` replaced, a ``;`` at its end understood, the magic's options set apart."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import NamedTuple

from kshell.engine.language import Kind, Line, Word, parse_line, scan
from kshell.errors import UsageError
from kshell.magic.interpolate import Evaluate, interpolate
from kshell.magic.words import Split, split


class Asked(NamedTuple):
    """A line as it was understood. ``quiet``: it ends with ``;``, and is not shown."""

    split: Split
    line: Line
    quiet: bool
    is_comment: bool = False


def asked(text: str, evaluate: Evaluate | None) -> Asked:
    """The line, taken apart. ``evaluate`` gives the value of an expression in ``{{…}}``; without it those stay as they
    are. Raises UsageError.
    """
    text, quiet = _without_semicolon(text)
    if evaluate is not None and not any(word.text == "--no-interp" for word in _words_of(text)):
        text = interpolate(text, evaluate)
    line = parse_line(text)
    return Asked(split(line.words), line, quiet, is_comment=bool(text.strip()) and not line.words)


def check_name(name: str) -> None:
    """Raises UsageError for what no variable can be called."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"--into {name}: no Python name", hint="letters, digits and _, as a variable has them")


def _words_of(text: str) -> list[Word]:
    try:
        return parse_line(text).words
    except UsageError:
        return []  # said by the parse that counts


def _without_semicolon(text: str) -> tuple[str, bool]:
    """IPython's way to say that an answer is not to be shown; the shell knows no such character."""
    stripped = text.rstrip()
    if not stripped.endswith(";") or stripped.endswith("\\;"):
        return text, False
    last = scan(stripped)[-1]
    return (text, False) if last.kind is Kind.COMMENT or last.open else (stripped[:-1], True)


def typed_line(text: str) -> str | None:
    """The line in which an error's column is shown; none where it was another one by then."""
    return None if "{{" in text else text


def taken(shaping: Sequence[Word], name: str) -> tuple[str | None, list[Word]]:
    """(the value of an option, ``None`` if it has none; the other words)."""
    value: str | None = None
    others: list[Word] = []
    words = iter(shaping)
    for word in words:
        if word.text == name and (following := next(words, None)) is not None:
            value = following.text
        elif word.text.startswith(f"{name}="):
            value = word.text.partition("=")[2]
        else:
            others.append(word)
    return value, others
