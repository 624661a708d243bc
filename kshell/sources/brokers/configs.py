"""Ask nodes for configs (DescribeConfigs, KIP-226, KIP-569, KIP-1142), and write the dynamic ones into an image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kshell.client import codes
from kshell.client.connection import Connection
from kshell.client.nodes import Nodes
from kshell.errors import AuthorizationError, NodeError, ServerError, UnsupportedVersionError
from kshell.metadata.delta import Delta
from kshell.metadata.families.configs import RESOURCE_TYPES, Resource, resource_segment
from kshell.metadata.families.topics import NAMES
from kshell.metadata.partial import MISSING, NOT_AVAILABLE
from kshell.metadata.redaction import REDACTED
from kshell.metadata.values import enum_name
from kshell.protocol.messages.configs import DESCRIBE_CONFIGS, LIST_CONFIG_RESOURCES
from kshell.protocol.schema import Versions
from kshell.sources.brokers.config_entries import SOURCES, TYPES, UNKNOWN, ConfigEntry, Described, Synonym, own_setting
from kshell.sources.brokers.requests import ask, ask_at

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

TYPE_NUMBERS = {name: code for code, name in RESOURCE_TYPES.items()}

_AT_ONCE = 200
"""Resources in one request: an answer has some 10 kB for each, with synonyms and documentation 30 kB."""
_ALL_TYPES = Versions(1, None)
"""Version 0 lists client metrics only."""


def describe(
    connection: Connection, resources: Iterable[Resource], *, synonyms: bool = False, documentation: bool = False
) -> Iterator[Described]:
    """Ask a node for the configs of resources, in several requests if need be.

    Raises:
        NodeError: the request failed; an error of a single resource is in its :class:`Described`.
    """
    rest = iter(resources)
    while batch := list(islice(rest, _AT_ONCE)):
        wanted = [
            {"resourceType": TYPE_NUMBERS[kind], "resourceName": name, "configurationKeys": None}
            for kind, name in batch
        ]
        message = {"resources": wanted, "includeSynonyms": synonyms, "includeDocumentation": documentation}
        answer = ask_at(connection, DESCRIBE_CONFIGS, message)
        for result in answer.body["results"]:
            resource = (enum_name(RESOURCE_TYPES, result["resourceType"]), result["resourceName"])
            code = result["errorCode"]
            failure = codes.failure(answer.node, code, DESCRIBE_CONFIGS.name, result["errorMessage"]) if code else None
            if isinstance(failure, AuthorizationError):
                failure.hint = _required_acl(resource)
            yield Described(resource, tuple(map(_entry, result["configs"])), failure, answer.origin)


def _entry(item: Message) -> ConfigEntry:
    validator = item.get("validator")
    return ConfigEntry(
        name=item["name"],
        value=item["value"],
        source=SOURCES.get(item["configSource"], UNKNOWN),
        is_sensitive=item["isSensitive"],
        is_read_only=item["readOnly"],
        synonyms=tuple(Synonym(s["name"], s["value"], SOURCES.get(s["source"], UNKNOWN)) for s in item["synonyms"]),
        type=_type(item),
        documentation=item.get("documentation"),
        valid_values=tuple(validator["values"]) if validator else None,
        case_sensitive=validator["caseSensitive"] if validator else True,
    )


def _type(item: Message) -> str:
    """The config's type: a number since KIP-569, a name in its earlier draft; ``UNKNOWN`` for any other."""
    if "configType" in item:
        return TYPES.get(item["configType"], UNKNOWN)
    type_name = str(item.get("type") or "").upper()
    return type_name if type_name in TYPES.values() else UNKNOWN


def own_settings(described: Described) -> Iterator[tuple[str, str]]:
    """(key, value) of each config that was set for exactly this resource; of sensitive ones the value is never taken.

    A config may get its value from another key (``log.retention.hours`` from ``log.retention.ms``), so the synonyms
    are read: they say which key was set. Their values are as the user wrote them, not as the node interprets them.
    """
    for entry in described.entries:
        setting = own_setting(described.resource, entry)
        if setting is not None and (entry.is_sensitive or setting.value is not None):
            yield entry.name, REDACTED if entry.is_sensitive or setting.value is None else setting.value


def write(delta: Delta, described: Iterable[Described], notes: list[str]) -> None:
    """Write the dynamic configs of resources into an image; refused resources are entered as missing, with a note."""
    refused: dict[str, list[Described]] = {}
    for resource in described:
        if resource.failure is not None:
            sentence = f"{NOT_AVAILABLE}: {resource.failure.api}: {resource.failure.reason}{_needs(resource.failure)}"
            delta.table(MISSING)["configs", resource_segment(resource.resource)] = sentence
            refused.setdefault(f"{resource.resource[0]} {resource.failure.reason}", []).append(resource)
            continue
        for key, value in own_settings(resource):
            delta.put_inner("configs", resource.resource, key, value, resource.origin)
    for first, *rest in refused.values():
        several = f" and {len(rest)} more" if rest else ""
        assert first.failure is not None
        needs = _needs(first.failure)
        notes.append(f"configs of {resource_segment(first.resource)}{several}: {first.failure}{needs}")


def _required_acl(resource: Resource) -> str:
    """The hint that names the ACL that a principal lacks to describe the configs of a resource."""
    kind, name = resource
    where = f"{kind}:{name}" if kind in ("TOPIC", "GROUP") else "CLUSTER:kafka-cluster"
    return f"the principal needs DESCRIBE_CONFIGS on {where}"


def _needs(failure: NodeError) -> str:
    """The ACL that is missing, in brackets, if that is why the node refused; else an empty text."""
    return f" ({failure.hint})" if isinstance(failure, AuthorizationError) else ""


def configs(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write the configs that any broker knows: of topics, of groups, of client metrics, and the brokers' defaults.

    Raises NodeError. A broker's own configs are only known to itself (:mod:`kshell.sources.brokers.registrations`).
    """
    resources = [("BROKER", ""), *(("TOPIC", name) for name in delta.peek(NAMES)), *_listed(nodes, delta, notes)]
    existing = (resource for resource in describe(nodes.any(), resources) if not _is_deleted(resource))
    write(delta, existing, notes)


_UNKNOWN_TOPIC = 3


def _is_deleted(described: Described) -> bool:
    """Whether the resource is a topic that was deleted since the topics were listed."""
    return isinstance(described.failure, ServerError) and described.failure.code == _UNKNOWN_TOPIC


def _listed(nodes: Nodes, delta: Delta, notes: list[str]) -> list[Resource]:
    """The groups and client metrics with configs; what cannot be listed is entered as missing, with the reason."""
    connection = nodes.any()
    missing = delta.table(MISSING)
    try:
        if connection.offers(LIST_CONFIG_RESOURCES, 1):
            wanted = {"resourceTypes": [TYPE_NUMBERS["CLIENT_METRICS"], TYPE_NUMBERS["GROUP"]]}
            answer = ask(nodes, LIST_CONFIG_RESOURCES, wanted, _ALL_TYPES)
        elif connection.offers(LIST_CONFIG_RESOURCES):
            answer = ask(nodes, LIST_CONFIG_RESOURCES, {})
            missing["configs", "GROUP"] = f"{NOT_AVAILABLE}: brokers list groups with configs only from Kafka 4.1 on"
        else:
            return []  # neither kind exists below 3.7
    except (AuthorizationError, ServerError, UnsupportedVersionError) as error:
        acl_hint = f" ({error.hint})" if error.hint else ""
        for kind in ("CLIENT_METRICS", "GROUP"):
            missing["configs", kind] = f"{NOT_AVAILABLE}: {error.api}: {error.reason}{acl_hint}"
        notes.append(f"configs of groups and client metrics: {error.message}{acl_hint}")
        return []
    listed = [
        (enum_name(RESOURCE_TYPES, item.get("resourceType", TYPE_NUMBERS["CLIENT_METRICS"])), item["resourceName"])
        for item in answer.body["configResources"]
    ]
    if unknown := sorted({kind for kind, _ in listed if kind not in TYPE_NUMBERS}):
        notes.append(
            f"{answer.node}: ListConfigResources names resources of types that kshell does not know"
            f" ({', '.join(unknown)}): their configs are left out"
        )
    return [(kind, name) for kind, name in listed if kind in TYPE_NUMBERS]
