"""The table ``access_audit``: one row per change of an ACL, a quota, a SCRAM user or a delegation token."""

from __future__ import annotations

from kshell.metadata.authorizer import EVERY_NAME, EVERYONE
from kshell.spark.gold.timelines.changes import changes, with_found
from kshell.spark.gold.timelines.durations import day_of
from kshell.spark.tables.expectations import at_least, not_null
from kshell.spark.tables.gold_table import CLUSTER, GoldTable
from kshell.tables.declaration import Field

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
        " everything of a type (the name *, the empty prefix, or the cluster), or ALL on anything",
    ),
    Field("heldMs", "int64", "of what was changed or removed: how long it had held; else null"),
    Field("isCurrent", "boolean", "whether what it made still holds; false for removed"),
)


_ACL = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
_EVERY_NAME = ", ".join(f"('{pattern}', '{name}')" for pattern, name in EVERY_NAME)
_EVERYTHING = f"(entry.patternType, entry.resourceName) IN ({_EVERY_NAME}) OR entry.resourceType = 'CLUSTER'"
_WIDE_OPEN = (
    f"entry.permissionType = 'ALLOW' AND entry.principal = '{EVERYONE}' AND (entry.operation = 'ALL' OR"
    f" (({_EVERYTHING}) AND entry.operation NOT IN ('DESCRIBE', 'DESCRIBE_CONFIGS')))"
)
"""SQL: whether an ACL is wide open, by the rule of the health check ``wideOpenAcl``."""


def _changes(
    kind: str,
    table: str,
    keys: tuple[str, ...],
    values: tuple[str, ...],
    *,
    named: str,
    principal: str,
    said: str,
    changing: str = "",
    wide: str = "false",
) -> str:
    """SQL: the rows of one kind.

    ``named``, ``principal``, ``said`` and ``wide`` are expressions for the columns ``id``, ``principal``, ``said`` and
    ``isWideOpen``; ``entry`` has the last values. ``changing``: the value that can change.
    """
    both = [f"cast({side}.{changing} AS string)" if changing else "cast(NULL AS string)" for side in ("old", "new")]
    return f"""
  SELECT clusterId, offset, ms, '{kind}' AS kind, change, {named} AS id, {principal} AS principal, {said} AS said,
    {both[0]} AS oldValue, {both[1]} AS newValue, {wide} AS isWideOpen, heldMs, isCurrent
  FROM (SELECT *, coalesce(new, old) AS entry FROM ({changes(f"{{{table}}}", keys, values)}))"""


_ACLS = _changes(
    "acl",
    "acls",
    ("id",),
    _ACL,
    named="id",
    principal="entry.principal",
    said="concat(entry.permissionType, ' ', entry.principal, ' ', entry.operation, ' on ', entry.resourceType, ':',"
    " entry.resourceName, ' (', entry.patternType, ') from ', entry.host)",
    wide=f"coalesce({_WIDE_OPEN}, false)",
)
_QUOTAS = _changes(
    "quota",
    "quotas",
    ("name", "key"),
    ("user", "value"),
    named="concat(name, ' ', key)",
    principal="concat('User:', entry.user)",
    said="concat(key, if(new IS NULL, '', concat(' = ', cast(new.value AS string))), ' for ', name)",
    changing="value",
)
_USERS = _changes(
    "user",
    "users",
    ("name", "mechanism"),
    ("iterations",),
    named="concat(name, ' ', mechanism)",
    principal="concat('User:', name)",
    said="concat(mechanism, ' credentials of ', name)",
    changing="iterations",
)
_TOKENS = _changes(
    "token",
    "tokens",
    ("tokenId",),
    ("owner", "expiryTimestamp"),
    named="tokenId",
    principal="entry.owner",
    said="concat('delegation token of ', entry.owner)",
    changing="expiryTimestamp",
)
_CHANGES = f"({' UNION ALL '.join((_ACLS, _QUOTAS, _USERS, _TOKENS))})"
_QUERY = f"""
SELECT *, {day_of("ms")} AS day
FROM ({with_found(_CHANGES)})"""


GOLD = GoldTable(
    "access_audit",
    "ACLs, quotas, users and tokens: added, changed, removed, wide open",
    FIELDS,
    _QUERY,
    expect=(*not_null("clusterId", "offset", "kind", "change"), *at_least(0, "heldMs")),
)
