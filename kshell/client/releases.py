"""What servers of each Kafka release, 0.10.0 to 4.4, report in ApiVersions: API versions and supported features.

API versions come from Kafka's own classes (``releases_table.py``, which is generated), supported features from real
servers; ``tests/client/test_releases.py`` compares both with running servers. A release is named as users name it,
without its patch number: ``"0.10.2"``, ``"0.11"``, ``"3.9"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kshell.client import releases_table as table
from kshell.errors import UsageError
from kshell.protocol.names import API_NAMES

Range = tuple[int, int]

BROKER = "broker"
CONTROLLER = "controller"

RELEASES: tuple[str, ...] = tuple(
    """
    0.10.0 0.10.1 0.10.2 0.11 1.0 1.1 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8
    3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 4.0 4.1 4.2 4.3 4.4
    """.split()
)
"""The releases that kshell knows, oldest first."""

OPTIONAL: frozenset[int] = frozenset({71, 72})
"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): offered only if a plugin for client metrics is installed."""

LAST_KEY = max(API_NAMES)
FIRST_VENDOR_KEY = 500
"""API keys from here on are taken as a vendor's: Kafka numbers its APIs one after the other, forks of Kafka number
their own from some hundreds or thousands on."""

METADATA_VERSION = "metadata.version"

_LEVELS = """
3.3  metadata.version 1-7
3.4  metadata.version 1-8
3.5  metadata.version 1-11
3.6  metadata.version 1-14
3.7  metadata.version 1-19
3.8  metadata.version 1-20
3.9  metadata.version 1-21 kraft.version 0-1
4.0  metadata.version 7-25 kraft.version 0-1 transaction.version 0-2 group.version 0-1
     eligible.leader.replicas.version 0-1
4.1  metadata.version 7-27 kraft.version 0-1 transaction.version 0-2 group.version 0-1
     eligible.leader.replicas.version 0-1 share.version 0-1
4.2  metadata.version 7-29 kraft.version 0-1 transaction.version 0-2 group.version 0-1
     eligible.leader.replicas.version 0-1 share.version 0-1 streams.version 0-1
4.3  metadata.version 7-30 kraft.version 0-1 transaction.version 0-2 group.version 0-1
     eligible.leader.replicas.version 0-1 share.version 0-1 streams.version 0-1
4.4  metadata.version 7-33 kraft.version 0-1 transaction.version 0-2 group.version 0-1
     eligible.leader.replicas.version 0-1 share.version 0-2 streams.version 0-1
"""

_BEFORE_API_VERSIONS = """
0.8.2
    Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 0-1, OffsetFetch 0-1, FindCoordinator 0
0.9.0
    Produce 0-1, Fetch 0-1, UpdateMetadata 0-1, LeaderAndIsr 0, StopReplica 0, ControlledShutdown 1, OffsetCommit 0-2,
    JoinGroup 0, Heartbeat 0, LeaveGroup 0, SyncGroup 0, DescribeGroups 0, ListGroups 0
"""
"""API versions of brokers before 0.10.0, which have no ApiVersions; for users who name such a release."""


class Offer(NamedTuple):
    """The API versions that one kind of server of one release offers: API key -> (lowest, highest), both included.

    ``unstable`` has the ranges that differ with ``unstable.api.versions.enable=true``. ``kraft`` is false for a broker
    that keeps its metadata in ZooKeeper. ``patch`` is set for a patch release that differs from the last one of its
    release.
    """

    release: str
    kind: str
    kraft: bool
    ranges: Mapping[int, Range]
    unstable: Mapping[int, Range]
    patch: str | None = None


def read_text(text: str) -> dict[str, dict[int, Range | None]]:
    """Parse a text of ``releases_table.py``: release -> API key -> new range, ``None`` for an API that is dropped."""
    keys = {name: key for key, name in API_NAMES.items()}
    out: dict[str, dict[int, Range | None]] = {}
    for line in text.split("\n"):
        if not line.startswith(" "):
            if line:
                changes = out[line] = {}
            continue
        for entry in line.strip().rstrip(",").split(", "):
            name, versions = entry.split(" ")
            low, _, high = versions.partition("-")
            changes[keys[name]] = None if low == "none" else (int(low), int(high or low))
    return out


def _apply(ranges: Mapping[int, Range], changes: Mapping[int, Range | None]) -> dict[int, Range]:
    merged = {**ranges, **changes}
    return {key: versions for key, versions in merged.items() if versions is not None}


def _timeline(kind: str, kraft: bool, table: str, patches: str, unstable: str) -> list[Offer]:
    exceptions, loose = read_text(patches), read_text(unstable)
    out: list[Offer] = []
    ranges: dict[int, Range] = {}
    for release, changes in read_text(table).items():
        ranges = _apply(ranges, changes)
        more = _apply({}, loose.get(release, {}))
        out.append(Offer(release, kind, kraft, ranges, more))
        for patch, differing in exceptions.items():
            if patch.startswith(f"{release}."):
                out.append(Offer(release, kind, kraft, _apply(ranges, differing), more, patch))
    return out


@cache
def offers() -> tuple[Offer, ...]:
    """Return the offers of all releases: first brokers on ZooKeeper, then KRaft brokers, then controllers.

    Each group is in the order of releases, oldest first. KRaft before 3.3 was a preview; it is included so that such a
    server is not taken for another release.
    """
    brokers = _timeline(BROKER, True, table.BROKERS, table.BROKERS_PATCHES, table.BROKERS_UNSTABLE)
    return (
        *_timeline(BROKER, False, table.ZOOKEEPER_BROKERS, "", table.ZOOKEEPER_BROKERS_UNSTABLE),
        *brokers,
        *_timeline(CONTROLLER, True, table.CONTROLLERS, "", ""),
    )


@cache
def forwarded() -> frozenset[int]:
    """Return the keys of the APIs that a KRaft broker forwards to the active controller.

    For these, a broker offers the versions that both know, so an older controller narrows the range or hides the API
    (Kafka's ``ApiVersionsResponse.intersectForwardableApis``).
    """
    keys = {name: key for key, name in API_NAMES.items()}
    return frozenset(keys[name] for name in table.FORWARDED.split())


@cache
def supported_features() -> dict[str, dict[str, Range]]:
    """Return release -> feature -> (lowest, highest) level that its KRaft servers support, from 3.3 on (KIP-584).

    ApiVersions responses below version 4 leave out features whose lowest level is 0 (KAFKA-17011, KIP-1022); brokers on
    ZooKeeper report no features.
    """
    out: dict[str, dict[str, Range]] = {}
    for line in _LEVELS.strip().split("\n"):
        fields = line.split()
        if not line.startswith(" "):
            levels = out[fields.pop(0)] = {}
        for name, text in zip(fields[::2], fields[1::2], strict=True):
            low, _, high = text.partition("-")
            levels[name] = (int(low), int(high))
    return out


def release_of(version: str) -> str:
    """Return the release of a version with or without its patch number: ``"3.9.2"`` -> ``"3.9"``.

    Raises UsageError for a release that kshell does not know.
    """
    releases = (*read_text(_BEFORE_API_VERSIONS), *RELEASES)
    parts = version.split(".")
    for length in range(len(parts), 1, -1):
        if (line := ".".join(parts[:length])) in releases and all(part.isdecimal() for part in parts[length:]):
            return line
    raise UsageError(f"{version!r} is no release of Kafka that kshell knows", hint=f"known are {', '.join(releases)}")


def release_ranges(version: str) -> Mapping[int, Range]:
    """Return the API versions of a broker of that version: API key -> (lowest, highest).

    From 3.3 on they are those of a KRaft broker, before of one on ZooKeeper. Raises UsageError for an unknown release.
    """
    release = release_of(version)
    if release not in RELEASES:
        ranges: dict[int, Range] = {}
        for line, changes in read_text(_BEFORE_API_VERSIONS).items():
            ranges = _apply(ranges, changes)
            if line == release:
                break
        return ranges
    kraft = position(release) >= position("3.3")
    return next(offer.ranges for offer in offers() if offer[:3] == (release, BROKER, kraft) and offer.patch is None)


def position(release: str) -> int:
    """Return the index of a release in ``RELEASES``, for comparisons."""
    return RELEASES.index(release)
