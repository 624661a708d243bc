"""Levels of features: with which metadata.version each one came, and which levels of other features it needs.

The facts are from Kafka's ``Feature`` and ``MetadataVersion`` (KIP-584, KIP-1022), and are compared with the classes of
each release by ``tests/live/test_feature_levels.py``. Which server supports which levels: ``kshell.client.releases``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kshell.metadata.metadata_version import FEATURE, KRAFT_FEATURE, NEWEST_NAMED, version_name

METADATA_VERSION = FEATURE
KRAFT_VERSION = KRAFT_FEATURE
LATEST = 33
"""The newest metadata.version for production (4.4-IV2) in a released Kafka. Levels above it are for testing."""
CONTROLLERS_REGISTER = 15
"""The metadata.version (3.7-IV0) from which on controllers register, with the levels they support (KIP-919)."""
CONTROLLERS_UNREGISTER = 33
"""The metadata.version (4.4-IV2) from which on the registration of a controller can be removed (KIP-1312)."""

_CHANGED = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels of metadata.version that brought record types or fields: a downgrade below one might lose metadata."""

_LEVELS = """
kraft.version 1 3.9-IV0
transaction.version 1 4.0-IV2
transaction.version 2 4.0-IV2
group.version 1 4.0-IV0
eligible.leader.replicas.version 1 4.1-IV0 metadata.version=23
share.version 1 4.2-IV0
share.version 2 4.4-IV0
streams.version 1 4.2-IV1
"""

_NAMED = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(?:-IV(\d+))?", re.ASCII)


class FeatureLevel(NamedTuple):
    """A level above 0 of a feature. ``version`` is the lowest metadata.version with which a new cluster has it by
    default; ``needs``: other feature -> the lowest level that it must have before this one can be finalized.
    """

    feature: str
    level: int
    version: int
    needs: Mapping[str, int]


@cache
def levels() -> dict[str, list[FeatureLevel]]:
    """Return feature -> its levels from 1 on, in ascending order; metadata.version is the first feature."""
    levels_by_feature = {
        METADATA_VERSION: [FeatureLevel(METADATA_VERSION, number, number, {}) for number in range(1, NEWEST_NAMED + 1)]
    }
    for line in _LEVELS.strip().split("\n"):
        name, level, version, *needs = line.split()
        required = {feature: int(least) for feature, _, least in (need.partition("=") for need in needs)}
        levels_by_feature.setdefault(name, []).append(
            FeatureLevel(name, int(level), version_level(version) or 0, required)
        )
    return levels_by_feature


@cache
def version_level(text: str) -> int | None:
    """Return the level of a metadata.version: ``"4.3-IV0"`` -> 30; ``None`` if kshell does not know it.

    For a release (``"4.1"``, ``"4.1.1"``) it is the release's newest level for production.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    names = {version_name(level): level for level in range(1, NEWEST_NAMED + 1)}
    release = f"{match[1]}.{match[2]}-IV"
    if match[3] is not None:
        return names.get(release + match[3])
    return max((level for name, level in names.items() if level <= LATEST and name.startswith(release)), default=None)


def default_levels(version: int) -> dict[str, int]:
    """Return feature -> the level that a new cluster of a metadata.version has by default; 0: the feature is off."""
    return {
        name: max((entry.level for entry in entries if entry.version <= version), default=0)
        for name, entries in levels().items()
    }


def needs_of(feature: str, level: int) -> Mapping[str, int]:
    """Return other feature -> the lowest level that a level of this feature needs; empty for unknown levels."""
    return next((entry.needs for entry in levels().get(feature, ()) if entry.level == level), {})


def level_name(feature: str, level: int) -> str | None:
    """Return a level's name: ``("metadata.version", 30)`` -> ``"4.3-IV0"``; other features' levels have none."""
    return version_name(level) if feature == METADATA_VERSION and level > 0 else None


def level_title(feature: str, level: int) -> str:
    """Return a level as users read it: ``30 (4.3-IV0)``, ``1``."""
    name = level_name(feature, level)
    return f"{level} ({name})" if name else str(level)


def metadata_changed(version: int, target: int) -> list[int]:
    """Return the levels above ``target``, up to ``version``, that brought record types or fields."""
    return [level for level in range(target + 1, version + 1) if level in _CHANGED]


def is_known(feature: str, level: int) -> bool:
    """Whether kshell knows what a level of a feature brings and needs. Level 0 turns a feature off."""
    return feature in levels() and (level == 0 or any(entry.level == level for entry in levels()[feature]))
