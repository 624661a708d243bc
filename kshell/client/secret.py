"""A value that is shown nowhere: neither its text nor its length reaches a message, a repr or a log."""

from __future__ import annotations


class Secret:
    """Holds a password, a key or a token; only :attr:`value` gives it away."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not serialised")

    def utf8(self) -> bytes:
        """As Java encodes a string: what UTF-8 cannot hold (half a surrogate pair) becomes a question mark."""
        return self.value.encode("utf-8", "replace")
