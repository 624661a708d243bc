"""Configs as nodes report them in DescribeConfigs (KIP-226, KIP-569): their values, sources, types and synonyms."""

from __future__ import annotations

from typing import NamedTuple

from kshell.errors import NodeError
from kshell.metadata.families.configs import Resource
from kshell.metadata.values import NEWER_ENUM, Origin

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG", 8: "DYNAMIC_GROUP_CONFIG",
}  # fmt: skip
"""``org.apache.kafka.clients.admin.ConfigEntry.ConfigSource`` by its number on the wire."""
TYPES = {
    1: "BOOLEAN", 2: "STRING", 3: "INT", 4: "SHORT", 5: "LONG", 6: "DOUBLE", 7: "LIST", 8: "CLASS", 9: "PASSWORD",
}  # fmt: skip
"""``org.apache.kafka.clients.admin.ConfigEntry.ConfigType`` by its number on the wire."""
UNKNOWN = "UNKNOWN"
_DYNAMIC = "DYNAMIC_{}_CONFIG"
DEFAULT = "DEFAULT_CONFIG"


class Synonym(NamedTuple):
    """A place that a config's value may come from; the first that is set wins. A sensitive ``value`` is ``None``."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    """One config as a node reports it. ``value`` is ``None`` if it is sensitive or unset.

    ``valid_values``, and whether they are ``case_sensitive``, are only reported by the earlier draft of KIP-569.
    """

    name: str
    value: str | None
    source: str
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[Synonym, ...]
    type: str
    documentation: str | None
    valid_values: tuple[str, ...] | None = None
    case_sensitive: bool = True


class Described(NamedTuple):
    """The configs of one resource, or, in ``failure``, why the node did not report them."""

    resource: Resource
    entries: tuple[ConfigEntry, ...]
    failure: NodeError | None
    origin: Origin


def dynamic_source(resource: Resource) -> str:
    """The config source of values that were set for exactly this resource."""
    kind, name = resource
    return "DYNAMIC_DEFAULT_BROKER_CONFIG" if kind == "BROKER" and not name else _DYNAMIC.format(kind)


NEWER_SOURCE = tuple(_DYNAMIC.format(kind) for kind in NEWER_ENUM)
"""The config source of values of resources whose type no release defines; ``{}`` stands for the type's number."""


def own_setting(resource: Resource, entry: ConfigEntry) -> Synonym | None:
    """The value that was set for the entry at exactly this resource; ``None`` if its value comes from elsewhere."""
    source = dynamic_source(resource)
    if entry.synonyms:
        return next((s for s in entry.synonyms if s.source == source and s.name == entry.name), None)
    return Synonym(entry.name, entry.value, source) if entry.source == source else None
