"""A cluster that writes its own metadata log, with as much state as it takes to write what Kafka would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kshell.protocol.batches import write_batch
from tests.builders import Pair, uuid, value

BEGIN = 1_767_225_600_000 - 7_000
"""Seven seconds before 2026 begins (UTC): the month is cut anywhere but at midnight."""
HOUR = 3_600_000
DAY = 24 * HOUR
RACKS = {1: "a", 2: "a", 3: "b", 4: "c", 5: None}
"""Broker -> rack."""
Clock = Callable[[int], int]
"""Gives what a clock shows at a time, in milliseconds."""


def right(ms: int) -> int:
    """A clock that is right."""
    return ms


class Part:
    """A partition as the log has it."""

    def __init__(self, topic: int, number: int, replicas: list[int]) -> None:
        self.topic, self.number, self.replicas = topic, number, replicas
        self.isr, self.leader, self.is_recovering = list(replicas), replicas[0], False
        self.adding: list[int] = []
        self.removing: list[int] = []


class Cluster:
    """Writes batches; knows enough of the state to write what Kafka would."""

    def __init__(self, seed: int, clock: Clock = right) -> None:
        self.random, self.clock = random.Random(seed), clock
        self.ms, self.offset = BEGIN, 0
        self.batches: list[bytes] = []
        self.parts: list[Part] = []
        self.names: dict[int, str] = {}
        self.epochs: dict[int, int] = {}
        self.fenced: dict[int, bool] = {}
        self.acls: list[int] = []
        self.last_id = 100

    def write(self, *values: bytes, back: int = 0) -> None:
        """One batch, ``back`` milliseconds before now."""
        self._pairs([(None, one) for one in values], self.ms - back)

    def control(self, pair: Pair) -> None:
        """One control record. A LeaderChange needs an epoch of its own, else its batch counts as damage."""
        self._pairs([pair], self.ms, control=True)

    def _pairs(self, pairs: list[Pair], ms: int, **more: Any) -> None:
        self.batches.append(write_batch(pairs, base_offset=self.offset, epoch=1, timestamp=self.clock(ms), **more))
        self.offset += len(pairs)

    def new_id(self) -> int:
        """A number for a UUID."""
        self.last_id += 1
        return self.last_id

    # --- brokers ---

    def register(self, broker: int) -> None:
        """A start."""
        self.epochs[broker], self.fenced[broker] = self.offset, True
        self.write(
            value(
                "REGISTER_BROKER", 3, brokerId=broker, incarnationId=uuid(self.new_id()), brokerEpoch=self.offset,
                rack=RACKS[broker], logDirs=[uuid(broker)],
            )
        )  # fmt: skip

    def registration(self, broker: int, **change: int) -> None:
        """A change of a registration."""
        epoch = self.epochs[broker]
        self.write(value("BROKER_REGISTRATION_CHANGE", 1, brokerId=broker, brokerEpoch=epoch, **change))
        if "fenced" in change:
            self.fenced[broker] = change["fenced"] == 1

    def live(self) -> list[int]:
        """Brokers that serve."""
        return [broker for broker, is_fenced in self.fenced.items() if not is_fenced]

    # --- topics ---

    def topic(self, name: str, partitions: int, factor: int, transaction: str = "") -> None:
        """A topic; ``transaction`` is END or ABORT for one that is made in a metadata transaction."""
        number = self.new_id()
        parts = [Part(number, n, self.random.sample(self.live(), factor)) for n in range(partitions)]
        made = [value("TOPIC", name=name, topicId=uuid(number))]
        made += [
            value(
                "PARTITION", 1, partitionId=part.number, topicId=uuid(number), replicas=part.replicas, isr=part.isr,
                leader=part.leader, leaderEpoch=0, partitionEpoch=0, directories=[uuid(b) for b in part.replicas],
            )
            for part in parts
        ]  # fmt: skip
        if transaction:
            self.write(value("BEGIN_TRANSACTION", name="a"))
            self.write(*made)
            self.ms += 400
            self.write(value(f"{transaction}_TRANSACTION"))
        else:
            self.write(*made)
        if transaction != "ABORT":
            self.parts += parts
            self.names[number] = name

    def remove_topic(self, number: int) -> None:
        """Gone with its partitions."""
        self.write(value("REMOVE_TOPIC", topicId=uuid(number)))
        self.parts = [part for part in self.parts if part.topic != number]
        del self.names[number]

    def change(self, part: Part, **fields: Any) -> bytes:
        """A change of a partition."""
        if "replicas" in fields:
            fields["directories"] = [uuid(broker) for broker in fields["replicas"]]
        return value("PARTITION_CHANGE", 2, partitionId=part.number, topicId=uuid(part.topic), **fields)

    def lead(self, part: Part) -> dict[str, Any]:
        """Fields that give the partition a leader out of its ISR, or none."""
        able = [broker for broker in part.replicas if broker in part.isr and not self.fenced[broker]]
        part.leader = able[0] if able else -1
        return {"leader": part.leader}

    def lose(self, broker: int) -> None:
        """What the broker led is led by others; it is in no ISR but where it is the last."""
        for part in self.parts:
            if broker not in part.isr:
                continue
            fields: dict[str, Any] = {}
            if len(part.isr) > 1:
                part.isr = [one for one in part.isr if one != broker]
                fields["isr"] = part.isr
            if part.leader == broker:
                fields |= self.lead(part)
            if fields:
                back = self.random.choice([0, 0, 0, 900, 2 * HOUR])
                self.write(self.change(part, **fields), back=back)
                self.ms += self.random.randrange(50)

    def recover(self, broker: int) -> None:
        """What it alone has is led again; it catches up here and there."""
        for part in self.parts:
            if broker not in part.replicas:
                continue
            fields: dict[str, Any] = {}
            if broker not in part.isr and part.leader != -1:
                part.isr = [*part.isr, broker]
                fields["isr"] = part.isr
                self.ms += self.random.randrange(60_000)
            if part.leader == -1 and broker in part.isr:
                fields |= self.lead(part)
            if fields:
                self.write(self.change(part, **fields))

    def fail(self, broker: int, *, clean: bool) -> None:
        """Down for a while, with all that follows."""
        if clean:
            self.registration(broker, inControlledShutdown=1)
            self.ms += 1_500
        self.registration(broker, fenced=1)
        self.lose(broker)
        other = self.random.choice(self.live()) if len(self.live()) > 1 and self.random.random() < 0.6 else None
        if other is not None:
            self.registration(other, fenced=1)
            self.lose(other)
        if len(self.names) > 5 and self.random.random() < 0.1:
            self.remove_topic(self.random.choice(list(self.names)))
        self.ms += self.random.randrange(2 * HOUR)
        self.start(broker)
        if other is not None:
            self.ms += self.random.randrange(HOUR)
            self.start(other)
        if self.random.random() < 0.7:
            self.ms += self.random.randrange(HOUR)
            self.prefer()

    def start(self, broker: int) -> None:
        """Up again. Where those in sync are down, it may lead without having been in sync."""
        self.register(broker)
        self.ms += self.random.randrange(20_000)
        self.registration(broker, fenced=-1)
        self.unclean()
        self.recover(broker)

    def unclean(self) -> None:
        """Some partitions without a leader get one that is not in sync."""
        for part in self.parts:
            able = [broker for broker in part.replicas if not self.fenced[broker]]
            if part.leader != -1 or not able or self.random.random() < 0.5:
                continue
            self.ms += self.random.randrange(30_000)
            part.leader, part.isr = able[-1], [able[-1]]
            state = {"leaderRecoveryState": 1} if self.random.random() < 0.7 else {}
            self.write(self.change(part, leader=part.leader, isr=part.isr, **state))
            if state and self.random.random() < 0.8:
                self.ms += self.random.randrange(10_000)
                self.write(self.change(part, leaderRecoveryState=0))

    def prefer(self) -> None:
        """Preferred leaders, where they are in sync."""
        for part in self.parts:
            first = part.replicas[0]
            if part.leader not in (-1, first) and first in part.isr and not self.fenced[first]:
                part.leader = first
                self.write(self.change(part, leader=first))

    def reassign(self, part: Part) -> None:
        """To other brokers: finished, cancelled, at once, or left for later."""
        free = [broker for broker in self.live() if broker not in part.replicas]
        if not free or part.adding or part.removing:
            return
        added, removed, before = free[0], part.replicas[-1], list(part.replicas)
        if self.random.random() < 0.2:
            part.replicas = before[::-1]
            self.write(self.change(part, replicas=part.replicas))
            return
        part.replicas, part.adding, part.removing = [*before, added], [added], [removed]
        self.write(self.change(part, replicas=part.replicas, addingReplicas=[added], removingReplicas=[removed]))
        self.ms += self.random.randrange(HOUR)
        fate = self.random.random()
        if fate < 0.2:
            return
        after = [b for b in part.replicas if b != removed] if fate < 0.8 else before
        part.isr = [b for b in part.isr if b in after] + ([added] if added in after else [])
        part.replicas, part.adding, part.removing = after, [], []
        fields = {"replicas": after, "isr": part.isr, "addingReplicas": [], "removingReplicas": []}
        if part.leader not in part.isr:
            fields |= self.lead(part)
        self.write(self.change(part, **fields))

    # --- the rest ---

    def config(self, kind: int, name: str, key: str, said: str | None) -> None:
        """Sets a config, or removes it."""
        self.write(value("CONFIG", resourceType=kind, resourceName=name, name=key, value=said))

    def access(self) -> None:
        """An ACL, a quota, a user or a token comes, changes or goes."""
        pick, some = self.random.random(), self.random
        if pick < 0.3:
            self.acls.append(self.new_id())
            self.write(
                value(
                    "ACCESS_CONTROL_ENTRY", id=uuid(self.acls[-1]), resourceType=some.choice([2, 3, 4]),
                    resourceName=some.choice(["*", "orders", ""]), patternType=some.choice([3, 4]),
                    principal=some.choice(["User:*", "User:ann"]), host="*", operation=some.choice([2, 3, 8]),
                    permissionType=some.choice([2, 3]),
                )
            )  # fmt: skip
        elif pick < 0.5 and self.acls:
            self.write(value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(self.acls.pop(0))))
        elif pick < 0.8:
            entities: list[list[tuple[str, str | None]]]
            entities = [[("user", "ann")], [("user", None)], [("client-id", "c"), ("user", "bob")]]
            entity = some.choice(entities)
            named = [{"entityType": kind, "entityName": name} for kind, name in entity]
            limit = float(some.choice([1024, 2048, 0.5]))
            self.write(
                value("CLIENT_QUOTA", entity=named, key="producer_byte_rate", value=limit, remove=some.random() < 0.3)
            )
        elif pick < 0.9:
            many = some.choice([4096, 8192])
            self.write(value("USER_SCRAM_CREDENTIAL", name="ann", mechanism=1, iterations=many))
        else:
            expiry = self.ms + some.randrange(3) * DAY
            self.write(value("DELEGATION_TOKEN", owner="User:ann", tokenId="t", expirationTimestamp=expiry))

    def some_config(self) -> None:
        """A config that matters, or not."""
        names, some = sorted(self.names.values()), self.random
        least, key = some.choice(["1", "2", "3", None]), "min.insync.replicas"
        pick: Callable[[], None] = some.choice(
            [
                lambda: self.config(2, some.choice(names), key, least),
                lambda: self.config(4, "", key, least),
                lambda: self.config(4, str(some.randrange(1, 6)), key, some.choice(["2", "many", None])),
                lambda: self.config(2, some.choice(names), "retention.ms", some.choice(["1", "2", None])),
            ]
        )
        pick()
