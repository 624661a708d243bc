r"""The one place that escapes what a terminal, a page or a spreadsheet would take for more than text.

Names in a cluster are whatever a client sent. What is never printed raw, in any format (:func:`unsafe`): control
characters (C0, DEL, C1), bidirectional controls, line and paragraph separators, characters without a width
(zero-width spaces and joiners, soft hyphen, byte order mark, tags, the controls of hieroglyphs, shorthand and music),
lone surrogates, which UTF-8 cannot say.

======== ============================================================================================================
text     a visible escape: ``\n``, ``\t``, ``\r``, ``\x1b``, ``\u202e``, ``\U000e0041``. A backslash stays one
         backslash, so that values can be copied as they are: an escape and a text that spells it look alike. That is
         for eyes; JSON is exact.
json     ``\u`` escapes of JSON's own: always the exact value (a pair of lone surrogates excepted, which JSON cannot
         tell from the character that they encode).
yaml     the same inside double quotes, with YAML's ``\U`` for what is above U+FFFF.
csv      RFC 4180's quotes; newline and tab stay as they are inside quotes, the rest as in text. A string that a
         spreadsheet would run as a formula, and that is no number, gets a ``'`` in front.
tsv      ``\\``, ``\t``, ``\n``, ``\r`` and the rest as in text: unambiguous, as backslashes are doubled. One row is
         one line. No guard against formulas: its readers are programs such as ``cut`` and ``awk``.
markdown text's escapes; then a backslash or an entity before whatever Markdown or HTML would read.
html     text's escapes; then entities.
======== ============================================================================================================
"""

from __future__ import annotations

import re
from functools import cache

_FORMAT = (
    "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_UNSAFE = f"[\x00-\x1f\x7f-\x9f{_FORMAT}\ud800-\udfff]"
_UNSAFE_LINES = f"[\x00-\x09\x0b-\x1f\x7f-\x9f{_FORMAT}\ud800-\udfff]"
_UNSAFE_CSV = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMAT}\ud800-\udfff]"
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_FORMULA = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER = r"(?a:[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)"
_QUOTED = r'[",\n\r\t]|^\s|\s$'
_MARKDOWN = r"[\\`*_\[\]|~#$!]"
_LINE_START = r"^([-+=]|\d+(?=[.)]))"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """On first use: an answer needs the patterns of one format, and most answers need none."""
    return re.compile(pattern)


def unsafe() -> re.Pattern[str]:
    """A character that is never printed raw. Each is outside ``str.isprintable``, which is the fast way to see none."""
    return _compiled(_UNSAFE)


def _visible(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def terminal(text: str) -> str:
    """One line of text that a terminal shows and does not obey."""
    return text if text.isprintable() else unsafe().sub(_visible, text)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def json(document: str) -> str:
    """JSON (C0 controls in its strings escaped already), with the rest escaped too; its own newlines stay."""
    if document.isascii():
        # The usual case, and the fast one: only DEL is left to look for.
        return document.replace("\x7f", "\\u007f") if "\x7f" in document else document
    return _compiled(_UNSAFE_LINES).sub(_json_escape, document)


def _yaml_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def yaml(document: str) -> str:
    """YAML in which every string with an unsafe character stands in double quotes; its own newlines stay."""
    return document if document.isascii() else _compiled(_UNSAFE_LINES).sub(_yaml_escape, document)


def csv(text: str) -> str:
    """A string as a CSV field's text, before quoting."""
    guard = _compiled(_FORMULA).match(text) and not _compiled(_NUMBER).fullmatch(text)
    return ("'" if guard else "") + (text if text.isprintable() else _compiled(_UNSAFE_CSV).sub(_visible, text))


def csv_field(text: str) -> str:
    """A CSV field in quotes where it needs them; ``""`` for an empty string, which tells it from null's empty field."""
    if text and _compiled(_QUOTED).search(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'


def tsv(text: str) -> str:
    """A string as a TSV field: no tab or newline in it, backslashes doubled."""
    return terminal(text.replace("\\", "\\\\"))


def markdown(text: str, *, line_start: bool = False) -> str:
    """A string as Markdown's plain text. ``line_start``: it opens a line, where ``-`` or ``1.`` would start a list."""
    text = _compiled(_MARKDOWN).sub(r"\\\g<0>", terminal(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if line_start:
        text = _compiled(_LINE_START).sub(lambda m: f"\\{m[0]}" if not m[0].isdigit() else m[0], text)
        text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
    return text


def html(text: str) -> str:
    """A string as text of a page, or as an attribute's value."""
    from html import escape

    return escape(terminal(text))
