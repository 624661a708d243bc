"""``registrations``: the registrations of brokers and controllers, and which are stale: no running node uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.cluster.broker_load import loads
from kshell.cluster.health import StepOf, steps_of
from kshell.engine import tones
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import TIMESTAMP, Result, Row
from kshell.metadata.image import Image
from kshell.metadata.partial import is_node_reported, reported_or_none
from kshell.metadata.values import Entry
from kshell.sources.directory import describe
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, row_flags, select
from kshell.tree.image import epoch_ms, iso

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

BROKER, CONTROLLER = "broker", "controller"
_FIELDS = (
    Field("kind", Enumeration((BROKER, CONTROLLER)), "broker or controller"),
    Field("id", "int32", "the node's id"),
    Field("epoch", "int64", "the epoch of a broker's registration", True),
    Field("incarnationId", "string", "another with every start of the node", True),
    Field("fenced", "boolean", "whether a broker is fenced", tone=tones.harm),
    Field("inControlledShutdown", "boolean", "whether a broker is handing over what it leads", True),
    Field("replicas", "int32", "replicas that are placed on a broker"),
    Field("stale", "boolean", "whether no running node seems to own it", tone=tones.doubt),
    Field("reason", "string", "why, and what to do", prose=True),
    Field("changed", TIMESTAMP, "when the log last changed it; null if only a snapshot or a node reported it"),
    Field("changedMs", "int64", "the same in epoch milliseconds", True),
)


class RegistrationsArguments(RowArguments):
    """Arguments and options of ``registrations``."""

    stale: bool


def run(session: Session, args: RegistrationsArguments) -> Result:
    """Return one row per registration; with ``--stale``, only for stale ones."""
    image = image_for(session, "registrations", ("brokers", "topics"))
    step = steps_of(session)
    rows: list[Row] = [*_brokers(image, step), *_controllers(session, image, step)]
    if args.stale:
        rows = [row for row in rows if row["stale"]]
    return select(_FIELDS, rows, args)


def _brokers(image: Image, step: StepOf) -> Iterator[Row]:
    load_by_broker = loads(image)
    for broker_id, entry in sorted(image["brokers"].items()):
        broker, replicas = entry.value, load_by_broker[broker_id].replicas
        stale = broker.fenced is True  # even if inControlledShutdown: a broker that has shut down keeps that flag
        reason = None
        if stale and replicas:
            count = "1 replica is" if replicas == 1 else f"{replicas} replicas are"
            reason = f"fenced: it sends no heartbeats; {count} placed on it: start it, or move them first"
        elif stale:
            reason = f"fenced, and has no replicas; {step('staleRegistration', {'id': broker_id}).text}"
        yield {
            "kind": BROKER,
            "id": broker_id,
            "epoch": reported_or_none(broker.epoch),
            "incarnationId": reported_or_none(str(broker.incarnation_id)),
            "fenced": reported_or_none(broker.fenced),
            "inControlledShutdown": reported_or_none(broker.in_controlled_shutdown),
            "replicas": replicas,
            "stale": stale,
            "reason": reason,
            **_changed(entry),
        }


def _controllers(session: Session, image: Image, step: StepOf) -> Iterator[Row]:
    """Rows of the controllers. One that is no voter is stale: it was removed, or is an observer that may become one."""
    voters = _voters(session) if image["controllers"] else None
    reason = "no voter of the quorum: it was removed, or is an observer"
    for node_id, entry in sorted(image["controllers"].items()):
        stale = voters is not None and node_id not in voters
        yield {
            "kind": CONTROLLER,
            "id": node_id,
            "incarnationId": reported_or_none(str(entry.value.incarnation_id)),
            "stale": stale,
            "reason": f"{reason}; {step('staleController', {'id': node_id}).text}" if stale else None,
            **_changed(entry),
        }


def _voters(session: Session) -> set[int] | None:
    return {voter["voterId"] for voter in describe.voters(session.loaded)} or None


def _changed(entry: Entry[object]) -> JsonObject:
    origin = entry.origin
    if is_node_reported(origin) or origin.place.in_snapshot:
        return {"changed": None, "changedMs": None}
    return {"changed": iso(origin.timestamp), "changedMs": epoch_ms(origin.timestamp)}


COMMAND = Command(
    name="registrations",
    task=Task.PROBLEMS,
    summary="the registrations of brokers and controllers, and which of them are stale",
    run=run,
    arguments=RegistrationsArguments,
    extra_words_for="id",
    flags=(Flag(("--stale",), "only registrations that no running node seems to own"), *row_flags(_FIELDS)),
    examples=(
        Example("registrations", "all of them"),
        Example("registrations --stale --columns kind,id,reason", "those that need attention"),
        Example("registrations --where 'kind == broker and replicas == 0' -o json", "brokers that hold nothing"),
    ),
    description=(
        "A broker's registration is stale while it is fenced: the broker sends no heartbeats. That may be a restart, or"
        " a machine that is gone for good; changed says since when, as far as the log knows. A controller's is stale if"
        " the controller is no voter of the quorum. From metadata.version 4.4-IV2"
        " on, kafka-cluster.sh unregister-controller --id N removes it, and so does kafka-metadata-quorum.sh"
        " remove-controller with --unregister, which takes a voter out of the quorum first."
    ),
)
