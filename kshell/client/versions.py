"""What one peer said of itself in ApiVersions, and which version of an API to use with it (KIP-35, KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kshell.errors import UnsupportedVersionError
from kshell.protocol.api import Api
from kshell.protocol.schema import Versions

Range = tuple[int, int]
PRODUCE = 0
_NONE: Mapping[Any, Any] = {}


class NodeVersions(NamedTuple):
    """Valid for the connection it came over, and no longer.

    ``ranges`` and ``supported`` are API key or feature -> (lowest, highest); ``finalized`` is feature -> level.
    ``software`` is (name, version) where a draft of KIP-885 is spoken. ``assumed``: the peer did not answer, so this is
    what a configured release has.
    """

    ranges: Mapping[int, Range]
    supported: Mapping[str, Range] = _NONE
    finalized: Mapping[str, int] = _NONE
    software: tuple[str | None, str | None] = (None, None)
    assumed: str | None = None

    @property
    def is_broker(self) -> bool:
        """Whether the node takes records from producers: below 3.7 nothing else tells it from a controller."""
        return PRODUCE in self.ranges


def of_response(body: Mapping[str, Any]) -> NodeVersions:
    """From an ApiVersions response of any version or dialect."""
    return NodeVersions(
        {item["apiKey"]: (item["minVersion"], item["maxVersion"]) for item in body["apiKeys"]},
        {item["name"]: (item["minVersion"], item["maxVersion"]) for item in body.get("supportedFeatures", ())},
        {item["name"]: item["maxVersionLevel"] for item in body.get("finalizedFeatures", ())},
        (body.get("brokerSoftwareName"), body.get("brokerSoftwareVersion")),
    )


def choose(
    api: Api, node: str, known: NodeVersions, excluded: Mapping[str, frozenset[int]], needed: Versions | None = None
) -> int:
    """The highest version that the node offers, kshell knows, ``needed`` allows and nobody excluded.

    Raises UnsupportedVersionError, which says what both sides have.
    """
    ours = api.versions
    low, high = known.ranges.get(api.key, (0, -1))
    banned = excluded.get(api.name, frozenset())
    for version in range(min(high, ours.high if ours.high is not None else high), max(low, ours.low) - 1, -1):
        if version not in banned and (needed is None or version in needed):
            return version
    theirs = f"the node offers {low}-{high}" if low <= high else "the node does not offer it"
    mine = f"kshell knows {ours}" + (f" and needs {needed}" if needed else "")
    left_out = f", without {', '.join(map(str, sorted(banned)))} (api.versions.exclude)" if banned else ""
    hint = "`api-versions` shows what each node offers"
    raise UnsupportedVersionError(node, f"UnsupportedVersion: {theirs}, {mine}{left_out}", api=api.name, hint=hint)
