"""The versions that a cluster had, replayed from what ``dump`` prints, in plain Python.

It shares no code with the pipeline's tables: what they say of gold is held against it. A version is a dict with the
columns of the silver table; the tables are lists of those, by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Version = dict[str, Any]
Versions = dict[str, list[Version]]

_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_ACL_RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
_PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS = {
    2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE", 9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}  # fmt: skip
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Record(NamedTuple):
    """A line of ``dump``: ``ms`` in milliseconds since 1970."""

    offset: int
    ms: int
    type: str
    data: dict[str, Any]


def lines(dumped: Iterable[tuple[Any, ...]]) -> list[Record]:
    """Rows of the columns offset, epoch, timestampMs, type, version, data, …"""
    return [Record(row[0], row[2], row[3], json.loads(row[5])) for row in dumped]


def effective(records: Iterable[Record]) -> list[Record]:
    """What took effect: records of a transaction at its end, those of one that was aborted or is open not at all."""
    out: list[Record] = []
    held: list[Record] | None = None
    for record in records:
        if record.type == "BEGIN_TRANSACTION_RECORD":
            held = []
        elif record.type == "ABORT_TRANSACTION_RECORD":
            held = None
        elif record.type == "END_TRANSACTION_RECORD":
            out += [one._replace(offset=record.offset, ms=record.ms) for one in held or ()]
            held = None
        elif held is not None and record.type.endswith("_RECORD"):
            held.append(record)
        else:
            out.append(record)
    return out


class Replay:
    """Versions so far: those that ended, and those that hold, by table and key."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.ended: Versions = {}
        self.held: dict[str, dict[Any, Version]] = {}
        self.at = Record(-1, 0, "", {})

    def put(self, table: str, key: Any, /, **values: Any) -> None:
        """From now on the key has these values. What came and went at one offset leaves no version."""
        of_table = self.held.setdefault(table, {})
        old = of_table.get(key)
        if old is not None and all(old[name] == value for name, value in values.items()):
            return
        if old is not None and old["validFromOffset"] != self.at.offset:
            self.drop(table, key)
        begun = {"validFromOffset": self.at.offset, "validFromMs": self.at.ms}
        of_table[key] = {"clusterId": self.cluster, **values, **begun}

    def drop(self, table: str, key: Any) -> None:
        """From now on there is nothing of that key."""
        old = self.held.get(table, {}).pop(key, None)
        if old is None or old["validFromOffset"] == self.at.offset:
            return
        self.ended.setdefault(table, []).append(
            {**old, "validToOffset": self.at.offset, "validToMs": self.at.ms, "isCurrent": False}
        )

    def change(self, table: str, key: Any, /, **values: Any) -> None:
        """Some of the values are others, if there is such a key."""
        old = self.held.get(table, {}).get(key)
        if old is not None:
            kept = {n: v for n, v in old.items() if n not in ("clusterId", "validFromOffset", "validFromMs")}
            self.put(table, key, **{**kept, **values})

    def of(self, table: str) -> dict[Any, Version]:
        """What holds."""
        return self.held.setdefault(table, {})

    def versions(self) -> Versions:
        """All of them, in order."""
        open_ones = {"validToOffset": None, "validToMs": None, "isCurrent": True}
        names = {*self.ended, *self.held}
        made = {
            name: [*self.ended.get(name, []), *({**one, **open_ones} for one in self.held.get(name, {}).values())]
            for name in names
        }
        return {name: sorted(rows, key=lambda row: row["validFromOffset"]) for name, rows in made.items()}


def replay(cluster: str, records: Iterable[Record]) -> Versions:
    """The versions of the silver tables that :data:`_APPLIED` knows; who needs another one adds it there."""
    state = Replay(cluster)
    for record in effective(records):
        state.at = record
        apply = _APPLIED.get(record.type)
        if apply is not None:
            apply(state, record.data)
    return state.versions()


def _topic(state: Replay, data: dict[str, Any]) -> None:
    state.put("topics", data["topicId"], name=data["name"], topicId=data["topicId"])


def _remove_topic(state: Replay, data: dict[str, Any]) -> None:
    name = state.of("topics")[data["topicId"]]["name"]
    state.drop("topics", data["topicId"])
    for key in [key for key in state.of("partitions") if key[0] == data["topicId"]]:
        state.drop("partitions", key)
    for key in [key for key in state.of("configs") if key[:2] == ("TOPIC", name)]:
        state.drop("configs", key)


def _partition(state: Replay, data: dict[str, Any]) -> None:
    key = data["topicId"], data["partitionId"]
    state.put(
        "partitions", key,
        topic=state.of("topics")[data["topicId"]]["name"], topicId=key[0], partition=key[1],
        leader=data["leader"], replicas=data["replicas"], isr=data["isr"],
        elr=data.get("eligibleLeaderReplicas") or [],
        addingReplicas=data["addingReplicas"], removingReplicas=data["removingReplicas"],
        leaderRecoveryState=("RECOVERED", "RECOVERING")[data.get("leaderRecoveryState", 0)],
        partitionEpoch=data["partitionEpoch"],
    )  # fmt: skip


def _partition_change(state: Replay, data: dict[str, Any]) -> None:
    key = data["topicId"], data["partitionId"]
    old = state.of("partitions")[key]
    changed: dict[str, Any] = {"partitionEpoch": old["partitionEpoch"] + 1}
    for name in ("isr", "replicas", "addingReplicas", "removingReplicas"):
        if data.get(name) is not None:
            changed[name] = data[name]
    if data.get("eligibleLeaderReplicas") is not None:
        changed["elr"] = data["eligibleLeaderReplicas"]
    if data.get("leader", -2) != -2:
        changed["leader"] = data["leader"]
    if data.get("leaderRecoveryState", -1) != -1:
        changed["leaderRecoveryState"] = ("RECOVERED", "RECOVERING")[data["leaderRecoveryState"]]
    state.change("partitions", key, **changed)


def _clear_elr(state: Replay, data: dict[str, Any]) -> None:
    for key, value in list(state.of("partitions").items()):
        if data["topicName"] in ("", value["topic"]) and value["elr"]:
            state.change("partitions", key, elr=[], partitionEpoch=value["partitionEpoch"] + 1)


def _broker(state: Replay, data: dict[str, Any]) -> None:
    state.put(
        "brokers", data["brokerId"],
        id=data["brokerId"], epoch=data["brokerEpoch"], incarnationId=data["incarnationId"], rack=data["rack"],
        fenced=data["fenced"], inControlledShutdown=data.get("inControlledShutdown", False),
        directories=data.get("logDirs", []), cordonedDirectories=data.get("cordonedLogDirs"),
    )  # fmt: skip


def _broker_change(state: Replay, data: dict[str, Any]) -> None:
    changed: dict[str, Any] = {}
    if data.get("fenced", 0):
        changed["fenced"] = data["fenced"] == 1
    if data.get("inControlledShutdown", 0):
        changed["inControlledShutdown"] = True
    if data.get("logDirs"):
        changed["directories"] = data["logDirs"]
    if data.get("cordonedLogDirs") is not None:
        changed["cordonedDirectories"] = data["cordonedLogDirs"]
    state.change("brokers", data["brokerId"], **changed)


def _config(state: Replay, data: dict[str, Any]) -> None:
    kind = _RESOURCES[data["resourceType"]]
    key = kind, data["resourceName"], data["name"]
    if data["value"] is None:
        state.drop("configs", key)
    else:
        state.put("configs", key, resourceType=kind, resourceName=key[1], name=key[2], value=data["value"])


def _acl(state: Replay, data: dict[str, Any]) -> None:
    state.put(
        "acls", data["id"],
        id=data["id"], resourceType=_ACL_RESOURCES[data["resourceType"]], resourceName=data["resourceName"],
        patternType=_PATTERNS[data["patternType"]], principal=data["principal"], host=data["host"],
        operation=_OPERATIONS[data["operation"]], permissionType={2: "DENY", 3: "ALLOW"}[data["permissionType"]],
    )  # fmt: skip


def _quota(state: Replay, data: dict[str, Any]) -> None:
    of = {part["entityType"]: part["entityName"] for part in data["entity"]}
    shown = {kind: "<default>" if name is None else name for kind, name in of.items()}
    labels = {"client-id": "clientId", "ip": "ip", "user": "user"}
    name = "_".join(f"{label}({shown[kind]})" for kind, label in labels.items() if kind in of).replace("/", "%2F")
    key = name, data["key"]
    if data["remove"]:
        state.drop("quotas", key)
    else:
        state.put("quotas", key, name=name, key=data["key"], value=data["value"], user=shown.get("user"))


def _user(state: Replay, data: dict[str, Any]) -> None:
    mechanism, at = _MECHANISMS[data["mechanism"]], state.at.offset  # another password is another version
    state.put(
        "users", (data["name"], mechanism),
        name=data["name"], mechanism=mechanism, iterations=data["iterations"], setAt=at,
    )  # fmt: skip


def _token(state: Replay, data: dict[str, Any]) -> None:
    state.put(
        "tokens", data["tokenId"], tokenId=data["tokenId"], owner=data["owner"],
        expiryTimestamp=data["expirationTimestamp"],
    )  # fmt: skip


def _feature(state: Replay, data: dict[str, Any]) -> None:
    if data["name"] == "kraft.version":
        return
    if data["featureLevel"] == 0 and data["name"] != "metadata.version":
        state.drop("features", data["name"])
    else:
        state.put("features", data["name"], name=data["name"], level=data["featureLevel"])


_APPLIED: dict[str, Callable[[Replay, dict[str, Any]], None]] = {
    "TOPIC_RECORD": _topic,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "CLEAR_ELR_RECORD": _clear_elr,
    "REGISTER_BROKER_RECORD": _broker,
    "UNREGISTER_BROKER_RECORD": lambda state, data: state.drop("brokers", data["brokerId"]),
    "FENCE_BROKER_RECORD": lambda state, data: state.change("brokers", data["id"], fenced=True),
    "UNFENCE_BROKER_RECORD": lambda state, data: state.change("brokers", data["id"], fenced=False),
    "BROKER_REGISTRATION_CHANGE_RECORD": _broker_change,
    "CONFIG_RECORD": _config,
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": lambda state, data: state.drop("acls", data["id"]),
    "CLIENT_QUOTA_RECORD": _quota,
    "USER_SCRAM_CREDENTIAL_RECORD": _user,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": lambda state, data: state.drop(
        "users", (data["name"], _MECHANISMS[data["mechanism"]])
    ),
    "DELEGATION_TOKEN_RECORD": _token,
    "REMOVE_DELEGATION_TOKEN_RECORD": lambda state, data: state.drop("tokens", data["tokenId"]),
    "FEATURE_LEVEL_RECORD": _feature,
}  # fmt: skip
