"""Colours: whether, and which."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from kshell.engine.result import Toned

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
"""What a text is -> its ANSI attributes: of the sixteen colours that every terminal's theme defines those that can be
read on black and on white. Yellow cannot: a warning is orange, of the 256. So are the series of a plot: Okabe and Ito's
palette, which people tell apart whatever colours they see, with grey for its yellow."""


def use_color(setting: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to colour what goes to ``stream``. ``setting`` (``always``, ``never``) wins over the environment.

    With ``auto``: ``NO_COLOR`` wins over ``FORCE_COLOR``, both count when not empty (``FORCE_COLOR=0`` is no); then a
    terminal that is not ``TERM=dumb``.
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
    """The text in a style of :data:`CODES`; as it is when colours are off, or the style is ``""``."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if on and style and text else text


def style_of(value: Any) -> str:
    """The style of a plain value: by its type; strings have none, but for :class:`Toned` ones."""
    if isinstance(value, Toned):
        return value.tone if value.tone in CODES else ""
    if value is None:
        return "dim"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else ""


def highlight(chunks: Iterable[str], language: str) -> Iterator[str]:
    """JSON or YAML in colours; each chunk is whole lines, already escaped."""
    from pygments import highlight as colored
    from pygments.formatters import TerminalFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    formatter = TerminalFormatter()
    for chunk in chunks:
        yield colored(chunk, lexer, formatter)
