"""Path segments: names as they stand in paths, in one place.

A name is percent-encoded where it holds ``/``, ``%`` or a control character, or is ``.`` or ``..``; inside a quota
entity's parentheses ``(`` and ``)`` too. Bytes that are no UTF-8 are encoded as well, so that a path is always text.
"""

from __future__ import annotations

import re

DEFAULT = "<default>"
EMPTY = "<empty>"
_PLACEHOLDERS = (DEFAULT, EMPTY)

_UNSAFE = "[\x00-\x1f\x7f-\x9f/%\ud800-\udfff]"
LIKE_DEFAULT = r"^%(25)*3Cdefault>$"
"""Names that read like the encoding of a name that reads like the default entity; a pattern for Java, too."""
_ESCAPED = rb"%([0-9A-Fa-f]{2})"


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def encode_name(name: str) -> str:
    """A name as a path segment."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    if name in _PLACEHOLDERS:
        return f"%3C{name[1:]}"
    if name.isprintable() and "/" not in name and "%" not in name:
        return name or EMPTY
    return re.sub(_UNSAFE, _percent, name)


def encode_entity(name: str | None) -> str:
    """A name inside a quota entity; ``None`` is the default entity."""
    if name is None:
        return DEFAULT
    return encode_name(name).replace("(", "%28").replace(")", "%29")


def entity_name(name: str | None) -> str:
    """A name of a quota entity in a table: itself, or :data:`DEFAULT` for the default entity.

    A name that reads like that is percent-encoded as in paths, and so is every name that could be taken for its
    encoding: two entities never look alike.
    """
    if name is None:
        return DEFAULT
    return encode_name(name) if name == DEFAULT or re.fullmatch(LIKE_DEFAULT, name) else name


def decode_name(segment: str) -> str:
    """The name behind a path segment."""
    if segment == EMPTY:
        return ""
    if "%" not in segment:
        return segment
    raw = re.sub(_ESCAPED, lambda match: bytes([int(match[1], 16)]), segment.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def sort_key(name: str) -> tuple[int, int, str]:
    """Numbers as numbers and before the rest."""
    if name.isascii() and name.isdigit():
        digits = name.lstrip("0")  # by their length first: a name may have more digits than int() takes
        return 0, len(digits), digits
    return 1, 0, name
