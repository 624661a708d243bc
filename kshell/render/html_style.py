"""How a page looks: inline styles alone, as many pages drop ``<style>``, and the text in the page's own colour.

Tints let the page shine through, so they suit light and dark pages; what is dimmed keeps a contrast of 4.5:1 on both.
No tint stands without a word or a sign. JupyterLab keeps only some notations of a document that nobody has trusted yet:
``rgba()`` is among them.
"""

from __future__ import annotations

from typing import NamedTuple

LINE = "1px solid rgba(128,128,128,0.35)"
DIM = "opacity:0.75"
SCROLL = '<div style="overflow-x:auto">'
TABLE = '<table cellpadding="5" style="border-collapse:collapse;margin:0 0 0.5em 0">'
CAPTION = '<caption style="text-align:left;white-space:nowrap;padding:0.4em 0">'
ROW = f'<tr style="border-bottom:{LINE}">'
BELOW = f'<div style="margin-left:0.35em;padding-left:1em;border-left:{LINE}">'
SUMMARY = '<summary style="cursor:pointer">'

# Notebooks align cells to the right, break them at any hyphen or (marimo) put no room between them, unless each says
# otherwise.
_PADDING = "padding:0.4em 0.6em"
_CELL = f"{_PADDING};vertical-align:top;white-space:nowrap;text-align:"
LEFT, RIGHT = f"{_CELL}left", f"{_CELL}right;font-variant:tabular-nums"
WRAPPED = (
    f"{_PADDING};vertical-align:top;white-space:normal;text-align:left;min-width:16em;max-width:36em;"
    "overflow-wrap:anywhere"
)
CLIPPED = f"{LEFT};max-width:40em;overflow:hidden;text-overflow:ellipsis"


class Tone(NamedTuple):
    """``sign`` stands before the word; ``style`` is the word's; ``row`` is the background of a whole row."""

    sign: str
    style: str
    row: str


_BADGE = "padding:0.1em 0.5em;border-radius:0.3em;white-space:nowrap;"
_RED, _AMBER, _GREEN, _BLUE = "229,72,77", "240,160,30", "46,160,67", "59,130,246"

TONES = {
    "critical": Tone("", f"{_BADGE}background-color:rgba(176,32,32,1);color:rgba(255,255,255,1)", f"rgba({_RED},0.12)"),
    "error": Tone("", f"{_BADGE}background-color:rgba({_RED},0.3)", ""),
    "warning": Tone("", f"{_BADGE}background-color:rgba({_AMBER},0.3)", ""),
    "info": Tone("", f"{_BADGE}background-color:rgba({_BLUE},0.25)", ""),
    "added": Tone("+ ", f"{_BADGE}background-color:rgba({_GREEN},0.3)", f"rgba({_GREEN},0.12)"),
    "removed": Tone("\N{MINUS SIGN} ", f"{_BADGE}background-color:rgba({_RED},0.3)", f"rgba({_RED},0.12)"),
    "changed": Tone("~ ", f"{_BADGE}background-color:rgba({_AMBER},0.3)", ""),
}
"""A row's tone -> its options."""

_PIECE = "text-decoration:none;padding:0 0.25em;border-radius:0.2em;background-color:"
OLD, NEW = f"{_PIECE}rgba({_RED},0.22)", f"{_PIECE}rgba({_GREEN},0.22)"
"""A value that was, and one that is."""


def badge(tone: str, word: str = "") -> str:
    """A tone's word with its sign, or another (escaped) word in its place."""
    options = TONES[tone]
    return f'<span style="{options.style}">{options.sign}{word or tone}</span>'


def dim(markup: str) -> str:
    """What is beside the point."""
    return f'<span style="{DIM}">{markup}</span>'
