"""Ask brokers for ACLs, client quotas, SCRAM users and delegation tokens, and write them into a delta of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kshell.client.nodes import Nodes
from kshell.errors import NodeError, ServerError
from kshell.metadata.delta import Delta
from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, RESOURCE_TYPES, Acl
from kshell.metadata.families.scram import MECHANISMS, ScramCredential
from kshell.metadata.families.tokens import DelegationToken
from kshell.metadata.names import encode_name
from kshell.metadata.partial import MISSING, NOT_AVAILABLE, UNREPORTED
from kshell.metadata.values import enum_name
from kshell.protocol.messages.access import (
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
)
from kshell.protocol.names import error_name
from kshell.sources.brokers.requests import ask

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

_ANY = 1
"""The filter that matches every resource type, pattern type, operation and permission type."""
_SECURITY_DISABLED = 54
_RESOURCE_NOT_FOUND = 91
_PATIENCE = 5.0
"""Seconds for a question whose answer only spares the user a note."""


def _acls_named(name: str | None) -> Message:
    """Return a filter for ACLs of every kind whose resource, principal and host have that name; ``None`` for any."""
    kinds = {"resourceTypeFilter": _ANY, "patternTypeFilter": _ANY, "operation": _ANY, "permissionType": _ANY}
    return kinds | {"resourceNameFilter": name, "principalFilter": name, "hostFilter": name}


def acls(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write every ACL, under a key made of its fields (:func:`acl_key`), as brokers report no ids. Raises NodeError."""
    answer = ask(nodes, DESCRIBE_ACLS, _acls_named(None))
    for resource in answer.body["resources"]:
        for item in resource["acls"]:
            acl = Acl(
                resource_type=enum_name(RESOURCE_TYPES, resource["resourceType"]),
                resource_name=resource["resourceName"],
                pattern_type=enum_name(PATTERN_TYPES, resource["patternType"]),
                principal=item["principal"],
                host=item["host"],
                operation=enum_name(OPERATIONS, item["operation"]),
                permission_type=enum_name(PERMISSION_TYPES, item["permissionType"]),
            )
            delta.put("acls", acl_key(acl), acl, answer.origin)
    delta.table(MISSING)["acls", "byId"] = NOT_AVAILABLE


def has_authorizer(nodes: Nodes) -> bool:
    """Whether brokers may hide things from this principal: not if they have no authorizer, which DescribeAcls says."""
    try:
        ask(nodes, DESCRIBE_ACLS, _acls_named(""), seconds=_PATIENCE)  # no ACL has an empty name
    except ServerError as error:
        return error.code != _SECURITY_DISABLED
    except NodeError:
        pass
    return True


def acl_key(acl: Acl) -> str:
    """The path segment of an ACL whose id is not known: its fields, separated by commas, with ``%2C`` for their own."""
    return ",".join(encode_name(field).replace(",", "%2C") for field in acl)


def quotas(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write every client quota. Raises NodeError."""
    answer = ask(nodes, DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False})
    for entry in answer.body["entries"] or ():
        entity = tuple(sorted(((part["entityType"], part["entityName"]) for part in entry["entity"]), key=repr))
        for value in entry["values"]:
            delta.put_inner("clientQuotas", entity, value["key"], value["value"], answer.origin)


def scram(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write every SCRAM user with its number of iterations; brokers report nothing else. Raises NodeError."""
    # An empty list means all users, as null does; but a broker that refuses null never answers (still so in 4.3.1).
    answer = ask(nodes, DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": []})
    for user in answer.body["results"]:
        if user["errorCode"] and user["errorCode"] != _RESOURCE_NOT_FOUND:
            notes.append(f"{answer.node}: SCRAM user {user['user']}: {error_name(user['errorCode'])}: left out")
        for info in user["credentialInfos"]:
            credential = ScramCredential(UNREPORTED, UNREPORTED, UNREPORTED, info["iterations"])
            mechanism = enum_name(MECHANISMS, info["mechanism"])
            delta.put_inner("scram", mechanism, user["user"], credential, answer.origin)


def tokens(nodes: Nodes, delta: Delta, notes: list[str]) -> None:
    """Write the delegation tokens that the principal may see, without their HMACs. Raises NodeError."""
    answer = ask(nodes, DESCRIBE_DELEGATION_TOKEN, {"owners": None})
    for item in answer.body["tokens"]:
        token = DelegationToken(
            owner=_principal(item, "principal"),
            token_requester=_principal(item, "tokenRequesterPrincipal"),
            renewers=tuple(_principal(renewer, "principal") for renewer in item["renewers"]),
            issue_timestamp=item["issueTimestamp"],
            max_timestamp=item["maxTimestamp"],
            expiry_timestamp=item["expiryTimestamp"],
            token_id=item["tokenId"],
        )
        delta.put("delegationToken", token.token_id, token, answer.origin)


def _principal(item: Message, prefix: str) -> Any:
    """A principal such as ``User:alice``. Versions below 3 of the API do not report who requested a token."""
    if f"{prefix}Type" not in item:
        return UNREPORTED
    return f"{item[f'{prefix}Type']}:{item[f'{prefix}Name']}"
