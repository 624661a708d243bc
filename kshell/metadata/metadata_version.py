"""The names of the levels of ``metadata.version`` (Kafka's ``MetadataVersion``): level 1 is the first name."""

from __future__ import annotations

FEATURE = "metadata.version"
KRAFT_FEATURE = "kraft.version"

_NAMES = """
3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2
3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0
4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2 4.5-IV0
""".split()


NEWEST_NAMED = len(_NAMES)
"""The highest level that kshell has a name for; a release may have it for testing only."""


def version_name(level: int) -> str:
    """Return the name of a level: ``30`` -> ``"4.3-IV0"``; ``"unknown level 99"`` if kshell has no name for it."""
    return _NAMES[level - 1] if 1 <= level <= len(_NAMES) else f"unknown level {level}"
