"""Changes of configs, features, ACLs, quotas, users and tokens, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.spark.gold.expected.spans import (
    Cluster,
    Row,
    day,
    spans,
)
from tests.spark.gold.replay import Version


def changes(cluster: Cluster, table: str, *keys: str) -> Iterator[tuple[Row, Version | None, Version | None]]:
    """(columns of any change, what was before, what is after)."""
    for of_key in spans(cluster, table, *keys):
        for at, span in enumerate(of_key):
            before = of_key[at - 1] if span.before else None
            row = {"clusterId": cluster.name, "offset": span.of["validFromOffset"], "ms": span.of["validFromMs"]}
            row |= {"change": "changed" if before else "added", "heldMs": before.ms if before else None}
            row |= {"day": day(row["ms"]), "isCurrent": span.of["isCurrent"]}
            yield row, span.before, span.of
            if span.of["validToOffset"] is not None and span.after is None:
                row = {"clusterId": cluster.name, "offset": span.of["validToOffset"], "ms": span.of["validToMs"]}
                row |= {"change": "removed", "heldMs": span.ms, "day": day(row["ms"]), "isCurrent": False}
                yield row, span.of, None


def config_changes(cluster: Cluster) -> list[Row]:
    """Of configs."""
    rows = []
    for row, old, new in changes(cluster, "configs", "resourceType", "resourceName", "name"):
        version = new or old or {}
        row |= {name: version[name] for name in ("resourceType", "resourceName", "name")}
        row |= {"change": row["change"].replace("added", "set"), "oldValue": old and old["value"]}
        row |= {"newValue": new and new["value"]}
        del row["isCurrent"]
        rows.append(row)
    return rows


def upgrades(cluster: Cluster) -> list[Row]:
    """Of features, and of kraft.version by control records."""
    told: list[Version] = []
    for record in cluster.records:
        if record.type == "KRAFT_VERSION" and (not told or told[-1]["level"] != record.data["kRaftVersion"]):
            level = record.data["kRaftVersion"]
            begun: Version = {"validFromOffset": record.offset, "validFromMs": record.ms}
            if told:
                told[-1] |= {"validToOffset": record.offset, "validToMs": record.ms, "isCurrent": False}
            open_one = {"validToOffset": None, "validToMs": None, "isCurrent": True}
            told.append({"name": "kraft.version", "level": level, **begun, **open_one})
    both = cluster._replace(versions={"features": [*cluster.versions.get("features", []), *told]})
    rows = []
    for row, old, new in changes(both, "features", "name"):
        feature = (new or old or {})["name"]
        levels: list[Any] = [version and version["level"] for version in (old, new)]
        if row["change"] != "removed":
            row["change"] = "first" if old is None else "upgrade" if levels[1] > levels[0] else "downgrade"
        names = [_NAMES.get(level) if feature == "metadata.version" else None for level in levels]
        del row["isCurrent"]
        row |= {"feature": feature, "oldLevel": levels[0], "newLevel": levels[1]}
        rows.append(row | {"oldName": names[0], "newName": names[1]})
    return rows


_NAMES = {21: "3.9-IV0", 25: "4.0-IV3", 26: "4.1-IV0", 30: "4.3-IV0"}
"""Of the levels in the logs of the tests (``MetadataVersion.java``)."""


def access_audit(cluster: Cluster) -> list[Row]:
    """Of ACLs, quotas, users and tokens."""
    rows = []
    kinds = {"acls": ("id",), "quotas": ("name", "key"), "users": ("name", "mechanism"), "tokens": ("tokenId",)}
    for table, keys in kinds.items():
        for plain, old, new in changes(cluster, table, *keys):
            version = new or old or {}
            row = plain | {"kind": table[:-1], "id": " ".join(version[key] for key in keys), "isWideOpen": False}
            row |= _said(table, version, is_gone=new is None)
            valued = {"quotas": "value", "users": "iterations", "tokens": "expiryTimestamp"}.get(table)
            row["oldValue"] = str(old[valued]) if valued and old else None
            row["newValue"] = str(new[valued]) if valued and new else None
            rows.append(row)
    return rows


def _said(table: str, of: Version, *, is_gone: bool) -> Row:
    if table == "acls":
        words = f"{of['permissionType']} {of['principal']} {of['operation']} on {of['resourceType']}:"
        words += f"{of['resourceName']} ({of['patternType']}) from {of['host']}"
        pattern = of["patternType"], of["resourceName"]
        everything = pattern in (("LITERAL", "*"), ("PREFIXED", "")) or of["resourceType"] == "CLUSTER"
        looks = of["operation"] in ("DESCRIBE", "DESCRIBE_CONFIGS")
        is_open = of["permissionType"] == "ALLOW" and of["principal"] == "User:*"
        is_open = is_open and (of["operation"] == "ALL" or (everything and not looks))
        return {"principal": of["principal"], "said": words, "isWideOpen": is_open}
    if table == "quotas":
        limit = "" if is_gone else f" = {of['value']}"
        principal = f"User:{of['user']}" if of["user"] is not None else None
        return {"principal": principal, "said": f"{of['key']}{limit} for {of['name']}"}
    if table == "users":
        return {"principal": f"User:{of['name']}", "said": f"{of['mechanism']} credentials of {of['name']}"}
    return {"principal": of["owner"], "said": f"delegation token of {of['owner']}"}
