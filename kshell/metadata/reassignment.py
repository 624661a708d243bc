"""Proposals for kafka-reassign-partitions.sh: to which of a cluster's brokers the replicas of a partition can move.

Each proposal is for a single partition: another broker in place of a lost one, in an unused rack if there is one. They
do not balance a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kshell.metadata.election import ACTIVE, status_of
from kshell.metadata.families.cluster import Broker
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.kafka_tools import KafkaTools, assignment
from kshell.metadata.partial import is_unreported
from kshell.metadata.partition_state import staying_replicas, target_replicas
from kshell.metadata.partitions import Partition

MOST = 100
"""The most partitions in one command, because the length of a command line is limited."""
_CANCEL = "echo {moves} | kafka-reassign-partitions.sh --reassignment-json-file /dev/stdin --cancel"


class Placement:
    """The brokers of an image that can take replicas, and the choice among them for a partition (``number``)."""

    def __init__(self, image: Image = EMPTY) -> None:
        self._brokers: dict[int, Broker] = {number: entry.value for number, entry in image["brokers"].items()}
        self._racks = {number: broker.rack for number, broker in self._brokers.items()}
        self.ready = sorted(number for number in self._brokers if self._takes_replicas(self._brokers[number]))
        self._ready = frozenset(self.ready)
        self._apart: dict[frozenset[str | None], list[int]] = {}
        """Racks -> those of :attr:`ready` that are in none of them."""
        self.active = frozenset(number for number in self._brokers if self.status(number) == ACTIVE)

    def status(self, broker: int) -> str:
        """Return a broker's status: :data:`kshell.metadata.election.ACTIVE` and so on."""
        return status_of(self._brokers.get(broker))

    def can_replace(self, partition: Partition, leaving: Collection[int]) -> bool:
        """Whether :meth:`replace` would find enough brokers; faster, because it chooses none."""
        replicas = target_replicas(partition)
        free = len(self._ready) - len(self._ready.intersection({*replicas, *leaving}))
        return free >= sum(replica in leaving for replica in replicas)

    def waits_for(self, partition: Partition, leaving: Collection[int] = ()) -> list[int]:
        """Return the replicas that would stay and whose brokers do not run.

        kafka-reassign-partitions.sh refuses a plan that names one: it knows the brokers that DescribeCluster lists.
        """
        return [
            replica for replica in target_replicas(partition) if replica not in self.active and replica not in leaving
        ]

    def missing_targets(self, partition: Partition) -> list[int]:
        """Return the brokers that a reassignment adds and that do not run: it does not end without them."""
        adding = partition.adding_replicas
        return [] if is_unreported(adding) else [replica for replica in adding if replica not in self.active]

    def replace(self, partition: Partition, leaving: Collection[int], number: int) -> tuple[int, ...] | None:
        """Return the replicas with each leaving broker replaced by another one; ``None``: there are too few brokers."""
        replicas = list(target_replicas(partition))
        stay = [replica for replica in replicas if replica not in leaving]
        for index, replica in enumerate(replicas):
            if replica in leaving:
                added = self._next(stay, {*stay, *leaving}, number)
                if added is None:
                    return None
                replicas[index] = added
                stay.append(added)
        return tuple(replicas)

    def widen(self, partition: Partition, factor: int, number: int) -> tuple[int, ...]:
        """Return the replicas, extended by further brokers up to a replication factor, as far as there are brokers."""
        replicas = list(target_replicas(partition))
        while len(replicas) < factor and (added := self._next(replicas, replicas, number)) is not None:
            replicas.append(added)
        return tuple(replicas)

    def spread(self, partition: Partition, number: int) -> tuple[int, ...] | None:
        """Return the replicas spread over more racks; ``None`` if no active broker in another rack can take one."""
        target = target_replicas(partition)
        replicas = list(target)
        for index in range(len(replicas) - 1, 0, -1):
            rest = [*replicas[:index], *replicas[index + 1 :]]
            if self._racks.get(replicas[index]) in self._racks_of(rest):
                added = self._next(rest, replicas, number)
                if added is not None and self._racks[added] not in self._racks_of(rest):
                    replicas[index] = added
        return tuple(replicas) if tuple(replicas) != target else None

    def _next(self, replicas: Collection[int], excluded: Collection[int], number: int) -> int | None:
        """Return one more broker, if possible in a rack without a replica; the choice varies with the partition."""
        used = self._racks_of(replicas)
        apart = self._apart.get(used)
        if apart is None:
            apart = self._apart[used] = [broker for broker in self.ready if self._racks[broker] not in used]
        candidates = [broker for broker in apart if broker not in excluded]
        candidates = candidates or [broker for broker in self.ready if broker not in excluded]
        return candidates[number % len(candidates)] if candidates else None

    def _racks_of(self, brokers: Iterable[int]) -> frozenset[str | None]:
        return frozenset(self._racks.get(broker) for broker in brokers)

    @staticmethod
    def _takes_replicas(broker: Broker) -> bool:
        cordoned = broker.cordoned_directories
        is_cordoned = (
            bool(cordoned) and not is_unreported(broker.directories) and set(broker.directories) <= set(cordoned or ())
        )
        return broker.fenced is not True and broker.in_controlled_shutdown is not True and not is_cordoned


def can_cancel(partition: Partition) -> bool:
    """Whether Kafka would cancel a reassignment: a replica in sync stays (``PartitionReassignmentRevert``)."""
    return not set(partition.isr).isdisjoint(staying_replicas(partition))


def cancel_command(tools: KafkaTools, partitions: Iterable[tuple[str, int, Partition]]) -> str:
    """Return the command that cancels the reassignments of partitions, each with its topic and number."""
    moves = [(topic, number, staying_replicas(partition)) for topic, number, partition in partitions]
    return tools.fill(_CANCEL, {"moves": assignment(moves)})
