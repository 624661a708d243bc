"""Registrations of brokers and controllers (``ClusterDelta``, ``BrokerRegistration``, ``ControllerRegistration``)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.records import ReplayError, record
from kshell.metadata.values import SECURITY_PROTOCOLS, Entry, Origin, enum_name
from kshell.protocol.primitives import Uuid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kshell.protocol.decoder import Message

BROKERS = family(Family("brokers", ("cluster", "brokers"), (str,), "broker"))
CONTROLLERS = family(Family("controllers", ("cluster", "controllers"), (str,), "controller"))
_SIGNED_HALVES = struct.Struct(">qq")


class Listener(NamedTuple):
    """An address at which a node listens."""

    name: str
    host: str
    port: int
    security_protocol: str


class Broker(NamedTuple):
    """A broker's registration; ``supported_features`` are feature -> ``min`` and ``max`` level.

    ``cordoned_directories`` is ``None`` where the version of the record does not have the field.
    """

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    supported_features: dict[str, dict[str, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    directories: tuple[Uuid, ...]
    cordoned_directories: tuple[Uuid, ...] | None


class Controller(NamedTuple):
    """A controller's registration; see :class:`Broker` for the fields."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    supported_features: dict[str, dict[str, int]]


def _listeners(data: Message) -> tuple[Listener, ...]:
    named = {
        point["name"]: Listener(
            point["name"], point["host"], point["port"], enum_name(SECURITY_PROTOCOLS, point["securityProtocol"])
        )
        for point in data["endPoints"]
    }
    return tuple(named[name] for name in sorted(named))


def _features(data: Message) -> dict[str, dict[str, int]]:
    ranges = {f["name"]: {"min": f["minSupportedVersion"], "max": f["maxSupportedVersion"]} for f in data["features"]}
    return dict(sorted(ranges.items()))


def _sorted(ids: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """Sort the ids of log directories as ``BrokerRegistration`` does, by ``Uuid.compareTo``."""
    return tuple(sorted(ids, key=_SIGNED_HALVES.unpack))


def _uuids(values: list[Uuid] | None) -> tuple[Uuid, ...] | None:
    return None if values is None else tuple(values)


@record(
    0,
    "RegisterBrokerRecord",
    "0-4",
    """
  brokerId                 int32
  isMigratingZkBroker      bool             2+          = false
  incarnationId            uuid
  brokerEpoch              int64
  endPoints                []BrokerEndpoint
    name                   string
    host                   string
    port                   uint16
    securityProtocol       int16
  features                 []BrokerFeature
    name                   string
    minSupportedVersion    int16
    maxSupportedVersion    int16
  rack                     string?
  fenced                   bool                         = true
  inControlledShutdown     bool             1+          = false
  logDirs                  []uuid           3+   tag 0
  cordonedLogDirs          []uuid?          4+   tag 1  = null
""",
)
def register_broker(delta: Delta, data: Message, origin: Origin) -> None:
    """Register a broker; the registration replaces an earlier one."""
    broker = Broker(
        id=data["brokerId"],
        epoch=data["brokerEpoch"],
        incarnation_id=data["incarnationId"],
        listeners=_listeners(data),
        supported_features=_features(data),
        rack=data["rack"],
        fenced=data["fenced"],
        in_controlled_shutdown=data.get("inControlledShutdown", False),
        is_migrating_zk_broker=data.get("isMigratingZkBroker", False),
        directories=_sorted(data.get("logDirs", ())),
        cordoned_directories=_uuids(data.get("cordonedLogDirs")),
    )
    delta.put("brokers", broker.id, broker, origin)


REGISTER_BROKER = register_broker


@record(
    1,
    "UnregisterBrokerRecord",
    "0",
    """
  brokerId     int32
  brokerEpoch  int64
""",
)
def unregister_broker(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove a broker's registration. As in Kafka, neither its existence nor its epoch is checked."""
    delta.drop("brokers", data["brokerId"])


def _registered(delta: Delta, broker_id: int, epoch: int) -> Broker:
    """Return a broker. Raises ReplayError if it is not registered with that broker epoch."""
    entry: Entry[Broker] | None = delta.peek("brokers").get(broker_id)
    if entry is None:
        raise ReplayError(f"broker {broker_id} is not registered")
    if entry.value.epoch != epoch:
        raise ReplayError(f"broker {broker_id} has epoch {entry.value.epoch}, the record is for epoch {epoch}")
    return entry.value


@record(
    7,
    "FenceBrokerRecord",
    "0",
    """
  id     int32
  epoch  int64
""",
)
def fence_broker(delta: Delta, data: Message, origin: Origin) -> None:
    """Fence a broker. From metadata.version 3.3-IV3 on, BrokerRegistrationChangeRecord is written instead."""
    broker = _registered(delta, data["id"], data["epoch"])
    delta.put("brokers", broker.id, broker._replace(fenced=True), origin)


@record(
    8,
    "UnfenceBrokerRecord",
    "0",
    """
  id     int32
  epoch  int64
""",
)
def unfence_broker(delta: Delta, data: Message, origin: Origin) -> None:
    """Unfence a broker: the opposite of :func:`fence_broker`."""
    broker = _registered(delta, data["id"], data["epoch"])
    delta.put("brokers", broker.id, broker._replace(fenced=False), origin)


# The record's codes of `fenced` and `inControlledShutdown` -> the new value; None: no change.
_FENCING = {-1: False, 0: None, 1: True}
_SHUTDOWN = {0: None, 1: True}


@record(
    17,
    "BrokerRegistrationChangeRecord",
    "0-3",
    """
  brokerId              int32
  brokerEpoch           int64
  fenced                int8            tag 0
  inControlledShutdown  int8     1+     tag 1
  logDirs               []uuid   2+     tag 2
  cordonedLogDirs       []uuid?  3+     tag 3  = null
""",
)
def broker_registration_change(delta: Delta, data: Message, origin: Origin) -> None:
    """Change the fields of a registration that the record has; an empty list of log directories changes nothing."""
    broker = _registered(delta, data["brokerId"], data["brokerEpoch"])
    changed = change_registration(broker, data)
    if changed != broker:
        delta.put("brokers", broker.id, changed, origin)


def change_registration(broker: Broker, data: Message) -> Broker:
    """Return a broker after a BrokerRegistrationChangeRecord. Raises ReplayError for codes that no release defines."""
    fenced, shutdown = data.get("fenced", 0), data.get("inControlledShutdown", 0)
    if fenced not in _FENCING or shutdown not in _SHUTDOWN:
        raise ReplayError(f"unknown change of broker {broker.id}: fenced {fenced}, inControlledShutdown {shutdown}")
    changes: dict[str, Any] = {"fenced": _FENCING[fenced], "in_controlled_shutdown": _SHUTDOWN[shutdown]}
    changes["directories"] = _sorted(data.get("logDirs", ())) or None
    changes["cordoned_directories"] = _uuids(data.get("cordonedLogDirs"))
    return broker._replace(**{name: value for name, value in changes.items() if value is not None})


REGISTRATION_CHANGE = broker_registration_change


@record(
    27,
    "RegisterControllerRecord",
    "0",
    """
  controllerId             int32
  incarnationId            uuid
  zkMigrationReady         bool
  endPoints                []ControllerEndpoint
    name                   string
    host                   string
    port                   uint16
    securityProtocol       int16
  features                 []ControllerFeature
    name                   string
    minSupportedVersion    int16
    maxSupportedVersion    int16
""",
)
def register_controller(delta: Delta, data: Message, origin: Origin) -> None:
    """Register a controller; the registration replaces an earlier one."""
    controller = Controller(
        data["controllerId"], data["incarnationId"], data["zkMigrationReady"], _listeners(data), _features(data)
    )
    delta.put("controllers", controller.id, controller, origin)


@record(29, "UnregisterControllerRecord", "0", "  controllerId  int32")
def unregister_controller(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove a controller's registration (Kafka 4.4 and later)."""
    delta.drop("controllers", data["controllerId"])
