"""The tables ``acls``, ``users`` (their SCRAM credentials) and ``tokens`` (delegation tokens)."""

from __future__ import annotations

from kshell.metadata.families.acls import OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, RESOURCE_TYPES
from kshell.metadata.families.scram import MECHANISMS
from kshell.spark.silver.declaration import SilverTable, silver
from kshell.spark.silver.expressions import enum_name_sql, record_fields_sql
from kshell.spark.silver.versions import set_and_removed, versions, whole_states
from kshell.tables.versions import recorded_fields

_ACL, _REMOVED_ACL = "ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"
_CREDENTIAL, _REMOVED_CREDENTIAL = "USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"
_TOKEN, _REMOVED_TOKEN = "DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"
_CODES = {
    "resourceType": RESOURCE_TYPES,
    "patternType": PATTERN_TYPES,
    "operation": OPERATIONS,
    "permissionType": PERMISSION_TYPES,
}
_TOKEN_FIELDS = {"tokenRequester": "requester", "expiryTimestamp": "expirationTimestamp"}
"""Column -> the field of the record, where their names differ."""


def _acls(table: SilverTable) -> str:
    """Build the query: one row per ACL. ACLs are added and removed by id, and never change."""
    expressions = {field.name: f"said.{field.name}" for field in recorded_fields("acls")}
    expressions |= {name: enum_name_sql(codes, expressions[name]) for name, codes in _CODES.items()}
    return set_and_removed(table, _ACL, expressions, _REMOVED_ACL)


def _users(table: SilverTable) -> str:
    """Build the query: one row per version of a credential. As salt and keys are hidden, each new one is a version."""
    expressions = {
        "name": "said.name",
        "mechanism": enum_name_sql(MECHANISMS, "said.mechanism"),
        "iterations": "said.iterations",
    }
    payload = record_fields_sql(_CREDENTIAL, "name", "mechanism", "iterations")
    parts = whole_states(table, payload, expressions, is_removed=f"type = '{_REMOVED_CREDENTIAL}'", new="true")
    return f"WITH {parts} {versions('bounded', table)}"


def _tokens(table: SilverTable) -> str:
    """Build the query: one row per version of a token. A renewal begins a new version."""
    expressions = {
        field.name: f"said.{_TOKEN_FIELDS.get(field.name, field.name)}" for field in recorded_fields("tokens")
    }
    return set_and_removed(table, _TOKEN, expressions, _REMOVED_TOKEN)


TABLES = (
    silver("acls", "the access control entries", ("id",), (_ACL, _REMOVED_ACL), _acls),
    silver(
        "users",
        "the users with SCRAM credentials",
        ("name", "mechanism"),
        (_CREDENTIAL, _REMOVED_CREDENTIAL),
        _users,
    ),
    silver("tokens", "the delegation tokens", ("tokenId",), (_TOKEN, _REMOVED_TOKEN), _tokens),
)
