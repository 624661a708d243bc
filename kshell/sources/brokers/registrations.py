"""Ask brokers about themselves and each other: registrations, features, and each broker's own configs.

Any broker lists all brokers. What only a broker itself knows is asked of each of them, in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kshell.client.address import Address
from kshell.client.concurrency import concurrently
from kshell.client.nodes import BROKER, Nodes
from kshell.errors import ConnectError, NodeError, SourceTimeoutError
from kshell.metadata.delta import Delta
from kshell.metadata.families.cluster import Broker, Listener
from kshell.metadata.partial import MISSING, NOT_AVAILABLE, UNREPORTED, reported_by
from kshell.protocol.decoder import Message
from kshell.protocol.messages.cluster import DESCRIBE_CLUSTER
from kshell.protocol.messages.connection import API_VERSIONS
from kshell.sources.brokers.config_entries import Described
from kshell.sources.brokers.configs import describe, write
from kshell.sources.brokers.requests import raise_if_no_broker_answers

KRAFT_VERSION = "kraft.version"
"""A feature that brokers report, but that is not among the image's features: a control record has its level."""
_ANYWHERE = ("", "0.0.0.0", "::")
"""Hosts in a broker's listeners that mean every interface; the registration has the real host."""


class Own(NamedTuple):
    """What one broker reported about itself: supported features (name -> lowest and highest level) and its configs."""

    supported: Mapping[str, tuple[int, int]] | None
    configs: Described | None
    failure: NodeError | None


def brokers(nodes: Nodes, delta: Delta, notes: list[str]) -> dict[str, int]:
    """Write brokers, their own dynamic configs and the finalized features; return the latter. Raises NodeError."""
    connection = nodes.any()
    try:
        body = nodes.describe(connection, fenced=True)
    except (ConnectError, SourceTimeoutError) as error:  # the broker stopped or hangs, and another one may answer
        raise_if_no_broker_answers(nodes, error)
        connection = nodes.any()
        body = nodes.describe(connection, fenced=True)
    finalized = dict(connection.versions.finalized)
    origin = reported_by(connection.node, API_VERSIONS.name, 0)
    for name, level in finalized.items():
        if name != KRAFT_VERSION:
            delta.put("features", name, level, origin)
    listed = body["brokers"] if body else []
    own = ask_each(nodes, {item["brokerId"]: (item["host"], item["port"]) for item in listed})
    for item in listed:
        answers = own[item["brokerId"]]
        origin = reported_by(connection.node, DESCRIBE_CLUSTER.name, 0)
        delta.put("brokers", item["brokerId"], _broker(nodes, item, answers), origin)
    write(delta, [answers.configs for answers in own.values() if answers.configs is not None], notes)
    _write_silent(delta, own, notes)
    if listed and "isFenced" not in listed[0]:
        notes.append("fenced brokers are not in the image: brokers report them only from Kafka 4.0 on")
    return finalized


def ask_each(nodes: Nodes, addresses: Mapping[int, Address]) -> dict[int, Own]:
    """Ask each broker about itself, all in parallel; return their answers by broker id."""
    answers = concurrently(lambda item: _own(nodes, *item), addresses.items())
    return dict(zip(addresses, answers, strict=True))


def _own(nodes: Nodes, node_id: int, address: Address) -> Own:
    try:
        connection = nodes.dial(address)
    except NodeError as error:
        return Own(None, None, error)
    try:
        configs = next(describe(connection, [(BROKER.upper(), str(node_id))], synonyms=True), None)
        return Own(connection.versions.supported, configs, configs.failure if configs else None)
    except NodeError as error:
        return Own(connection.versions.supported, None, error)
    finally:
        connection.close()


def _write_silent(delta: Delta, own: Mapping[int, Own], notes: list[str]) -> None:
    """Enter as missing, with a note, what only those brokers know that could not be asked."""
    for node_id, answers in own.items():
        if answers.configs is None and answers.failure is not None:
            delta.table(MISSING)["configs", f"BROKER:{node_id}"] = f"{NOT_AVAILABLE}: {answers.failure.reason}"
            notes.append(f"broker {node_id} cannot be asked for what only it knows: {answers.failure.message}")


def _broker(nodes: Nodes, item: Message, own: Own) -> Broker:
    """A registration, from DescribeCluster and the broker's own answers; ``UNREPORTED`` where both say nothing."""
    values = {entry.name: entry.value for entry in own.configs.entries} if own.configs else {}
    listeners = listeners_of(values)
    here = (item["host"], item["port"])
    if here not in [(listener.host, listener.port) for listener in listeners]:
        listeners = (Listener(UNREPORTED, *here, nodes.settings.security_protocol),)
    return Broker(
        id=item["brokerId"],
        epoch=UNREPORTED,
        incarnation_id=UNREPORTED,
        listeners=listeners,
        supported_features=_supported(own),
        rack=item["rack"],
        # Below version 2 of DescribeCluster only brokers that are not fenced are listed.
        fenced=item.get("isFenced", False),
        in_controlled_shutdown=UNREPORTED,
        is_migrating_zk_broker=UNREPORTED,
        directories=UNREPORTED,
        cordoned_directories=UNREPORTED,
    )


def _supported(own: Own) -> Any:
    if own.supported is None:
        return UNREPORTED
    return {name: {"min": low, "max": high} for name, (low, high) in sorted(own.supported.items())}


def listeners_of(values: Mapping[str, str | None]) -> tuple[Listener, ...]:
    """A broker's listeners, from its effective configs; empty if a host or port is not certain.

    Reads ``advertised.listeners`` (or ``listeners``), ``listener.security.protocol.map`` and
    ``controller.listener.names``, as ``kafka.server.KafkaConfig.effectiveAdvertisedBrokerListeners`` does.
    """
    advertised = values.get("advertised.listeners") or values.get("listeners") or ""
    pairs = (values.get("listener.security.protocol.map") or "").split(",")
    protocols = {
        name.strip().upper(): protocol.strip().upper() for name, _, protocol in (pair.partition(":") for pair in pairs)
    }
    controllers = {name.strip().upper() for name in (values.get("controller.listener.names") or "").split(",")}
    listeners = []
    for text in filter(None, (part.strip() for part in advertised.split(","))):
        name, slashes, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        name = name.upper()
        if not slashes or not colon or host in _ANYWHERE or not port.isdigit() or int(port) == 0:
            return ()
        if name not in controllers:
            listeners.append(Listener(name, host, int(port), protocols.get(name, name)))
    return tuple(sorted(listeners))
