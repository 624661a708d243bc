"""Rows of configs, as a log holds them or as nodes report them, without their secrets; and whether a value is valid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.metadata.config_keys import PER_MECHANISM, SENSITIVE
from kshell.metadata.config_types import NEWEST, KnownType, known_types
from kshell.metadata.families.configs import Resource
from kshell.metadata.redaction import REDACTED
from kshell.sources.brokers.config_entries import (
    DEFAULT,
    UNKNOWN,
    ConfigEntry,
    Described,
    Synonym,
    dynamic_source,
    own_setting,
)

if TYPE_CHECKING:
    from kshell.metadata.redaction import Redaction

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


def check(resource_type: str, key: str, value: str, told: ConfigEntry | None) -> Verdict:
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


Row = dict[str, Any]
_LOGGER = "BROKER_LOGGER"
"""Its values are the levels of loggers, whose names are no config keys."""
_NUMBERS = ("INT", "SHORT", "LONG")


def rows_of_log(
    configs: Mapping[Resource, Mapping[str, Any]],
    resources: Iterable[Resource],
    redaction: Redaction,
    *,
    type: str = "",
) -> Iterator[Row]:
    """What was set, of which a log holds no more than keys and values. ``type``: what to say instead of our tables."""
    for resource in resources:
        kind, name = resource
        for key, entry in sorted(configs.get(resource, {}).items()):
            known = known_key(kind, key)
            yield {
                "resourceType": kind,
                "resourceName": name,
                "name": key,
                "value": redaction.config(kind, key, entry.value),
                "source": dynamic_source(resource),
                "isSensitive": known.type == "PASSWORD" if known else None,
                "isReadOnly": None,
                "synonyms": None,
                "type": type or (known.type if known else None),
                "documentation": None,
            }


def rows_told(described: Described, redaction: Redaction, *, overridden: bool, effective: bool) -> Iterator[Row]:
    """What a node tells: what is set at the resource itself, with ``overridden`` all but defaults, or everything."""
    kind, name = described.resource
    for entry in sorted(described.entries):
        own = own_setting(described.resource, entry)
        wanted = effective or (entry.source != DEFAULT if overridden else own is not None)
        if wanted:
            yield {
                "resourceType": kind,
                "resourceName": name,
                "name": entry.name,
                "value": value_of(kind, entry, entry.value, redaction),
                "source": entry.source,
                "isSensitive": entry.is_sensitive,
                "isReadOnly": entry.is_read_only,
                "synonyms": [synonym_row(kind, entry, one, redaction) for one in entry.synonyms],
                "type": entry.type,
                "documentation": entry.documentation,
            }


def value_of(kind: str, entry: ConfigEntry, value: str | None, redaction: Redaction) -> str | None:
    """A config's value; a sensitive one is not told, and a key that nobody knows is hidden."""
    if entry.is_sensitive:
        return REDACTED
    return value if kind == _LOGGER else redaction.config(kind, entry.name, value)


def synonym_row(kind: str, entry: ConfigEntry, synonym: Synonym, redaction: Redaction) -> Row:
    """A synonym's key may be the broker's (``log.retention.ms`` of ``retention.ms``): then that decides."""
    value: str | None = REDACTED
    if not entry.is_sensitive:
        shown = [redaction.config(one, synonym.name, synonym.value) for one in dict.fromkeys((kind, "BROKER"))]
        secret = any(synonym.name in keys for keys in SENSITIVE.values()) and not redaction.show_secrets
        value = REDACTED if secret else next((one for one in shown if one != REDACTED), shown[0])
    return {"name": synonym.name, "value": value, "source": synonym.source}


def for_people(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose value has the type that the config has, so that it is coloured as such."""
    shown = dict(row, value=typed(row["value"], row["type"]))
    if not row["resourceName"]:
        shown["resourceName"] = "<default>"
    if row["synonyms"] is not None:
        shown["synonyms"] = [f"{one['source']}:{one['name']}={_shown(one['value'])}" for one in row["synonyms"]]
    return shown


def _shown(value: str | None) -> str:
    return "-" if value is None else value


def typed(value: str | None, type: str | None) -> Any:
    """The text as a number or a boolean, where it reads the same as one."""
    if value is None or type in (None, UNKNOWN):
        return value
    if type == "BOOLEAN" and value in ("true", "false"):
        return value == "true"
    if type in _NUMBERS and len(value) < 20 and value.removeprefix("-").isdecimal() and str(int(value)) == value:
        return int(value)
    if type == "DOUBLE":
        try:
            number = float(value)
        except ValueError:
            return value
        return number if repr(number) == value else value
    return value
