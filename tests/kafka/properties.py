"""What a server of a test's cluster is told in its properties file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tests.kafka.node import Node

if TYPE_CHECKING:
    from tests.kafka.cluster import Cluster

SASL_USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret", "dave": "dave-secret"}
"""PLAIN users of a ``sasl=True`` cluster; admin is a super user."""

START = 120
"""Seconds that a server or a broker's registration may take: a busy machine is slow, not broken. (Kafka's own patience
with a registration is a minute, more than half of which goes by with fifty servers on two cores.)
"""


def small_files(
    version: str, *, snapshot_bytes: int = 6000, segment_bytes: int = 16000, retention_bytes: int | None = None
) -> list[str]:
    """Return settings under which a server snapshots and rolls its log often, and deletes what is old (if asked to)."""
    props = [f"metadata.log.max.record.bytes.between.snapshots={snapshot_bytes}"]
    if _release(version) >= (4, 1):
        props.append(f"internal.metadata.log.segment.bytes={segment_bytes}")
    else:
        props += ["metadata.log.segment.min.bytes=12", f"metadata.log.segment.bytes={segment_bytes}"]
    if retention_bytes is not None:
        props.append(f"metadata.max.retention.bytes={retention_bytes}")
    return props


def server_properties(cluster: Cluster, node: Node, initial: Sequence[Node]) -> Iterator[str]:
    """The lines of a node's properties file; ``initial`` are the first voters of a dynamic quorum."""
    combined = cluster.combined and node.role == "controller"
    yield f"process.roles={'broker,controller' if combined else node.role}"
    yield f"node.id={node.id}"
    yield f"log.dirs={node.logs}"
    yield "controller.listener.names=CONTROLLER"
    if cluster.dynamic:
        yield f"controller.quorum.bootstrap.servers={','.join(c.address for c in initial or cluster.controllers)}"
    else:
        yield f"controller.quorum.voters={','.join(f'{c.id}@{c.address}' for c in cluster.controllers)}"
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
    yield f"listener.security.protocol.map={protocols}"
    own = [f"CONTROLLER://{node.address}"] if node.role == "controller" else []
    advertised = []
    if combined:
        advertised = [f"PLAINTEXT://{node.second_address}"]
    elif node.role == "broker":
        advertised = [f"PLAINTEXT://{node.address}"]
        if cluster.sasl:
            advertised.append(f"SASL://{node.second_address}")
            users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            yield "sasl.enabled.mechanisms=PLAIN"
            yield f"listener.name.sasl.plain.sasl.jaas.config={module} required {users};"
    yield f"listeners={','.join([*own, *advertised])}"
    if advertised:
        yield f"advertised.listeners={','.join(advertised)}"
        yield f"initial.broker.registration.timeout.ms={START * 1000}"
    if node.role == "broker":
        yield f"broker.rack=rack-{'abc'[node.id % 3]}"
    if cluster.sasl and _release(cluster.version) >= (3, 6):
        yield "delegation.token.secret.key=made-up-token-secret"
    yield "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    yield "super.users=User:ANONYMOUS;User:admin"
    yield "num.network.threads=1"
    yield "num.io.threads=2"
    yield "offsets.topic.num.partitions=2"
    yield "offsets.topic.replication.factor=1"
    yield "transaction.state.log.num.partitions=2"
    yield "transaction.state.log.replication.factor=1"
    yield "transaction.state.log.min.isr=1"
    yield from cluster.props
    yield from cluster.node_props.get(node.id, ())


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
