"""Kafka's words for an image, read back: the ``expected-image.tsv`` lines as paths and values of our own interface.

Each line is path TAB text: a raw path of Kafka's tree, and what Kafka's classes print for that leaf. The path becomes
ours (names percent-encoded), the text becomes the JSON value that ours must show. Lines that start with ``#`` are
remarks; paths that end in ``/`` are empty directories. Nothing here uses the code under test.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Value = Any
"""A JSON value."""


@dataclass
class Expected:
    """An image as Kafka sees it, in our terms."""

    leaves: dict[str, Value] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    last_offset: int = -1


def read(text: str) -> Expected:
    """Read the lines of an ``expected-image.tsv``; raise ValueError at the first that does not parse."""
    expected = Expected()
    for line in text.split("\n"):
        path, tab, escaped = line.partition("\t")
        if path == "#lastOffset":
            expected.last_offset = int(escaped)
        elif path.startswith("#") or not line:
            continue
        elif path.endswith("/"):
            expected.empty.add(path)
        elif not tab:
            raise ValueError(f"no value in {line!r}")
        else:
            ours, value = leaf(path, _unescape(escaped))
            expected.leaves[ours] = value
    return expected


@functools.lru_cache(100_000)
def leaf(path: str, text: str) -> tuple[str, Value]:
    """Return our path and value of one of Kafka's leaves.

    The images of one log at its offsets have nearly all leaves in common: each is made out once.
    """
    for pattern, parts, reader in _FAMILIES:
        match = re.fullmatch(pattern, path, re.DOTALL)
        if match:
            names = [part(name) for part, name in zip(parts, match.groups()[1:], strict=True)]
            return "/".join([match[1], *names]), reader(text)
    raise ValueError(f"no such family: {path!r}")


def compare(expected: Expected, found: Iterable[str]) -> list[str]:
    """Compare with what ``find /image --values -o jsonl --show-secrets`` printed; return the differences, in words.

    Ours may have more in two places: default entities of quotas, which Kafka's tree hides, and provenance, whose offset
    must be the last one.
    """
    differences = []
    seen: set[str] = set()
    for line in found:
        row = json.loads(line)
        path = row["path"]
        if path in seen:
            differences.append(f"{path}: printed twice")
        seen.add(path)
        if path in expected.leaves:
            if not same(row["value"], expected.leaves[path]):
                differences.append(f"{path}: {row['value']!r} instead of {expected.leaves[path]!r}")
        elif path == "/image/provenance" or path.startswith("/image/provenance/"):
            differences.extend(_wrong_offset(expected, path, row["value"]))
        elif not (path.startswith("/image/clientQuotas/") and "<default>" in path):
            differences.append(f"{path}: not in Kafka's image")
    differences.extend(f"{path}: missing" for path in sorted(expected.leaves.keys() - seen))
    return differences


def same(ours: Value, theirs: Value) -> bool:
    """Whether two values are equal and, true and false apart, of the same kind of JSON value."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


def _wrong_offset(expected: Expected, path: str, value: Value) -> Iterator[str]:
    offset = value.get("offset") if isinstance(value, dict) else value if path.endswith("/offset") else None
    if (isinstance(value, dict) or path.endswith("/offset")) and offset != expected.last_offset:
        yield f"{path}: offset {offset!r} instead of {expected.last_offset}"


# Names


def encode(name: str) -> str:
    """Return a raw name as our paths hold it."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return re.sub(r"[/%\x00-\x1f\x7f-\x9f]", _percent, name)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _resource(component: str) -> str:
    kind, colon, name = component.partition(":")
    return kind + colon + encode(name)


def _entity(component: str) -> str:
    """Return ``clientId(a\\(b)_user(c)`` with its names encoded instead of escaped."""
    out, at = [], 0
    part = re.compile(r"(_?(?:clientId|ip|user)\()((?:\\.|[^\\()])*)\)", re.DOTALL)
    while at < len(component):
        match = part.match(component, at)
        if not match:
            raise ValueError(f"no quota entity: {component!r}")
        name = re.sub(r"\\(.)", r"\1", match[2], flags=re.DOTALL)
        name = "%3Cdefault>" if name == "<default>" else encode(name).replace("(", "%28").replace(")", "%29")
        out.append(match[1] + name + ")")
        at = match.end()
    return "".join(out)


# Values


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


def _fields(pattern: str, text: str) -> dict[str, str]:
    match = re.fullmatch(pattern, text, re.DOTALL)
    if not match:
        raise ValueError(f"cannot read {text!r}")
    return match.groupdict()


def _template(head: str, tail: str, between: str, **fields: str) -> str:
    """Return the pattern of ``head`` key=value ... ``tail``; each field comes with the pattern of its value."""
    named = (f"{key}=(?P<{key}>{value})" for key, value in fields.items())
    return re.escape(head) + between.join(named) + re.escape(tail)


_INT = r"-?\d+"
_BOOL = "true|false"
_ID = r"[A-Za-z0-9_-]{22}"
_INTS = rf"\[(?:{_INT}(?:, {_INT})*)?\]"
_IDS = rf"\[(?:{_ID}(?:, {_ID})*)?\]"
_ENDPOINT = r"Endpoint\(listenerName='(.*?)', securityProtocol=(\w+), host='(.*?)', port=(-?\d+)\)"
_ENDPOINTS = rf"\[(?:{_ENDPOINT}(?:, (?=Endpoint))?)*\]".replace("(.*?)", ".*?").replace(r"(\w+)", r"\w+")
_RANGE = r"-?\d+(?:-\d+|\+)?"
_FEATURES = rf"\{{(?:[\w.-]+: {_RANGE}(?:, [\w.-]+: {_RANGE})*)?\}}"

_PARTITION = _template(
    "PartitionRegistration(", ")", ", ",
    replicas=_INTS, directories=_IDS, isr=_INTS, removingReplicas=_INTS, addingReplicas=_INTS, elr=_INTS,
    lastKnownElr=_INTS, leader=_INT, leaderRecoveryState="RECOVERED|RECOVERING", leaderEpoch=_INT, partitionEpoch=_INT,
)  # fmt: skip
_BROKER = _template(
    "BrokerRegistration(", ")", ", ",
    id=_INT, epoch=_INT, incarnationId=_ID, listeners=_ENDPOINTS, supportedFeatures=_FEATURES,
    rack=r"Optional\[.*\]|Optional\.empty", fenced=_BOOL, inControlledShutdown=_BOOL, isMigratingZkBroker=_BOOL,
    directories=_IDS, cordonedDirectories=f"null|{_IDS}",
)  # fmt: skip
_CONTROLLER = _template(
    "ControllerRegistration(", ")", ", ",
    id=_INT, incarnationId=_ID, zkMigrationReady=_BOOL, listeners=_ENDPOINTS, supportedFeatures=_FEATURES,
)  # fmt: skip
_ACL = _template(
    "StandardAcl[", "]", ", ",
    resourceType=r"\w+", resourceName=".*", patternType=r"\w+", principal=".*", host=".*", operation=r"\w+",
    permissionType=r"\w+",
)  # fmt: skip
_SCRAM = _template(
    "ScramCredentialData(", ")", ", ",
    salt="[0-9a-f]*", storedKey="[0-9a-f]*", serverKey="[0-9a-f]*", iterations=_INT,
)  # fmt: skip
_TOKEN = (  # its brackets do not close
    r"DelegationTokenDatatokenId=(?P<tokenId>.*)\(owner=(?P<owner>.*)\(tokenRequester=(?P<tokenRequester>.*)"
    r"\(renewers=(?P<renewers>.*), issueTimestamp=(?P<issueTimestamp>-?\d+), maxTimestamp=(?P<maxTimestamp>-?\d+)\), "
    r"expiryTimestamp=(?P<expiryTimestamp>-?\d+)"
)


def _list(text: str) -> list[str]:
    return text[1:-1].split(", ") if text != "[]" else []


def _ints(text: str) -> list[int]:
    return [int(item) for item in _list(text)]


def _endpoints(text: str) -> list[dict[str, Value]]:
    found = re.findall(_ENDPOINT + r"(?=, Endpoint\(|\]$)", text, re.DOTALL)
    return [{"name": n, "host": h, "port": int(port), "securityProtocol": p} for n, p, h, port in found]


def _features(text: str) -> dict[str, dict[str, int]]:
    ranges = {}
    for item in _list(text) if text != "{}" else []:
        name, _, span = item.rpartition(": ")
        low, dash, high = span.partition("-")
        if span.endswith("+"):
            low, dash, high = span[:-1], "-", "32767"
        ranges[name] = {"min": int(low), "max": int(high if dash else low)}
    return ranges


def _optional(text: str) -> str | None:
    return None if text == "Optional.empty" else text.removeprefix("Optional[").removesuffix("]")


def _true(text: str) -> bool:
    return text == "true"


_READERS: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys(("replicas", "isr", "removingReplicas", "addingReplicas", "elr", "lastKnownElr"), _ints),
    **dict.fromkeys(("leader", "leaderEpoch", "partitionEpoch", "id", "epoch", "iterations"), int),
    **dict.fromkeys(("issueTimestamp", "maxTimestamp", "expiryTimestamp"), int),
    **dict.fromkeys(("fenced", "inControlledShutdown", "isMigratingZkBroker", "zkMigrationReady"), _true),
    "directories": _list,
    "cordonedDirectories": lambda text: None if text == "null" else _list(text),
    "listeners": _endpoints,
    "supportedFeatures": _features,
    "rack": _optional,
    "renewers": lambda text: re.split(r" (?=\w+:)", text) if text else [],
}


def _object(pattern: str) -> Callable[[str], Value]:
    """Return the reader of a text with named fields."""

    def reader(text: str) -> Value:
        return {key: _READERS.get(key, str)(value) for key, value in _fields(pattern, text).items()}

    return reader


def _number(text: str) -> float:
    return float(text)


_FAMILIES: list[tuple[str, list[Callable[[str], str]], Callable[[str], Value]]] = [
    (r"(/image/acls/byId)/([^/]+)", [str], _object(_ACL)),
    (r"(/image/clientQuotas)/(.+)/([^/]+)", [_entity, str], _number),
    (r"(/image/cluster/brokers)/(\d+)", [str], _object(_BROKER)),
    (r"(/image/cluster/controllers)/(\d+)", [str], _object(_CONTROLLER)),
    (r"(/image/configs)/(.+)/([^/]+)", [_resource, encode], str),
    (r"(/image/delegationToken)/(.+)", [encode], _object(_TOKEN)),
    (r"(/image/features/metadataVersion)", [], _optional),
    (r"(/image/features)/(finalized_.+)", [encode], int),
    (r"(/image/producerIds/nextProducerId)", [], int),
    (r"(/image/scram)/(SCRAM-SHA-256|SCRAM-SHA-512)/(.+)", [str, encode], _object(_SCRAM)),
    (r"(/image/topics)/(byName|byId)/(.+)/(id|name)", [str, encode, str], str),
    (r"(/image/topics)/(byName|byId)/(.+)/(\d+)", [str, encode, str], _object(_PARTITION)),
]
