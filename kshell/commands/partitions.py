"""``partitions``: list all partitions, or only those with given problems, such as ``--offline``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kshell.cluster.min_isr_flag import MIN_ISR_DEFAULT, MinIsrRowArguments, min_isr_answer
from kshell.cluster.min_isr_flag import OF_ROWS as MIN_ISR
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Result, Row
from kshell.metadata.image import Image
from kshell.metadata.partition_state import AT_MIN_ISR, OFFLINE, PROBLEMS, UNDER_MIN_ISR, MinIsr
from kshell.tables.declaration import FieldNames, Table
from kshell.tables.selection import asked_for, row_flags
from kshell.tables.state.topics import PARTITIONS_TABLE as TABLE
from kshell.tables.state.topics import partition_rows

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.where import Predicate

_PROBLEM_DESCRIPTIONS = {
    "offline": "without a leader",
    "under-replicated": "with fewer in-sync replicas than replicas",
    "under-min-isr": "with fewer in-sync replicas than min.insync.replicas, or without a leader",
    "at-min-isr": "with as many in-sync replicas as min.insync.replicas: one lost, and producers are refused,"
    " or the partition is offline where it was the only one",
    "non-preferred": "led by another broker than the first of their replicas",
    "reassigning": "to which replicas are being added, or from which removed",
    "unclean": "that recover from an unclean leader election",
}
_REASSIGNING_COLUMNS = {"addingReplicas": 0, "removingReplicas": 0}
_OFFLINE_COLUMNS = {"replicas": 0, "elr": 0, "leader": 1, "isr": 1}
"""Columns for offline partitions, most important first: leader and ISR, which are empty, are dropped before others."""


def _with(table: Table, spares: Mapping[str, int]) -> Table:
    """The table with these columns in text output, too; the number says how early a narrow terminal drops a column."""
    fields = (
        field._replace(wide=False, spare=spares[field.name]) if field.name in spares else field
        for field in table.fields
    )
    return table._replace(fields=tuple(fields))


_OF_MIN_ISR = frozenset((UNDER_MIN_ISR, AT_MIN_ISR))


def _depends_on_min_isr(where: Predicate) -> bool:
    """Whether min.insync.replicas decides ``--where``: comparing state or problems to others does not need it."""
    fields = asked_for(TABLE.fields, where)
    if "minIsr" in fields:
        return True
    named = where.words.intersection(PROBLEMS)
    independent_problems = {OFFLINE} if "state" in fields else set(PROBLEMS) - _OF_MIN_ISR
    return not fields.isdisjoint(("state", "problems")) and not (named and named <= independent_problems)


class PartitionsArguments(MinIsrRowArguments):
    """Arguments and options of ``partitions``."""

    offline: bool
    under_replicated: bool
    under_min_isr: bool
    at_min_isr: bool
    non_preferred: bool
    reassigning: bool
    unclean: bool


def run(session: Session, args: PartitionsArguments) -> Result:
    """Return one row per partition; with flags, only for partitions that have at least one of these problems."""
    problems = frozenset(problem for problem in PROBLEMS if getattr(args, problem.replace("-", "_")))
    is_chosen_by_min_isr = not problems.isdisjoint(_OF_MIN_ISR)
    needs_min_isr = is_chosen_by_min_isr or (args.where is not None and _depends_on_min_isr(args.where))

    def make(session: Session, image: Image, wanted: FieldNames, least: MinIsr) -> Iterable[Row]:
        return partition_rows(session, image, wanted, least, problems, args.where)

    spares = {
        **(_REASSIGNING_COLUMNS if args.reassigning else {}),
        **(_OFFLINE_COLUMNS if args.offline else {}),
        **({"minIsr": 0} if is_chosen_by_min_isr else {}),
    }
    return min_isr_answer(session, args, _with(TABLE, spares), make, needs_min_isr=needs_min_isr)


COMMAND = Command(
    name="partitions",
    task=Task.CLUSTER,
    summary="the partitions of all topics, or those with certain problems",
    run=run,
    arguments=PartitionsArguments,
    extra_words_for="topic",
    flags=(
        *(Flag((f"--{name}",), f"those {description}") for name, description in _PROBLEM_DESCRIPTIONS.items()),
        MIN_ISR_DEFAULT,
        *row_flags(TABLE.fields),
    ),
    examples=(
        Example("partitions --where 'topic == orders'", "the partitions of a topic"),
        Example("partitions --offline --under-min-isr", "those that cannot be read, or written with acks=all"),
        Example(
            "partitions --where '3 in replicas and not 3 in isr' --columns topic,partition,isr", "out of sync on 3"
        ),
        Example("partitions --non-preferred --sort leader,topic -o csv", "for a spreadsheet"),
    ),
    description=(
        "Several of the flags give the partitions that have any of those problems; --where narrows further. The"
        " problems are defined as in kafka-topics.sh: replicas that a reassignment adds do not count as missing, and a"
        f" partition without a leader is under min ISR, too. {MIN_ISR} state is the worst of offline, under-min-isr and"
        " under-replicated, else online; a partition whose record cannot be read is undecoded. The column problems"
        " (-o wide) has all of them."
    ),
)
