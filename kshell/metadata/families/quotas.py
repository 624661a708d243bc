"""Client quotas (``ClientQuotasDelta``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.names import encode_entity, encode_name
from kshell.metadata.records import LatestByKey, record
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

Entity = tuple[tuple[str, str | None], ...]
"""(entity type, name) pairs, sorted, that identify whom a quota is for; name ``None`` is the type's default entity."""

_ORDER = {"client-id": 0, "ip": 1, "user": 2}
_LABELS = {"client-id": "clientId"}


def entity_segment(entity: Entity) -> str:
    """Return an entity's path segment: ``clientId(x)_user(y)``, in Kafka's order client id, ip, user."""
    parts = sorted(entity, key=lambda part: (_ORDER.get(part[0], len(_ORDER)), part[0]))
    return "_".join(f"{_LABELS.get(kind, encode_entity(kind))}({encode_entity(name)})" for kind, name in parts)


QUOTAS = family(Family("clientQuotas", ("clientQuotas",), (entity_segment, encode_name), "quota"))


@record(
    14,
    "ClientQuotaRecord",
    "0",
    """
  entity        []EntityData
    entityType  string
    entityName  string?
  key           string
  value         float64
  remove        bool
""",
    LatestByKey("clientQuotas", ("entity", "key"), tombstone="remove"),
)
def client_quota(delta: Delta, data: Message, origin: Origin) -> None:
    """Set or remove one quota of an entity."""
    entity = tuple(sorted(((part["entityType"], part["entityName"]) for part in data["entity"]), key=repr))
    if data["remove"]:
        delta.drop_inner("clientQuotas", entity, data["key"])
    else:
        delta.put_inner("clientQuotas", entity, data["key"], data["value"], origin)
