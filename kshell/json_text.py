"""Plain values as JSON text: exact, and escaped for whatever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from kshell import escape


@cache
def _encoder(indent: int | None) -> Any:
    from json import JSONEncoder

    separators = (",", ":") if indent is None else (",", ": ")
    return JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent, separators=separators, default=_default)


def _default(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no plain value")


def _finite(value: Any) -> Any:
    """NaN and infinities as the strings that Kafka's own JSON has for them: JSON knows no such numbers."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _finite(below) for key, below in value.items()}
    return [_finite(below) for below in value] if isinstance(value, list | tuple) else value


def to_json(value: Any, indent: int | None = None) -> str:
    """A plain value as JSON, escaped, without a newline at its end; on one line when ``indent`` is ``None``."""
    try:
        text = _encoder(indent).encode(value)
    except ValueError:
        text = _encoder(indent).encode(_finite(value))
    return escape.json(text)
