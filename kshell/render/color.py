"""Colours of terminal output: decide whether to use them, and map style names to ANSI attributes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from kshell.engine.result import StyledText

CODES = {
    "bold": "1",
    "dim": "2",
    "directory": "1;34",
    "number": "36",
    "boolean": "35",
    "code": "36",
    "critical": "1;97;41",
    "error": "1;31",
    "warning": "1;38;5;166",
    "info": "1;34",
    "hint": "2",
    "series1": "38;5;32",
    "series2": "38;5;214",
    "series3": "38;5;36",
    "series4": "38;5;175",
    "series5": "38;5;74",
    "series6": "38;5;166",
    "series7": "38;5;102",
}
"""Style -> ANSI attributes. Of the sixteen colours that a terminal's theme defines, only those are used that are
readable on black and on white. Yellow is not, so warnings are orange, from the 256 colours. The series of a plot are
Okabe and Ito's palette, which colour-blind users can distinguish, with grey in place of its yellow."""


def use_color(setting: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to use colours on ``stream``.

    A ``setting`` of ``always`` or ``never`` decides. With ``auto``, a non-empty ``NO_COLOR`` means no, else a non-empty
    ``FORCE_COLOR`` other than 0 means yes, else a terminal other than ``TERM=dumb`` gets colours.
    """
    env = os.environ if environ is None else environ
    if setting in ("always", "never"):
        return setting == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return env.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: str, on: bool) -> str:
    """Return the text in a style of :data:`CODES`; unchanged if colours are not ``on`` or the style is ``""``."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if on and style and text else text


def style_of(value: object) -> str:
    """Return the style of a plain value by its type; of a :class:`StyledText` its tone, of any other string ``""``."""
    if isinstance(value, StyledText):
        return value.tone if value.tone in CODES else ""
    if value is None:
        return "dim"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else ""


def highlight(chunks: Iterable[str], language: str) -> Iterator[str]:
    """Colour JSON or YAML; each chunk must be complete lines that are already escaped."""
    from pygments import highlight as colored
    from pygments.formatters import TerminalFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    formatter = TerminalFormatter()
    for chunk in chunks:
        yield colored(chunk, lexer, formatter)
