"""The load of each broker: how many partitions it leads, and how many replicas are placed on it."""

from __future__ import annotations

from collections import defaultdict

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition


class Load:
    """Partition counts of a broker; ``preferred``: it is their first replica; ``out_of_sync``: not in their ISR."""

    __slots__ = ("leaders", "out_of_sync", "preferred", "replicas")

    def __init__(self) -> None:
        self.leaders = self.replicas = self.preferred = self.out_of_sync = 0

    def row(self) -> dict[str, int]:
        """The counts under the column names of result rows."""
        return {
            "leaders": self.leaders,
            "replicas": self.replicas,
            "preferredLeaders": self.preferred,
            "outOfSync": self.out_of_sync,
        }


def loads(image: Image) -> defaultdict[int, Load]:
    """Map broker ids to loads. An unregistered broker is included if a partition has a replica on it."""
    loads_by_broker: defaultdict[int, Load] = defaultdict(Load)
    for topic in image[TOPICS].values():
        for _, value in topic.scan():
            if isinstance(value, Partition):
                _add(loads_by_broker, value)
    return loads_by_broker


def _add(loads_by_broker: defaultdict[int, Load], value: Partition) -> None:
    leader, in_sync = value.leader, value.isr
    for place, broker in enumerate(value.replicas):
        load = loads_by_broker[broker]
        load.replicas += 1
        load.preferred += place == 0
        load.leaders += broker == leader
        load.out_of_sync += broker not in in_sync
