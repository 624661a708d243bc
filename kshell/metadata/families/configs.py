"""Dynamic configs of resources (``ConfigurationsDelta``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.names import encode_name
from kshell.metadata.records import LatestByKey, record
from kshell.metadata.values import Origin, enum_name

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

TOPIC_CONFIG = 2
"""The code of resource type ``TOPIC``."""
RESOURCE_TYPES = {TOPIC_CONFIG: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""Code -> name of a resource type (``org.apache.kafka.common.config.ConfigResource.Type``)."""

Resource = tuple[str, str]
"""(type, name) of a config resource; the name ``""`` is the type's default resource."""


def resource_segment(resource: Resource) -> str:
    """Return a resource's path segment: ``TOPIC:orders``; for the default resource the type alone."""
    kind, name = resource
    return f"{kind}:{encode_name(name)}" if name else kind


CONFIGS = family(
    Family(
        "configs",
        ("configs",),
        (resource_segment, encode_name),
        "config",
        config_key=lambda keys: (keys[0][0], keys[1]),
    )
)


@record(
    4,
    "ConfigRecord",
    "0",
    """
  resourceType  int8
  resourceName  string
  name          string
  value         string?  secret:config
""",
    LatestByKey("configs", ("resourceType", "resourceName", "name"), above=2, tombstone="value"),
)
def config(delta: Delta, data: Message, origin: Origin) -> None:
    """Set a config of a resource; a null value deletes it."""
    resource = (enum_name(RESOURCE_TYPES, data["resourceType"]), data["resourceName"])
    if data["value"] is None:
        delta.drop_inner("configs", resource, data["name"])
    else:
        delta.put_inner("configs", resource, data["name"], data["value"], origin)
