"""Access control lists (ACLs): their records and values (``AclsDelta``, ``StandardAcl``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.records import LatestByKey, ReplayError, record
from kshell.metadata.values import Origin, enum_name

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

ACLS = family(Family("acls", ("acls", "byId"), (str,), "acl"))

RESOURCE_TYPES = {
    0: "UNKNOWN", 1: "ANY", 2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN",
    7: "USER",
}  # fmt: skip
PATTERN_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {
    0: "UNKNOWN", 1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE",
    9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip
PERMISSION_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}


class Acl(NamedTuple):
    """One ACL: a principal from a host may, or may not, do an operation on resources of a name or prefix."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


@record(
    18,
    "AccessControlEntryRecord",
    "0",
    """
  id              uuid
  resourceType    int8
  resourceName    string
  patternType     int8
  principal       string
  host            string
  operation       int8
  permissionType  int8
""",
    LatestByKey("acls", ("id",)),
)
def access_control_entry(delta: Delta, data: Message, origin: Origin) -> None:
    """Add an ACL under its id. ACLs are never changed, only added and removed."""
    acl = Acl(
        resource_type=enum_name(RESOURCE_TYPES, data["resourceType"]),
        resource_name=data["resourceName"],
        pattern_type=enum_name(PATTERN_TYPES, data["patternType"]),
        principal=data["principal"],
        host=data["host"],
        operation=enum_name(OPERATIONS, data["operation"]),
        permission_type=enum_name(PERMISSION_TYPES, data["permissionType"]),
    )
    delta.put("acls", data["id"], acl, origin)


@record(
    19,
    "RemoveAccessControlEntryRecord",
    "0",
    "  id  uuid",
    LatestByKey("acls", ("id",), tombstone=True, must_exist=True),
)
def remove_access_control_entry(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove an ACL. One that does not exist is an error, as in Kafka."""
    if not delta.drop("acls", data["id"]):
        raise ReplayError(f"there is no ACL with id {data['id']}")
