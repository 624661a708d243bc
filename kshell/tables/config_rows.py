"""Rows of configs: as a log holds them, or as nodes tell them, without their secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kshell.metadata.config_keys import SENSITIVE
from kshell.metadata.families.configs import Resource
from kshell.metadata.redaction import REDACTED
from kshell.sources.brokers.config_entries import (
    DEFAULT,
    UNKNOWN,
    Described,
    Entry,
    Synonym,
    dynamic_source,
    own_setting,
)
from kshell.tables.config_check import known_key

if TYPE_CHECKING:
    from kshell.metadata.redaction import Redaction

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


def value_of(kind: str, entry: Entry, value: str | None, redaction: Redaction) -> str | None:
    """A config's value; a sensitive one is not told, and a key that nobody knows is hidden."""
    if entry.is_sensitive:
        return REDACTED
    return value if kind == _LOGGER else redaction.config(kind, entry.name, value)


def synonym_row(kind: str, entry: Entry, synonym: Synonym, redaction: Redaction) -> Row:
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
