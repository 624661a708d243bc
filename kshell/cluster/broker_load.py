"""What each broker carries: how many partitions it leads, and how many replicas are placed on it."""

from __future__ import annotations

from collections import defaultdict

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition


class Load:
    """Counts of partitions. ``preferred``: those whose first replica is here; ``out_of_sync``: not in the ISR."""

    __slots__ = ("leaders", "out_of_sync", "preferred", "replicas")

    def __init__(self) -> None:
        self.leaders = self.replicas = self.preferred = self.out_of_sync = 0

    def row(self) -> dict[str, int]:
        """Under the names that rows have."""
        return {
            "leaders": self.leaders,
            "replicas": self.replicas,
            "preferredLeaders": self.preferred,
            "outOfSync": self.out_of_sync,
        }


def loads(image: Image) -> defaultdict[int, Load]:
    """Broker id -> its load; brokers that are not registered, too, where partitions name them."""
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
