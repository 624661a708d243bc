r"""The one place that escapes text for what would interpret it: a terminal, an HTML page, a spreadsheet.

Names in a cluster are whatever a client sent. These are never printed raw, in any format (:func:`unsafe`): control
characters (C0, DEL, C1), bidirectional controls, line and paragraph separators, characters without a width
(zero-width spaces and joiners, soft hyphen, byte order mark, tags, the controls of hieroglyphs, shorthand and music),
lone surrogates, which UTF-8 cannot encode.

======== ============================================================================================================
text     a visible escape: ``\n``, ``\t``, ``\r``, ``\x1b``, ``\u202e``, ``\U000e0041``. A backslash stays one
         backslash, so that values can be copied as they are: an escape and a text that spells it look alike. Text
         is for reading; JSON is exact.
json     JSON's own ``\u`` escapes: always the exact value (a pair of lone surrogates excepted, which JSON cannot
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
    """Compile a pattern on first use: an answer needs at most the patterns of one format."""
    return re.compile(pattern)


def unsafe() -> re.Pattern[str]:
    """Return the pattern of a character that is never printed raw; ``str.isprintable`` is false for each, and fast."""
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
    """Escape text for one line of a terminal, so that nothing in it acts as a control sequence."""
    return text if text.isprintable() else unsafe().sub(_visible, text)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def json(document: str) -> str:
    """Escape a JSON document, whose C0 controls are escaped already; newlines between its values stay."""
    if document.isascii():
        # The usual case, and the fast one: only DEL is left to look for.
        return document.replace("\x7f", "\\u007f") if "\x7f" in document else document
    return _compiled(_UNSAFE_LINES).sub(_json_escape, document)


def _yaml_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def yaml(document: str) -> str:
    """Escape a YAML document, in which strings with unsafe characters stand in double quotes; its newlines stay."""
    return document if document.isascii() else _compiled(_UNSAFE_LINES).sub(_yaml_escape, document)


def csv(text: str) -> str:
    """Escape a string for CSV, before quoting, and guard it against being run as a formula."""
    guard = _compiled(_FORMULA).match(text) and not _compiled(_NUMBER).fullmatch(text)
    return ("'" if guard else "") + (text if text.isprintable() else _compiled(_UNSAFE_CSV).sub(_visible, text))


def csv_field(text: str) -> str:
    """Quote a CSV field if it needs quotes. An empty string becomes ``""``, as an empty field means null."""
    if text and _compiled(_QUOTED).search(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'


def tsv(text: str) -> str:
    """Escape a string for a TSV field: no tab or newline is left, and backslashes are doubled."""
    return terminal(text.replace("\\", "\\\\"))


def markdown(text: str, *, line_start: bool = False) -> str:
    """Escape a string as plain text of Markdown; at a ``line_start``, ``-`` or ``1.`` would otherwise begin a list."""
    text = _compiled(_MARKDOWN).sub(r"\\\g<0>", terminal(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if line_start:
        text = _compiled(_LINE_START).sub(lambda m: f"\\{m[0]}" if not m[0].isdigit() else m[0], text)
        text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
    return text


def html(text: str) -> str:
    """Escape a string for the text or an attribute's value of an HTML page."""
    from html import escape

    return escape(terminal(text))
