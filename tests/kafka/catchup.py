"""The snapshot that Kafka's own classes make on a node that was away and then caught up."""

from __future__ import annotations

from pathlib import Path

from tests.builders import snapshot
from tests.kafka import jars


def snapshot_after_catching_up(log: Path, away: int, end: int) -> bytes:
    """Return the bytes of a snapshot that ends at ``end``.

    The node replayed the log batch by batch below offset ``away``, and all from there on as one ``MetadataDelta``.
    """
    lines = jars.run(jars.classes(jars.LATEST, "Catchup"), "Catchup", str(log), str(away), str(end))
    return snapshot([bytes.fromhex(line) for line in lines.split()])
