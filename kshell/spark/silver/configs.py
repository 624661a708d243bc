"""The tables ``configs``, ``quotas`` and ``features`` (finalized ones): values that records set and remove."""

from __future__ import annotations

from kshell.metadata.families.configs import RESOURCE_TYPES
from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE
from kshell.metadata.names import DEFAULT, LIKE_DEFAULT
from kshell.metadata.redaction import REDACTED
from kshell.spark.silver.declaration import SilverTable, silver
from kshell.spark.silver.expressions import enum_name_sql, record_fields_sql, sorted_by
from kshell.spark.silver.topics import TOPIC_LIFETIMES
from kshell.spark.silver.versions import MOMENT, after, versions, whole_states

_CONFIG, _QUOTA, _LEVEL = "CONFIG_RECORD", "CLIENT_QUOTA_RECORD", "FEATURE_LEVEL_RECORD"
_LABELS = {"client-id": (0, "clientId"), "ip": (1, "ip"), "user": (2, "user")}
"""Entity type of a quota -> its position in an entity's name, and its label there."""
_UNSAFE = r"[\x00-\x1f\x7f-\x9f/%()]"
"""Characters that are percent-encoded in an entity's name."""


def _configs(table: SilverTable) -> str:
    """Build the query: one row per config and value. Secrets are redacted and cannot be compared, so a version
    begins each time one is set. A topic's configs end with the topic, at the latest."""
    expressions = {
        "resourceType": enum_name_sql(RESOURCE_TYPES, "said.resourceType"),
        "resourceName": "said.resourceName",
        "name": "said.name",
        "value": "said.value",
    }
    is_config, is_hidden = f"type = '{_CONFIG}'", f"coalesce(said.value = '{REDACTED}', false)"
    parts = whole_states(
        table, record_fields_sql(_CONFIG), expressions, is_removed="said.value IS NULL", new=is_hidden, where=is_config
    )
    return f"""
WITH {parts},
{TOPIC_LIFETIMES},
removals AS (
  SELECT clusterId, topic, sort_array(collect_list({MOMENT})) AS removals
  FROM (SELECT clusterId, topic, ended.* FROM lives WHERE isRemoved) GROUP BY clusterId, topic
),
states AS (
  SELECT * EXCEPT (endsOffset, endsMs, removal),
    CASE WHEN removal.atOffset <= endsOffset THEN removal.atOffset ELSE endsOffset END AS endsOffset,
    CASE WHEN removal.atOffset <= endsOffset THEN removal.atMs ELSE endsMs END AS endsMs
  FROM (
    SELECT bounded.*, get(filter(removals, r -> {after("r")}), 0) AS removal
    FROM bounded LEFT JOIN removals
      ON bounded.clusterId = removals.clusterId AND resourceType = 'TOPIC' AND resourceName = topic
  )
) {versions("states", table)}"""


def _features(table: SilverTable) -> str:
    """Build the query: one row per feature and level. Level 0 removes a feature, except for metadata.version.
    kraft.version is left out: it is in control records (gold table ``upgrades``)."""
    expressions = {"name": "said.name", "level": "said.featureLevel"}
    is_removed, where = f"said.featureLevel = 0 AND said.name <> '{FEATURE}'", f"said.name <> '{KRAFT_FEATURE}'"
    parts = whole_states(table, record_fields_sql(_LEVEL), expressions, is_removed, where=where)
    return f"WITH {parts} {versions('bounded', table)}"


def _quotas(table: SilverTable) -> str:
    """Build the query: one row per quota (entity and key) and value."""
    entries = f"transform({sorted_by('said.entity', 'entityType')}, e -> struct(e.entityType, e.entityName))"
    entity = f"map_from_entries({entries})"
    expressions = {
        "user": _entity_name(entity, "user"),
        "clientId": _entity_name(entity, "client-id"),
        "ip": _entity_name(entity, "ip"),
        "key": "said.key",
        "value": "said.value",
        "entity": entity,
        "name": _segment("said.entity"),
    }
    parts = whole_states(table, record_fields_sql(_QUOTA), expressions, is_removed="said.remove")
    return f"WITH {parts} {versions('bounded', table)}"


def _entity_name(entity: str, kind: str) -> str:
    """SQL: the entity's name of one type, as :func:`kshell.metadata.names.entity_name`; null if it has none."""
    name = f"element_at({entity}, '{kind}')"
    return (
        f"CASE WHEN NOT array_contains(map_keys({entity}), '{kind}') THEN NULL"
        f" WHEN {name} IS NULL THEN '{DEFAULT}'"
        f" WHEN {name} = '{DEFAULT}' OR {name} RLIKE r'{LIKE_DEFAULT}' THEN {_encoded(name)}"
        f" ELSE {name} END"
    )


def _segment(entity: str) -> str:
    """SQL: the entity as a path segment ``clientId(x)_user(y)``, as ``entity_segment`` of the family ``quotas``."""
    places = " ".join(f"WHEN '{kind}' THEN {place}" for kind, (place, _) in _LABELS.items())
    labels = " ".join(f"WHEN '{kind}' THEN '{label}'" for kind, (_, label) in _LABELS.items())
    label = f"CASE e.entityType {labels} ELSE {_encoded('e.entityType')} END"
    name = f"coalesce({_encoded('e.entityName')}, '{DEFAULT}')"
    part = (
        f"struct(CASE e.entityType {places} ELSE {len(_LABELS)} END AS place, e.entityType AS kind,"
        f" concat({label}, '(', {name}, ')') AS text)"
    )
    return f"array_join(transform(array_sort(transform({entity}, e -> {part})), p -> p.text), '_')"


def _encoded(name: str) -> str:
    """SQL: a name within a path segment, as :func:`kshell.metadata.names.encode_name`."""
    percent = "regexp_replace(hex(encode(c, 'UTF-8')), '(..)', '%$1')"
    letters = f"transform(split({name}, ''), c -> CASE WHEN c RLIKE r'{_UNSAFE}' THEN {percent} ELSE c END)"
    return (
        f"CASE WHEN {name} = '' THEN '<empty>'"
        f" WHEN {name} IN ('.', '..') THEN replace({name}, '.', '%2E')"
        f" WHEN {name} IN ('<default>', '<empty>') THEN concat('%3C', substring({name}, 2, 9))"
        f" WHEN {name} RLIKE r'{_UNSAFE}' THEN array_join({letters}, '') ELSE {name} END"
    )


TABLES = (
    silver(
        "configs",
        "what is set, as the log holds it",
        ("resourceType", "resourceName", "name"),
        (_CONFIG, "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"),
        _configs,
        ("topics",),
    ),
    silver("features", "the finalized features", ("name",), (_LEVEL,), _features),
    silver(
        "quotas",
        "the limits of users, clients and addresses",
        ("name", "key"),
        (_QUOTA,),
        _quotas,
    ),
)
