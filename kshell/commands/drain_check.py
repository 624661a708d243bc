"""``drain-check``: the partitions that would go offline, or refuse acks=all, if brokers were stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.cluster.broker_arguments import broker_id, complete_broker, refuse_unknown
from kshell.cluster.min_isr_flag import (
    MIN_ISR_DEFAULT,
    MinIsrRowArguments,
    may_be_missing,
    min_isr_of,
    unknown_without_rows,
)
from kshell.cluster.min_isr_flag import OF_ROWS as MIN_ISR
from kshell.engine import tones
from kshell.engine.declaration import Arg, Command, Example, Task
from kshell.engine.result import Result, Row
from kshell.errors import EXIT_FINDING, EXIT_OK
from kshell.metadata.image import Image
from kshell.metadata.partial import is_unreported, reported_ids, reported_or_none
from kshell.metadata.partition_state import MinIsr
from kshell.metadata.partitions import Partition
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.existing import BROKER_ID, TOPIC_NAME, note_unknown_names
from kshell.tables.selection import row_flags, select, worst_first
from kshell.tables.state.topics import by_name
from kshell.wording import first_of

if TYPE_CHECKING:
    from kshell.engine.session import Session

LAST_IN_SYNC = "last-in-sync"
UNDER_MIN_ISR = "under-min-isr"
RISKS = (LAST_IN_SYNC, UNDER_MIN_ISR)
"""The risks, worst first: the order of rows in text output."""
_RISK = Enumeration(RISKS)
_FIELDS = (
    Field("topic", TOPIC_NAME, "the topic's name", spare=-1),
    Field("partition", "int32", "the partition's number", spare=-1),
    Field(
        "risk",
        _RISK,
        f"{LAST_IN_SYNC}: no in-sync replica is left; {UNDER_MIN_ISR}: too few for acks=all",
        spare=-1,
        tone=tones.state,
    ),
    Field("leader", BROKER_ID, "the broker that leads it now; -1 for none"),
    Field("replicas", [BROKER_ID], "brokers that are to have it"),
    Field("isr", [BROKER_ID], "those in sync now"),
    Field("isrAfter", [BROKER_ID], "those that would be left in sync"),
    Field("minIsr", "int32", "min.insync.replicas; null if unknown", spare=1),
    Field("elr", [BROKER_ID], "those outside the ISR that may lead without loss", True),
    Field("topicId", "string", "the topic's id", True),
)


class DrainCheckArguments(MinIsrRowArguments):
    """Arguments and options of ``drain-check``."""

    broker: list[str]


def run(session: Session, args: DrainCheckArguments) -> Result:
    """Return one row per partition at risk; exit code 1 if there is any. Raises CommandError for an unknown broker."""
    image = image_for(session, "drain-check", ("topics", "brokers", "configs"))
    note_unknown_names(session, image, args.where)
    leaving = frozenset(broker_id(text) for ids in args.broker for text in ids.split(","))
    least = min_isr_of(session, image, args)
    rows: list[Row] = []
    unknown = 0
    for row in _losing(image, leaving, least):
        if row["risk"] is not None:
            rows.append(row)
        else:
            unknown += may_be_missing(_FIELDS, args, {**row, "risk": UNDER_MIN_ISR})
    refuse_unknown(image, leaving)
    session.remarks += _already_down(image, leaving)
    result = select(_FIELDS, rows, args, exit_code=EXIT_FINDING if rows else EXIT_OK)
    unknown_without_rows(result, args, unknown)
    result.readable = select(_FIELDS, worst_first(rows, args, "risk", RISKS), args)
    return result


_NAMED = 3
"""Partitions that a remark names at most."""


def _already_down(image: Image, leaving: frozenset[int]) -> Iterator[str]:
    """Remarks on brokers that are down already (the table lacks them), and on offline partitions that need them."""
    fenced = sorted(
        broker for broker in leaving.intersection(image["brokers"]) if image["brokers"][broker].value.fenced
    )
    if fenced:
        listed = ", ".join(map(str, fenced))
        yield f"already fenced, so that stopping changes nothing for clients: {listed}"
    waiting = [
        f"{topic.name}-{number}"
        for topic in by_name(image)
        for number, value in topic.scan()
        if isinstance(value, Partition) and value.leader == -1 and not leaving.isdisjoint(_candidates(value))
    ]
    if waiting:
        yield (
            "keep the disks: offline without a leader, and waiting for these brokers:"
            f" {first_of(waiting, _NAMED)}; `why {waiting[0]}`"
        )


def _candidates(value: Partition) -> tuple[int, ...]:
    """The brokers that can bring an offline partition back: ISR and ELR, else its last known ELR, else its replicas."""
    return (*value.isr, *reported_ids(value.elr)) or reported_ids(value.last_known_elr) or value.replicas


def _losing(image: Image, leaving: frozenset[int], least: MinIsr) -> Iterator[Row]:
    """Rows of the partitions that would have no in-sync replica, or too few for acks=all, without these brokers.

    ``risk`` is ``None`` for those that would have fewer, of which it is unknown whether these are enough.
    """
    fenced = {broker_id for broker_id, entry in image["brokers"].items() if entry.value.fenced}
    stopping = leaving - fenced
    for topic in by_name(image):
        for number, value in topic.scan():
            if not isinstance(value, Partition) or leaving.isdisjoint(value.isr):
                continue
            after = [broker for broker in value.isr if broker not in leaving]
            enough = least.of(topic.name, value.leader)
            risk: str | None
            if fenced.issuperset(after):
                risk = LAST_IN_SYNC
            elif stopping.isdisjoint(value.isr):
                continue
            elif enough is None:
                risk = None
            elif len(after) < enough:
                risk = UNDER_MIN_ISR
            else:
                continue
            yield {
                "topic": topic.name,
                "partition": number,
                "risk": risk,
                "leader": reported_or_none(value.leader),
                "replicas": list(value.replicas),
                "isr": list(value.isr),
                "isrAfter": after,
                "minIsr": enough,
                "elr": None if is_unreported(value.elr) else list(value.elr),
                "topicId": str(topic.id),
            }


COMMAND = Command(
    name="drain-check",
    task=Task.PROBLEMS,
    summary="partitions that would lose their last in-sync replica, or fall under min ISR, without a broker",
    run=run,
    arguments=DrainCheckArguments,
    args=(Arg("broker", "ids of the brokers that are to go, all at once", arity="+", complete=complete_broker),),
    flags=(MIN_ISR_DEFAULT, *row_flags(_FIELDS)),
    examples=(
        Example("drain-check 3", "whether broker 3 can be stopped"),
        Example("drain-check 2 --where 'risk == last-in-sync'", "partitions that nobody could read any longer", 1),
        Example("drain-check 1 --columns topic,partition,risk,isrAfter -o csv", "for a list of what to move first", 1),
    ),
    description=(
        "Lists the partitions that would suffer. last-in-sync: no in-sync replica would be left that is not fenced,"
        " so the partition goes offline (if it is not already), unless one of its elr (-o wide) runs, and the disks of"
        " these brokers may have the only copies of records; under-min-isr: producers with acks=all would be refused"
        " (brokers that are fenced already change nothing about that). `what-if --kill` shows who would lead instead."
        f" {MIN_ISR} A partition that has no replica in sync on these brokers is not listed, however bad it is."
    ),
    needs_records=True,
    exit_1_when="a partition would suffer, whether the options show it or not",
)
