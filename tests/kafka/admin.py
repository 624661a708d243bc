"""An administrator of a running cluster: one long-lived Java process behind typed methods."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kafka import jars


class AdminError(Exception):
    """Kafka refused; the message is Kafka's."""


class Admin:
    """Speaks to ``Admin.java``, a line of JSON each way."""

    def __init__(self, version: str, properties: Mapping[str, str], scratch: Path) -> None:
        """Start the process; ``scratch`` is a file name for the client properties."""
        scratch.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = jars.java(jars.classes(version, "Admin"), "Admin", str(scratch), heap="128m")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Admin:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process."""
        self.close()

    def close(self) -> None:
        """Stop the process."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def call(self, verb: str, **arguments: Any) -> Any:
        """Carry out one verb of ``Admin.java``; raise AdminError with Kafka's words if it is refused."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write((json.dumps({"verb": verb, **arguments}) + "\n").encode())
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise AdminError(f"the admin process ended with {self._process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise AdminError(f"{verb} {arguments}: {reply['error']}")
        return reply["ok"]

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, by counts or by an explicit assignment (the replicas of each partition)."""
        self.call("createTopic", name=name, partitions=partitions, replicas=replicas, assignment=assignment,
                  configs=dict(configs or {}))  # fmt: skip

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.call("deleteTopic", name=name)

    def add_partitions(self, name: str, total: int) -> None:
        """Raise the number of partitions of a topic."""
        self.call("addPartitions", name=name, total=total)

    def describe_topic(self, name: str) -> list[dict[str, Any]]:
        """Return leader, replicas and isr of every partition, as a broker answers."""
        partitions: list[dict[str, Any]] = self.call("describeTopic", name=name)
        return partitions

    def set_config(self, kind: str, name: str, values: Mapping[str, str | None]) -> None:
        """Set configs of a resource (``""`` is the default resource); None deletes a key."""
        self.set_configs(kind, {name: values})

    def set_configs(self, kind: str, values: Mapping[str, Mapping[str, str | None]]) -> None:
        """Set configs of many resources with one request: a record for each of them."""
        self.call("configs", type=kind, values={name: dict(each) for name, each in values.items()})

    def acl(
        self,
        resource: tuple[str, str],
        principal: str,
        operation: str,
        *,
        pattern: str = "LITERAL",
        permission: str = "ALLOW",
        host: str = "*",
        remove: bool = False,
    ) -> None:
        """Add or remove one ACL; ``resource`` is a type and a name."""
        self.call("acl", resourceType=resource[0], resourceName=resource[1], patternType=pattern, principal=principal,
                  host=host, operation=operation, permissionType=permission, remove=remove)  # fmt: skip

    def quota(self, entity: Mapping[str, str | None], key: str, value: float | None) -> None:
        """Set (or with None remove) one quota; a None name is the default entity."""
        self.call("quota", entity=dict(entity), key=key, value=value)

    def scram(self, user: str, mechanism: str, password: str | None, iterations: int = 4096) -> None:
        """Set (or with None delete) a SCRAM credential."""
        self.call("scram", user=user, mechanism=mechanism, password=password, iterations=iterations)

    def feature(self, name: str, level: int, kind: str = "UPGRADE") -> None:
        """Change a finalized feature; kind is UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE."""
        self.call("feature", name=name, level=level, type=kind)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        """Start a reassignment, or cancel it with None."""
        self.call("reassign", topic=topic, partition=partition, replicas=replicas)

    def elect(self, topic: str, partition: int, kind: str = "PREFERRED") -> None:
        """Elect a leader; kind is PREFERRED or UNCLEAN."""
        self.call("elect", topic=topic, partition=partition, type=kind)

    def create_token(self, renewers: Sequence[str] = (), owner: str | None = None) -> dict[str, str]:
        """Create a delegation token (only over a SASL listener); return tokenId and hmac."""
        token: dict[str, str] = self.call("token", renewers=list(renewers), owner=owner)
        return token

    def renew_token(self, hmac: str, period_ms: int) -> int:
        """Renew a delegation token; return its new expiry time."""
        return int(self.call("token", hmac=hmac, action="renew", period=period_ms))

    def expire_token(self, hmac: str, period_ms: int = -1) -> int:
        """Expire a delegation token (at once by default); return its expiry time."""
        return int(self.call("token", hmac=hmac, action="expire", period=period_ms))

    def unregister_broker(self, node: int) -> None:
        """Remove a broker's registration."""
        self.call("unregisterBroker", id=node)

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that are up, as a broker answers."""
        ids: list[int] = self.call("brokers")
        return ids

    def high_watermark(self) -> int:
        """Return the end offset (exclusive) of what the metadata log's leader knows to be committed."""
        return int(self.call("highWatermark"))

    def produce(self, topic: str, count: int = 1, transactional_id: str | None = None) -> None:
        """Write a few records with an idempotent (or transactional) producer, which takes producer ids."""
        self.call("produce", topic=topic, count=count, transactionalId=transactional_id)
