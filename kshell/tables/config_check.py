"""Whether a config's value would be taken: by its type, and by the valid values as far as they are known."""

from __future__ import annotations

import re
from typing import NamedTuple

from kshell.metadata.config_keys import PER_MECHANISM
from kshell.metadata.config_types import NEWEST, KnownType, known_types
from kshell.sources.brokers.config_entries import UNKNOWN, Entry

_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_LISTENER = "listener.name."
ANYTHING = "*"
"""Among the rules of ``config_types``."""


class Verdict(NamedTuple):
    """``expected`` says which values are taken; ``reason`` why this one is not, or what to know although it is."""

    valid: bool
    type: str | None
    expected: str | None
    reason: str | None


def known_key(resource_type: str, key: str) -> KnownType | None:
    """What Kafka says of a key in some release; a broker's key may carry a listener's name, and a mechanism's."""
    known = known_types(resource_type)
    if resource_type == "BROKER" and key not in known and key.startswith(_LISTENER):
        rest = key[len(_LISTENER) :].partition(".")[2]
        key = next((one for one in PER_MECHANISM if rest.endswith(f".{one}")), rest)
    return known.get(key)


def check(resource_type: str, key: str, value: str, told: Entry | None) -> Verdict:
    """``told`` is what a node says of the key, if one was asked and knows it."""
    known = known_key(resource_type, key)
    kind = told.type if told is not None and told.type != UNKNOWN else known.type if known else None
    if told is None and known is None:
        return Verdict(False, None, None, f"no Kafka from 3.3 to {NEWEST} has such a config for a {resource_type}")
    rules = list(known.rules) if known else []
    if told is not None and told.valid_values is not None:
        rules = [("in:" if told.case_sensitive else "IN:") + ",".join(told.valid_values)]
    expected = " or ".join(filter(None, [_words(rule) for rule in rules[:1]])) or None
    # What Kafka says of a listener's own keys is wrong: it can change them.
    if told is not None and told.is_read_only and resource_type == "BROKER" and not key.startswith(_LISTENER):
        return Verdict(False, kind, expected, "it cannot be changed while the broker runs (isReadOnly)")
    reason = _type_fault(value, kind)
    if reason is not None:
        return Verdict(False, kind, expected, reason)
    fits = [_fits(value, kind, rule) for rule in rules]
    if not rules or fits[0]:
        return Verdict(True, kind, expected, None)
    if any(fits):
        return Verdict(True, kind, expected, f"only earlier releases take it: {NEWEST} takes {expected}")
    return Verdict(False, kind, expected, f"not {expected}")


def _type_fault(value: str, kind: str | None) -> str | None:
    text = value.strip()
    if kind == "BOOLEAN" and text.lower() not in ("true", "false"):
        return "neither true nor false"
    if kind in _BITS:
        if not _INTEGER.fullmatch(text):
            return "not a whole number"
        limit = 1 << (_BITS[kind] - 1)
        if not -limit <= int(text) < limit:
            return f"does not fit in {_BITS[kind]} bits"
    if kind == "DOUBLE" and not _DECIMAL.fullmatch(text):
        return "not a number"
    return None


def _fits(value: str, kind: str | None, rule: str) -> bool:
    """Whether a value of the right type obeys a rule of ``config_types``."""
    text = value.strip()
    if rule == ANYTHING:
        return True
    name, colon, listed = rule.partition(":")
    if colon:
        is_list = kind == "LIST" or name == "list"
        parts = [part.strip() for part in text.split(",") if part.strip()] if is_list else [text]
        if name == "IN":
            return {part.upper() for part in parts} <= {one.upper() for one in listed.split(",")}
        return set(parts) <= set(listed.split(","))
    if kind != "DOUBLE" and kind not in _BITS:
        return True  # a node says another type than Kafka has: its numbers mean nothing then
    low, _, high = rule.partition("..")
    number = float(text.rstrip("fFdD").replace("Infinity", "inf")) if kind == "DOUBLE" else int(text)
    return not ((low and number < float(low)) or (high and number > float(high)))  # NaN is in every range, as in Kafka


def _words(rule: str) -> str:
    """A rule for people."""
    name, colon, listed = rule.partition(":")
    if rule == ANYTHING:
        return ""
    if colon:
        words = ", ".join(listed.split(","))
        return {"list": f"a list of {words}", "IN": f"one of {words} (in any case)"}.get(name, f"one of {words}")
    low, _, high = rule.partition("..")
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"{high} or less" if high else ""


def valid_values(known: KnownType | None) -> str | None:
    """The newest release's rule for people; ``None`` where any value will do, or nothing is known."""
    return (_words(known.rules[0]) or None) if known and known.rules else None
