"""Terminal helpers for the parts of the prompt: styles, text without control characters, and widths."""

from __future__ import annotations

import os

from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from kshell.escape import terminal as clean
from kshell.escape import unsafe

__all__ = ["STYLE", "clean", "is_dumb", "masked", "shortened", "width_of"]

_ORANGE = "#d75f00"
"""Used in place of yellow, which is unreadable on a white background."""
STYLE = Style.from_dict(
    {
        "prompt.name": "",
        "prompt.point": f"{_ORANGE} bold",
        "prompt.path": "ansiblue bold",
        "prompt.failed": "ansired bold",
        "command": "ansigreen bold",
        "command.unknown": "ansired",
        "flag": "ansicyan",
        "flag.unknown": "ansired",
        "argument": "",
        "path": "underline",
        "string": _ORANGE,
        "string.open": f"{_ORANGE} italic",
        "operator": "bold",
        "program": "ansimagenta",
        "file": "ansimagenta",
        "comment": "ansibrightblack italic",
        "wrong": "ansired",
        "auto-suggestion": "ansibrightblack",
        "bottom-toolbar": "noreverse",
        "bottom-toolbar.text": "noreverse",
        "bar": "reverse",
        "bar.source": "reverse bold",
        "bar.wrong": "bg:ansired fg:ansiwhite bold noreverse",
        "bar.note": "bg:ansiyellow fg:ansiblack noreverse",
        "completion-menu": "bg:ansibrightblack fg:ansiwhite noreverse",
        "completion-menu.completion": "",
        "completion-menu.completion.current": "bg:ansicyan fg:ansiblack noreverse",
        "completion-menu.meta.completion": "bg:ansiblack fg:ansiwhite",
        "completion-menu.meta.completion.current": "bg:ansicyan fg:ansiblack noreverse",
    }
)
"""The styles use the sixteen colours that a terminal's theme defines, and orange; all is readable without colours."""


def masked(text: str) -> str:
    """Replace each character but newlines that a terminal would interpret, so that the length stays the same."""
    if text.isprintable():
        return text
    return "\n".join(unsafe().sub("\N{REPLACEMENT CHARACTER}", line) for line in text.split("\n"))


def width_of(text: str) -> int:
    """Return the columns that a text takes."""
    return sum(map(get_cwidth, text))


def shortened(text: str, room: int) -> str:
    """Cut a text at its beginning to ``room`` columns, with ``…`` in place of the missing part."""
    if width_of(text) <= room:
        return text
    end = len(text)
    while end and width_of(text[-end:]) > room - 1:
        end -= 1
    return "…" + text[len(text) - end :] if end else "…"


def is_dumb() -> bool:
    """Whether the terminal can only print, by its ``TERM``."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown", "")
