"""What control records say of the quorum: its leader, kraft.version and voters (KIP-595, KIP-853).

Not part of Kafka's metadata image; replayed beside it, because it changes with the same log.
"""

from __future__ import annotations

from typing import Any

from kshell.metadata.delta import Delta
from kshell.metadata.values import Origin

LEADER_CHANGE = "LEADER_CHANGE"
LEADER = "leader"
KRAFT_VERSION = "kraftVersion"
VOTERS = "voters"
QUORUM = "quorum"
"""Table: one of the names above -> the record's message."""


def control(delta: Delta, name: str, data: dict[str, Any], origin: Origin) -> None:
    """Store the content of a control record of the named kind."""
    if name == LEADER_CHANGE:
        delta.put(QUORUM, LEADER, data, origin)
    elif name == "KRAFT_VERSION":
        delta.put(QUORUM, KRAFT_VERSION, data["kRaftVersion"], origin)
    elif name == "KRAFT_VOTERS":
        delta.put(QUORUM, VOTERS, tuple(data["voters"]), origin)
