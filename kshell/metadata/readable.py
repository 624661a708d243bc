"""A record's fields for users to read, with Kafka's names in place of its codes. ``dump`` and JSON keep the codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kshell.metadata.families import acls, configs, scram
from kshell.metadata.metadata_version import FEATURE, version_name
from kshell.metadata.partitions import RECOVERY_STATES
from kshell.metadata.values import SECURITY_PROTOCOLS

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

ZK_MIGRATION_STATES = {0: "NONE", 1: "PRE_MIGRATION", 2: "MIGRATION", 3: "POST_MIGRATION"}
_FENCING = {-1: "UNFENCE", 0: "NONE", 1: "FENCE"}
_SHUTDOWN = {0: "NONE", 1: "IN_CONTROLLED_SHUTDOWN"}
_NAMES: dict[str, dict[str, dict[int, str]]] = {
    "CONFIG_RECORD": {"resourceType": configs.RESOURCE_TYPES},
    "ACCESS_CONTROL_ENTRY_RECORD": {
        "resourceType": acls.RESOURCE_TYPES,
        "patternType": acls.PATTERN_TYPES,
        "operation": acls.OPERATIONS,
        "permissionType": acls.PERMISSION_TYPES,
    },
    "USER_SCRAM_CREDENTIAL_RECORD": {"mechanism": scram.MECHANISMS},
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"mechanism": scram.MECHANISMS},
    "PARTITION_RECORD": {"leaderRecoveryState": RECOVERY_STATES},
    "PARTITION_CHANGE_RECORD": {"leaderRecoveryState": RECOVERY_STATES},
    "BROKER_REGISTRATION_CHANGE_RECORD": {"fenced": _FENCING, "inControlledShutdown": _SHUTDOWN},
    "ZK_MIGRATION_STATE_RECORD": {"zkMigrationState": ZK_MIGRATION_STATES},
}
"""Record type -> field -> code -> Kafka's name of the code."""


def readable(record_type: str, data: object) -> Any:
    """Return the fields of a record with names in place of codes; other values are unchanged.

    Args:
        record_type: Kafka's name of the type, ``CONFIG_RECORD``.
        data: the fields as ``dump`` prints them; not changed.
    """
    if not isinstance(data, dict) or "undecoded" in data:
        return data
    names = _NAMES.get(record_type, {})
    named = {field: _name(names.get(field), value) for field, value in data.items()}
    special = _SPECIAL.get(record_type)
    return named if special is None else special(named)


def _name(names: dict[int, str] | None, value: object) -> Any:
    return value if names is None or not isinstance(value, int) else names.get(value, value)


def _feature_level(data: JsonObject) -> JsonObject:
    """Name the level of a FeatureLevelRecord, which only levels of metadata.version have."""
    if data.get("name") != FEATURE or not isinstance(data.get("featureLevel"), int):
        return data
    return data | {"featureLevel": version_name(data["featureLevel"])}


def _registration(data: JsonObject) -> JsonObject:
    """Name the security protocols and the supported metadata versions in the registration of a broker or controller."""
    points = [
        point | {"securityProtocol": _name(SECURITY_PROTOCOLS, point.get("securityProtocol"))}
        for point in data.get("endPoints", ())
    ]
    features = [
        feature | {field: version_name(feature[field]) for field in ("minSupportedVersion", "maxSupportedVersion")}
        if feature.get("name") == FEATURE
        else feature
        for feature in data.get("features", ())
    ]
    return data | {"endPoints": points, "features": features}


_SPECIAL: dict[str, Callable[[JsonObject], JsonObject]] = {
    "FEATURE_LEVEL_RECORD": _feature_level,
    "REGISTER_BROKER_RECORD": _registration,
    "REGISTER_CONTROLLER_RECORD": _registration,
}
