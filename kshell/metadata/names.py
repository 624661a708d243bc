"""Encoding of names (of topics, users, configs and so on) as segments of paths in the tree, and back.

Characters ``/``, ``%`` and control characters are percent-encoded, and so are the names ``.`` and ``..``; inside a
quota entity's parentheses also ``(`` and ``)``. Bytes that are no UTF-8 are encoded as well: a path is always text.
The empty name becomes ``<empty>``.
"""

from __future__ import annotations

import re

DEFAULT = "<default>"
EMPTY = "<empty>"
_PLACEHOLDERS = (DEFAULT, EMPTY)

_UNSAFE = "[\x00-\x1f\x7f-\x9f/%\ud800-\udfff]"
LIKE_DEFAULT = r"^%(25)*3Cdefault>$"
"""A pattern, for Python and Java, of names that look like an encoding of ``<default>``."""
_ESCAPED = rb"%([0-9A-Fa-f]{2})"


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def encode_name(name: str) -> str:
    """Return a name as a path segment."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    if name in _PLACEHOLDERS:
        return f"%3C{name[1:]}"
    if name.isprintable() and "/" not in name and "%" not in name:
        return name or EMPTY
    return re.sub(_UNSAFE, _percent, name)


def encode_entity(name: str | None) -> str:
    """Return a name as it stands inside the parentheses of a quota entity; ``None`` is the default entity."""
    if name is None:
        return DEFAULT
    return encode_name(name).replace("(", "%28").replace(")", "%29")


def entity_name(name: str | None) -> str:
    """Return a quota entity's name for a table: the name itself, or :data:`DEFAULT` for the default entity.

    A name that is itself ``<default>`` is percent-encoded, as in paths, and so is every name that could be mistaken for
    its encoding, so that two entities never look alike.
    """
    if name is None:
        return DEFAULT
    return encode_name(name) if name == DEFAULT or re.fullmatch(LIKE_DEFAULT, name) else name


def decode_name(segment: str) -> str:
    """Return the name that a path segment encodes."""
    if segment == EMPTY:
        return ""
    if "%" not in segment:
        return segment
    raw = re.sub(_ESCAPED, lambda match: bytes([int(match[1], 16)]), segment.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def sort_key(name: str) -> tuple[int, int, str]:
    """Return a sort key for names: numbers come first, in numeric order, then all other names."""
    if name.isascii() and name.isdigit():
        digits = name.lstrip("0")  # compared by length, then text: a name may have more digits than int() accepts
        return 0, len(digits), digits
    return 1, 0, name
