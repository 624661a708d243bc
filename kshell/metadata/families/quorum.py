"""The quorum's leader, kraft.version and voters, as control records of the log say (KIP-595, KIP-853).

They are not part of Kafka's metadata image, but kshell keeps them in a table of its image: they come from the same log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

LEADER_CHANGE = "LEADER_CHANGE"
LEADER = "leader"
KRAFT_VERSION = "kraftVersion"
VOTERS = "voters"
QUORUM = "quorum"
"""Name of the table: one of the names above -> the content of the latest such record."""


def control(delta: Delta, name: str, data: Message, origin: Origin) -> None:
    """Replay a control record; ``name`` is that of its type, such as ``LEADER_CHANGE``. Other types are ignored."""
    if name == LEADER_CHANGE:
        delta.put(QUORUM, LEADER, data, origin)
    elif name == "KRAFT_VERSION":
        delta.put(QUORUM, KRAFT_VERSION, data["kRaftVersion"], origin)
    elif name == "KRAFT_VOTERS":
        delta.put(QUORUM, VOTERS, tuple(data["voters"]), origin)
