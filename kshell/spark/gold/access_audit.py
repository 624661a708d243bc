"""The table ``access_audit``: one row per change of an ACL, a quota, a SCRAM user or a delegation token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.authorizer import EVERYONE, WILDCARD
from kshell.spark.gold.timelines import aggregates
from kshell.spark.gold.timelines.changes import changes, with_found
from kshell.spark.gold.timelines.durations import day_of
from kshell.spark.tables.expectations import at_least, not_null
from kshell.spark.tables.gold_table import CLUSTER, GoldTable, Tables
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = (
    CLUSTER,
    Field("offset", "int64", "the record"),
    Field("ms", "int64", "its time"),
    Field("day", "string", "its day, in UTC"),
    Field("kind", "string", "acl, quota, user (SCRAM credentials) or token"),
    Field(
        "change",
        "string",
        "found (in the snapshot with which what is known begins), added, changed (of a user also"
        " another password), removed",
    ),
    Field(
        "id",
        "string",
        "of an ACL and a token its id, of a quota its entity and key, of a user the name and"
        " mechanism, with a blank between",
    ),
    Field(
        "principal",
        "string",
        "of an ACL whom it is about, of a token its owner, of a user User:NAME; of a quota"
        " User:NAME where its entity has a user, User:<default> for the default one, else null",
    ),
    Field("said", "string", "what it says, in words: `ALLOW User:a READ on TOPIC:orders (LITERAL) from *`"),
    Field(
        "oldValue",
        "string",
        "a quota's limit, a user's iterations, a token's expiryTimestamp before; null if there was none, and for ACLs",
    ),
    Field("newValue", "string", "the same after"),
    Field(
        "isWideOpen",
        "boolean",
        "an ACL that lets everybody (User:*) do more than DESCRIBE and DESCRIBE_CONFIGS on"
        " everything of a type (the name * or empty, or the cluster), or ALL on anything",
    ),
    Field("heldMs", "int64", "of what was changed or removed: how long it had held; else null"),
    Field("isCurrent", "boolean", "whether what it made still holds; false for removed"),
)


_ACL = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
_EVERYTHING = f"acl.resourceName in ('{WILDCARD}', '') or acl.resourceType = 'CLUSTER'"
_WIDE_OPEN = (
    f"acl.permissionType = 'ALLOW' and acl.principal = '{EVERYONE}' and (acl.operation = 'ALL' or"
    f" (({_EVERYTHING}) and acl.operation not in ('DESCRIBE', 'DESCRIBE_CONFIGS')))"
)
"""SQL: whether an ACL is wide open, by the rule of the health check ``wideOpenAcl``."""


def access_audit(tables: Tables) -> DataFrame:
    """List the changes of ACLs, quotas, users and tokens, one row per change."""
    changed = _acls(tables).unionByName(_quotas(tables)).unionByName(_users(tables)).unionByName(_tokens(tables))
    with_origin = with_found(changed, tables["control_records"])
    return aggregates.typed(with_origin.selectExpr("*", f"{day_of('ms')} as day"), FIELDS)


def _row(kind: str, name: str, principal: str, description: str, value: str | None, wide: str = "false") -> list[str]:
    """SQL: a row's columns, from a row of :func:`~.timelines.changes.changes`; ``value``: the field that can change."""
    both = [f"cast({side}.{value} as string)" if value else "cast(null as string)" for side in ("old", "new")]
    return [
        "clusterId",
        "offset",
        "ms",
        f"'{kind}' as kind",
        "change",
        f"{name} as id",
        f"{principal} as principal",
        f"{description} as said",
        f"{both[0]} as oldValue",
        f"{both[1]} as newValue",
        f"{wide} as isWideOpen",
        "heldMs",
        "isCurrent",
    ]


def _acls(tables: Tables) -> DataFrame:
    acls = changes(tables["acls"], ("id",), _ACL, tables["clusters"]).selectExpr("*", "coalesce(new, old) as acl")
    description = (
        "concat(acl.permissionType, ' ', acl.principal, ' ', acl.operation, ' on ', acl.resourceType, ':',"
        " acl.resourceName, ' (', acl.patternType, ') from ', acl.host)"
    )
    wide = f"coalesce({_WIDE_OPEN}, false)"
    return acls.selectExpr(*_row("acl", "id", "acl.principal", description, None, wide))


def _quotas(tables: Tables) -> DataFrame:
    quotas = changes(tables["quotas"], ("name", "key"), ("user", "value"), tables["clusters"]).selectExpr(
        "*", "coalesce(new, old).user as ofUser"
    )
    description = "concat(key, if(new is null, '', concat(' = ', cast(new.value as string))), ' for ', name)"
    return quotas.selectExpr(*_row("quota", "concat(name, ' ', key)", "concat('User:', ofUser)", description, "value"))


def _users(tables: Tables) -> DataFrame:
    users = changes(tables["users"], ("name", "mechanism"), ("iterations",), tables["clusters"])
    description = "concat(mechanism, ' credentials of ', name)"
    return users.selectExpr(
        *_row("user", "concat(name, ' ', mechanism)", "concat('User:', name)", description, "iterations")
    )


def _tokens(tables: Tables) -> DataFrame:
    tokens = changes(tables["tokens"], ("tokenId",), ("owner", "expiryTimestamp"), tables["clusters"]).selectExpr(
        "*", "coalesce(new, old).owner as owner"
    )
    description = "concat('delegation token of ', owner)"
    return tokens.selectExpr(*_row("token", "tokenId", "owner", description, "expiryTimestamp"))


GOLD = GoldTable(
    "access_audit",
    "ACLs, quotas, users and tokens: added, changed, removed, wide open",
    FIELDS,
    ("acls", "quotas", "users", "tokens", "control_records", "clusters"),
    access_audit,
    expect=(*not_null("clusterId", "offset", "kind", "change"), *at_least(0, "heldMs")),
)
