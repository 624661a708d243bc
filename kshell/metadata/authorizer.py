"""What a cluster's ACLs allow: the decision of Kafka's ``StandardAuthorizer``, and the rule that made it.

Deny goes before allow. An entry holds for a resource by its name, by a prefix of it, or (literal ``*``) for all of its
type; for a principal by its name or as ``User:*``; for a host by its address, by a range that the address is in (Kafka
4.4 and later) or as ``*``. Allowing READ, WRITE, DELETE or ALTER allows DESCRIBE as well, and ALTER_CONFIGS allows
DESCRIBE_CONFIGS; denying them denies nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, Acl
from kshell.metadata.host_ranges import host_range
from kshell.metadata.values import Entry

RANGES_FROM = 32
"""The metadata.version (4.4-IV1) from which on ACLs for ranges can be added (KIP-1276).

The authorizer does not look at it: a server of 4.4 goes by ranges at every level, one before compares their texts.
"""
WILDCARD = "*"
EVERYONE = "User:*"
IMPLIED = {
    "DESCRIBE": frozenset({"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"}),
    "DESCRIBE_CONFIGS": frozenset({"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
}
"""Operation -> the operations whose ALLOW is an ALLOW of it."""

SUPER_USER, ACL, DEFAULT, NO_ACL = "superUser", "acl", "default", "noAcl"
"""What decided: the list of super users, an entry, no entry among those of the resource, no entry for it at all."""


class Request(NamedTuple):
    """Who wants to do what on what. ``host`` is an IP address as Java writes it; ``None``: any that no entry names."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str
    host: str | None = None


class Decision(NamedTuple):
    """``rule`` is one of the names above; ``acl_id`` and ``acl`` are the entry that decided, if one did."""

    allowed: bool
    rule: str
    acl_id: Any = None
    acl: Acl | None = None


def decide(
    acls: Mapping[Any, Entry[Acl]],
    request: Request,
    *,
    super_users: Collection[str] = (),
    allow_if_no_acl: bool = False,
    ranges: bool = True,
) -> Decision:
    """Whether a broker would allow it, and by which rule.

    ``super_users`` and ``allow_if_no_acl`` are ``super.users`` and ``allow.everyone.if.no.acl.found`` of the servers'
    properties, which no log holds. Of several entries that allow, the one that Kafka's own audit log names decides.

    Args:
        acls: The entries by their ids.
        request: The question.
        super_users: Principals that may do anything.
        allow_if_no_acl: The answer where no entry is about the resource.
        ranges: Whether the broker takes hosts such as ``10.1.0.0/16`` for ranges; before Kafka 4.4 it does not.
    """
    if request.principal in super_users:
        return Decision(True, SUPER_USER)
    allowing: tuple[Any, Acl] | None = None
    found = False
    for acl_id, acl in _of_resource(acls, request):
        found = True
        if not _is_about(acl, request, ranges):
            continue
        if acl.permission_type != "ALLOW":
            return Decision(False, ACL, acl_id, acl)
        allowing = acl_id, acl
    if allowing is not None:
        return Decision(True, ACL, *allowing)
    return Decision(False, DEFAULT) if found else Decision(allow_if_no_acl, NO_ACL)


def other_hosts(acls: Mapping[Any, Entry[Acl]], request: Request) -> list[str]:
    """The hosts and ranges named by entries that would otherwise apply to the request, sorted."""
    applying = (acl for _, acl in _of_resource(acls, request) if _is_about(acl, request._replace(host=acl.host), False))
    return sorted({acl.host for acl in applying if acl.host not in (WILDCARD, request.host)})


def covers(acl: Acl, resource_type: str, resource_name: str) -> bool:
    """Whether the entry is about the resource."""
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == "LITERAL":
        if acl.resource_name == WILDCARD:
            # Kafka takes the wildcard for a prefix that does not match where the name only begins with an asterisk.
            return resource_name == WILDCARD or not resource_name.startswith(WILDCARD)
        return acl.resource_name == resource_name
    return acl.pattern_type == "PREFIXED" and resource_name.startswith(acl.resource_name)


def _of_resource(acls: Mapping[Any, Entry[Acl]], request: Request) -> Iterable[tuple[Any, Acl]]:
    """The entries about the resource in Kafka's order: longer names first, the wildcard's last."""
    kind, name = request.resource_type, request.resource_name
    found = [(key, entry.value) for key, entry in acls.items() if covers(entry.value, kind, name)]
    return sorted(found, key=lambda one: _order(one[1], name))


def _is_about(acl: Acl, request: Request, ranges: bool) -> bool:
    """Whether the entry, which covers the resource, holds for the principal, the host and the operation."""
    if acl.principal not in (request.principal, EVERYONE) or not _is_from(acl.host, request.host, ranges):
        return False
    if acl.operation in ("ALL", request.operation):
        return True
    return acl.permission_type == "ALLOW" and acl.operation in IMPLIED.get(request.operation, ())


def _is_from(host: str, address: str | None, ranges: bool) -> bool:
    """Whether the host of an entry stands for the address; ``None`` is an address that no entry names."""
    if host in (WILDCARD, address):
        return True
    addresses = host_range(host) if ranges else None
    return addresses is not None and address is not None and addresses.covers(address)


_PATTERN_CODES = {name: code for code, name in PATTERN_TYPES.items()}
_OPERATION_CODES = {name: code for code, name in OPERATIONS.items()}
_PERMISSION_CODES = {name: code for code, name in PERMISSION_TYPES.items()}


def _order(acl: Acl, name: str) -> tuple[Any, ...]:
    """The place of an entry among those that cover ``name`` (``StandardAcl.compareTo``).

    All their names are prefixes of it, so by length is by name; the wildcard is looked up in a second pass.
    """
    wildcard = acl.resource_name == WILDCARD and acl.pattern_type == "LITERAL" and name != WILDCARD
    return (
        wildcard,
        -len(acl.resource_name),
        _PATTERN_CODES.get(acl.pattern_type, 0),
        _OPERATION_CODES.get(acl.operation, 0),
        acl.principal.encode("utf-16-be", "surrogatepass"),
        acl.host.encode("utf-16-be", "surrogatepass"),
        _PERMISSION_CODES.get(acl.permission_type, 0),
    )
