"""The styles of HTML fragments: inline, because many pages drop ``<style>``, and without a text colour of their own.

Background colours are transparent, so they suit light and dark pages; dimmed text keeps a contrast of 4.5:1 on both. No
colour is used without a word or sign. Colours are written as ``rgba()``, because JupyterLab removes most other
notations from a notebook that is not trusted yet.
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

# Each cell has its style, because notebooks otherwise align cells to the right, break them at any hyphen or (marimo)
# leave no space between them.
_PADDING = "padding:0.4em 0.6em"
_CELL = f"{_PADDING};vertical-align:top;white-space:nowrap;text-align:"
LEFT, RIGHT = f"{_CELL}left", f"{_CELL}right;font-variant:tabular-nums"
WRAPPED = (
    f"{_PADDING};vertical-align:top;white-space:normal;text-align:left;min-width:16em;max-width:36em;"
    "overflow-wrap:anywhere"
)
CLIPPED = f"{LEFT};max-width:40em;overflow:hidden;text-overflow:ellipsis"


class Tone(NamedTuple):
    """The style of a tone: ``sign`` is put before its word, ``style`` is the word's, ``row`` the row's background."""

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
"""The tone of a row or value -> its style, the worst first."""

_PIECE = "text-decoration:none;padding:0 0.25em;border-radius:0.2em;background-color:"
OLD, NEW = f"{_PIECE}rgba({_RED},0.22)", f"{_PIECE}rgba({_GREEN},0.22)"
"""The styles of the old and the new value of a change."""


def badge(tone: str, text: str = "") -> str:
    """Return markup for a tone: its sign, and its name or another text, which must be escaped already."""
    options = TONES[tone]
    return f'<span style="{options.style}">{options.sign}{text or tone}</span>'


def dim(markup: str) -> str:
    """Return markup that is dimmed, because it is less important."""
    return f'<span style="{DIM}">{markup}</span>'
