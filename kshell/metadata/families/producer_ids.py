"""The next producer id that the controller will assign (``ProducerIdsDelta``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.records import LatestByKey, record
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

NEXT = "nextProducerId"
PRODUCER_IDS = family(Family("producerIds", ("producerIds",), (str,), "producerId"))


@record(
    15,
    "ProducerIdsRecord",
    "0",
    """
  brokerId        int32
  brokerEpoch     int64  = -1
  nextProducerId  int64
""",
    LatestByKey("producerIds", ()),
)
def producer_ids(delta: Delta, data: Message, origin: Origin) -> None:
    """Set the first producer id that is not assigned yet."""
    delta.put("producerIds", NEXT, data["nextProducerId"], origin)
