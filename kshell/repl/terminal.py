"""What the prompt's parts share about the terminal: the styles, and text that is harmless on it."""

from __future__ import annotations

import os

from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from kshell.escape import terminal as clean
from kshell.escape import unsafe

__all__ = ["STYLE", "clean", "is_dumb", "masked", "shortened", "width_of"]

_ORANGE = "#d75f00"
"""Yellow would be lost on a white background."""
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
"""The sixteen colours that every terminal's own theme defines, and orange; readable without any."""


def masked(text: str) -> str:
    """The text, one character for one character, without what a terminal would interpret."""
    return text if text.isprintable() else unsafe().sub("\N{REPLACEMENT CHARACTER}", text)


def width_of(text: str) -> int:
    """Columns that the text takes."""
    return sum(map(get_cwidth, text))


def shortened(text: str, room: int) -> str:
    """The text's end in at most ``room`` columns, with ``…`` for what is missing before it."""
    if width_of(text) <= room:
        return text
    end = len(text)
    while end and width_of(text[-end:]) > room - 1:
        end -= 1
    return "…" + text[len(text) - end :] if end else "…"


def is_dumb() -> bool:
    """Whether the terminal can do no more than print."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown", "")
