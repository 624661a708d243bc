"""Rows of configs, from the log or from nodes, with secrets hidden; and :func:`check`: whether a value is valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.metadata.config_types import LISTENER_PREFIX, NEWEST, TABLE, known_key, known_types
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
    from kshell.engine.result import Row
    from kshell.metadata.redaction import Redaction
    from kshell.metadata.values import Entry

_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
ANYTHING = "*"
"""The rule of ``config_types`` that allows any value."""
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)
_SELECTORS = {
    "client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
}  # fmt: skip
"""What a subscription to client metrics can select clients by (KIP-714)."""
BROKER_LOGGER = "BROKER_LOGGER"
"""The resource type whose "configs" are the levels of loggers: their names are not config keys."""
LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""The levels of loggers that Kafka accepts (``LogLevelConfig``), in this case; it refuses OFF."""


class _Validator(NamedTuple):
    """A rule that Kafka has as code. ``fits`` gets a value of the right type."""

    expected: str
    fits: Callable[[str], bool]


def _is_throttled(value: str) -> bool:
    """Whether a value is ``*``, or a list of ``partition:broker`` (``ThrottledReplicaListValidator``)."""
    parts = [part.strip() for part in value.split(",")]
    return "".join(parts) == "*" or all(map(_THROTTLED.fullmatch, parts))


def _is_selection(value: str) -> bool:
    """Whether a value is a list of ``selector=pattern`` (``ClientMetricsConfigs``). Java's patterns are not checked."""
    pairs = [part.strip().rstrip("=").split("=") for part in value.split(",") if value.strip()]
    return all(len(pair) == 2 and pair[0].strip() in _SELECTORS and pair[1] for pair in pairs)


_GZIP_LEVEL = _Validator("-1, or 1 to 9", lambda value: int(value) == -1 or 1 <= int(value) <= 9)
_THROTTLED_REPLICAS = _Validator("*, or a list of PARTITION:BROKER", _is_throttled)
_VALIDATORS = {
    ("TOPIC", "compression.gzip.level"): _GZIP_LEVEL,
    ("BROKER", "compression.gzip.level"): _GZIP_LEVEL,
    ("TOPIC", "leader.replication.throttled.replicas"): _THROTTLED_REPLICAS,
    ("TOPIC", "follower.replication.throttled.replicas"): _THROTTLED_REPLICAS,
    ("CLIENT_METRICS", "interval.ms"): _Validator("100 to 3600000", lambda value: 100 <= int(value) <= 3_600_000),
    ("CLIENT_METRICS", "match"): _Validator("a list of SELECTOR=PATTERN, as client_id=a.*", _is_selection),
}
"""(resource type, key) -> the rule; ``config_types`` has no rule for these keys."""


class Verdict(NamedTuple):
    """Whether a value is valid for a config of this type.

    ``expected`` says which values are; ``reason`` why this one is not, or what to know although it is.
    """

    valid: bool
    type: str | None
    expected: str | None
    reason: str | None


def check(resource_type: str, key: str, value: str, reported: ConfigEntry | None) -> Verdict:
    """Check a config's value. ``reported`` is what a node says of the key, if one was asked and knows it."""
    if resource_type == BROKER_LOGGER:  # any name may be that of a logger
        is_level = value in LOG_LEVELS
        return Verdict(is_level, "STRING", f"one of {', '.join(LOG_LEVELS)}", None if is_level else "not a level")
    definition = known_key(resource_type, key)
    kind = (
        reported.type if reported is not None and reported.type != UNKNOWN else definition.type if definition else None
    )
    if reported is None and definition is None:
        return Verdict(False, None, None, f"no Kafka from 3.3 to {NEWEST} has such a config for a {resource_type}")
    rules = list(definition.rules) if definition else []
    if reported is not None and reported.valid_values is not None:
        rules = [("in:" if reported.case_sensitive else "IN:") + ",".join(reported.valid_values)]
    # Where a node reports another type than Kafka declares, Kafka's rule does not apply.
    validator = _VALIDATORS.get((resource_type, key)) if definition is not None and definition.type == kind else None
    expected = validator.expected if validator else (_format_rule(rules[0]) or None) if rules else None
    # For the keys of one listener, isReadOnly is wrong: Kafka can change them at run time.
    is_of_broker = resource_type == "BROKER" and not key.startswith(LISTENER_PREFIX)
    if reported is not None and reported.is_read_only and is_of_broker:
        return Verdict(False, kind, expected, "it cannot be changed while the broker runs (isReadOnly)")
    reason = _type_fault(value, kind)
    if reason is not None:
        return Verdict(False, kind, expected, reason)
    if validator is not None and not validator.fits(value):
        return Verdict(False, kind, expected, f"not {expected}")
    fits = [_fits(value, kind, rule) for rule in rules]
    if not rules or fits[0]:
        return Verdict(True, kind, expected, None)
    if any(fits):
        return Verdict(True, kind, expected, f"only earlier releases take it: {NEWEST} takes {expected}")
    return Verdict(False, kind, expected, f"not {expected}")


def _type_fault(value: str, kind: str | None) -> str | None:
    """Return why a value does not have the type ``kind``; ``None`` if it does."""
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
            return {part.upper() for part in parts} <= {choice.upper() for choice in listed.split(",")}
        return set(parts) <= set(listed.split(","))
    if kind != "DOUBLE" and kind not in _BITS:
        return True  # the node reports another type than Kafka declares: a range of numbers does not apply
    low, _, high = rule.partition("..")
    number = float(text.rstrip("fFdD").replace("Infinity", "inf")) if kind == "DOUBLE" else int(text)
    return not ((low and number < float(low)) or (high and number > float(high)))  # NaN is in every range, as in Kafka


def _format_rule(rule: str) -> str:
    """Write a rule for users: ``1 to 100``, ``one of a, b``; empty for any value."""
    name, colon, listed = rule.partition(":")
    if rule == ANYTHING:
        return ""
    if colon:
        choices = ", ".join(listed.split(","))
        return {"list": f"a list of {choices}", "IN": f"one of {choices} (in any case)"}.get(name, f"one of {choices}")
    low, _, high = rule.partition("..")
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"{high} or less" if high else ""


def valid_values(resource_type: str, key: str) -> str | None:
    """Return the newest release's rule for users; ``None`` if any value is valid, or if nothing is known."""
    if (validator := _VALIDATORS.get((resource_type, key))) is not None:
        return validator.expected
    definition = known_key(resource_type, key)
    return (_format_rule(definition.rules[0]) or None) if definition and definition.rules else None


_NUMBERS = ("INT", "SHORT", "LONG")


def rows_of_log(
    configs: Mapping[Resource, Mapping[str, Entry[str]]],
    resources: Iterable[Resource],
    redaction: Redaction,
    *,
    type: str = "",
) -> Iterator[Row]:
    """Yield the configs that the log has: keys and values only. ``type`` is shown in place of the type kshell knows."""
    for resource in resources:
        kind, name = resource
        for key, entry in sorted(configs.get(resource, {}).items()):
            definition = known_key(kind, key)
            yield {
                "resourceType": kind,
                "resourceName": name,
                "name": key,
                "value": redaction.config(kind, key, entry.value),
                "source": dynamic_source(resource),
                "isSensitive": definition.type == "PASSWORD" if definition else None,
                "isReadOnly": None,
                "synonyms": None,
                "type": type or (definition.type if definition else None),
                "documentation": None,
            }


def rows_of_node(described: Described, redaction: Redaction, *, overridden: bool, effective: bool) -> Iterator[Row]:
    """Yield what a node reports: configs set at the resource; ``overridden``: all but defaults; ``effective``: all."""
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
                "synonyms": [synonym_row(kind, entry, synonym, redaction) for synonym in entry.synonyms],
                "type": entry.type,
                "documentation": entry.documentation,
            }


def value_of(kind: str, entry: ConfigEntry, value: str | None, redaction: Redaction) -> str | None:
    """Return a config's value; redacted if the node calls it sensitive, or kshell does not know it as harmless."""
    if entry.is_sensitive:
        return REDACTED
    return value if kind == BROKER_LOGGER else redaction.config(kind, entry.name, value)


def synonym_row(kind: str, entry: ConfigEntry, synonym: Synonym, redaction: Redaction) -> Row:
    """Return a config's synonym, whose key may be a broker's (``log.retention.ms``): then the broker's rules apply."""
    value: str | None = REDACTED
    if not entry.is_sensitive:
        redacted = [
            redaction.config(resource_type, synonym.name, synonym.value)
            for resource_type in dict.fromkeys((kind, "BROKER"))
        ]
        config_types = [known_types(resource_type).get(synonym.name) for resource_type in TABLE]
        secret = any(key.is_password for key in config_types if key is not None) and not redaction.show_secrets
        value = REDACTED if secret else next((text for text in redacted if text != REDACTED), redacted[0])
    return {"name": synonym.name, "value": value, "source": synonym.source}


def readable(row: Row) -> Row:
    """Return a row for users, with the value converted to the config's type so that it is coloured as such."""
    cells = dict(row, value=typed(row["value"], row["type"]))
    if not row["resourceName"]:
        cells["resourceName"] = "<default>"
    if row["synonyms"] is not None:
        cells["synonyms"] = [
            f"{synonym['source']}:{synonym['name']}={_dash_if_none(synonym['value'])}" for synonym in row["synonyms"]
        ]
    return cells


def _dash_if_none(value: str | None) -> str:
    return "-" if value is None else value


def typed(value: str | None, type: str | None) -> Any:
    """Return a config's text as a number or boolean, if it would be written back as the same text."""
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
