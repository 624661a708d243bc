"""The tables ``acls``, ``quotas``, ``users`` and ``tokens``: who may do what, and how much of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.engine import tones
from kshell.engine.result import Row
from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, RESOURCE_TYPES
from kshell.metadata.families.quotas import Entity, entity_segment
from kshell.metadata.families.scram import MECHANISMS
from kshell.metadata.image import Image, families
from kshell.metadata.names import entity_name, sort_key
from kshell.metadata.partial import reported_or_none
from kshell.metadata.values import NEWER_ENUM
from kshell.protocol.primitives import Uuid
from kshell.tables.declaration import Field, FieldNames, Table, table
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import PRINCIPAL_NAME, USER_NAME
from kshell.tables.row_counts import each_key

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_RESOURCE_TYPE = Enumeration(RESOURCE_TYPES.values(), NEWER_ENUM)
_PATTERN_TYPE = Enumeration(PATTERN_TYPES.values(), NEWER_ENUM)
_OPERATION = Enumeration(OPERATIONS.values(), NEWER_ENUM)
_PERMISSION_TYPE = Enumeration(PERMISSION_TYPES.values(), NEWER_ENUM)
_MECHANISM = Enumeration(MECHANISMS.values(), NEWER_ENUM)

_ACL_FIELDS = (
    Field("id", "string", "the entry's id, a UUID as Kafka writes it; null from brokers", spare=3),
    Field("resourceType", _RESOURCE_TYPE, "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER"),
    Field("resourceName", "string", "the resource's name or prefix; * for all", spare=-1),
    Field("patternType", _PATTERN_TYPE, "LITERAL or PREFIXED", spare=1, usual="LITERAL"),
    Field("principal", PRINCIPAL_NAME, "whom it is about; User:* for everybody", spare=-1),
    Field("host", "string", "from where; * for anywhere", spare=2, usual="*"),
    Field("operation", _OPERATION, "READ, WRITE, …, ALL", spare=-1),
    Field("permissionType", _PERMISSION_TYPE, "ALLOW or DENY", spare=-1, tone=tones.state),
)
_ACL_ORDER = ("resourceType", "resourceName", "patternType", "principal", "operation", "id")
_QUOTA_FIELDS = (
    Field(
        "user",
        "string",
        "the user's name, <default> for the default user (a user of that name: %3Cdefault>); null if it has no user",
        spare=-1,
    ),
    Field("clientId", "string", "the client id, likewise", spare=-1),
    Field("ip", "string", "the address, likewise", spare=-1),
    Field("key", "string", "what is limited: producer_byte_rate, …", spare=-1),
    Field("value", "float64", "the limit", spare=-1),
    Field("entity", {"*": "string"}, "the entity as Kafka has it: type -> name, null for the default", True),
    Field("name", "string", "the entity's name in the tree, below /image/clientQuotas", True),
)
_USER_FIELDS = (
    Field("name", USER_NAME, "the user's name"),
    Field("mechanism", _MECHANISM, "SCRAM-SHA-256 or SCRAM-SHA-512"),
    Field("iterations", "int32", "iterations of the hash"),
)
_TOKEN_FIELDS = (
    Field("tokenId", "string", "the token's id"),
    Field("owner", "string", "the principal that it speaks for"),
    Field("tokenRequester", "string", "the principal that asked for it", True),
    Field("renewers", ["string"], "other principals that may renew it"),
    Field("issueTimestamp", "int64", "when it was made, in epoch milliseconds", True),
    Field("expiryTimestamp", "int64", "when it ends unless it is renewed, in epoch milliseconds"),
    Field("maxTimestamp", "int64", "when it ends at the latest, in epoch milliseconds"),
)


def acl_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per ACL entry, by resource, principal and id."""
    plain = families()["acls"].plain
    rows = []
    for key, entry in image["acls"].items():
        acl_id = str(key) if isinstance(key, Uuid) else None  # brokers do not report ids
        rows.append({"id": acl_id, **plain(entry.value)})
    yield from sorted(rows, key=lambda row: [row[name] or "" for name in _ACL_ORDER])


def quota_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per quota, by entity as the tree names it."""
    quotas = image["clientQuotas"]
    for entity in sorted(quotas, key=lambda entity: sort_key(entity_segment(entity))):
        of = _parts(entity)
        for key, entry in sorted(quotas[entity].items()):
            yield {**of, "key": key, "value": entry.value, "entity": dict(entity), "name": entity_segment(entity)}


def _parts(entity: Entity) -> JsonObject:
    """Return the three columns for the parts of an entity; ``None`` for a part that it does not have."""
    named = {kind: entity_name(name) for kind, name in entity}
    return {"user": named.get("user"), "clientId": named.get("client-id"), "ip": named.get("ip")}


def user_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per SCRAM credential, by user and mechanism. It has no secret columns."""
    credentials = [
        (name, mechanism, entry.value.iterations)
        for mechanism, users in image["scram"].items()
        for name, entry in users.items()
    ]
    for name, mechanism, iterations in sorted(
        credentials, key=lambda credential: (sort_key(credential[0]), credential[1])
    ):
        yield {"name": name, "mechanism": mechanism, "iterations": reported_or_none(iterations)}


def token_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per delegation token, by its expiry."""
    plain = families()["delegationToken"].plain
    rows = [plain(entry.value) for entry in image["delegationToken"].values()]
    yield from sorted(rows, key=lambda row: (row["expiryTimestamp"], row["tokenId"]))


ACLS_TABLE = table(Table("acls", "the access control entries", _ACL_FIELDS, acl_rows, ("acls",), each_key("acls")))
QUOTAS_TABLE = table(
    Table(
        "quotas",
        "the limits of users, clients and addresses",
        _QUOTA_FIELDS,
        quota_rows,
        ("clientQuotas",),
        each_key("clientQuotas"),
    )
)
USERS_TABLE = table(
    Table("users", "the users with SCRAM credentials", _USER_FIELDS, user_rows, ("scram",), each_key("scram"))
)
TOKENS_TABLE = table(
    Table(
        "tokens",
        "the delegation tokens",
        _TOKEN_FIELDS,
        token_rows,
        ("delegationToken",),
        each_key("delegationToken"),
    )
)
