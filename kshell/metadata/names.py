"""Path segments: names as they stand in paths, in one place.

A name is percent-encoded where it holds ``/``, ``%`` or a control character, or is ``.`` or ``..``; inside a quota
entity's parentheses ``(`` and ``)`` too. What a terminal would interpret beyond that (bidirectional controls, line
separators, lone surrogates) is encoded as well, so that a path can be typed.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

DEFAULT = "<default>"

_UNSAFE = "\x00-\x1f\x7f-\x9f/%\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_NAME = re.compile(f"[{_UNSAFE}]")
_ENTITY = re.compile(f"[{_UNSAFE}()]")


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def encode_name(name: str) -> str:
    """A name as a path segment."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _NAME.sub(_percent, name) or "<empty>"


def encode_entity(name: str | None) -> str:
    """A name inside a quota entity; ``None`` is the default entity."""
    if name is None:
        return DEFAULT
    if name == DEFAULT:
        return "%3C" + DEFAULT[1:]
    return _ENTITY.sub(_percent, name)


def decode_name(segment: str) -> str:
    """The name behind a path segment."""
    return unquote_to_bytes(segment).decode("utf-8", "surrogateescape")


def sort_key(name: str) -> tuple[int, int, str]:
    """Numbers as numbers and before the rest."""
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)
