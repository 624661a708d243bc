"""``topics``: list the topics, each with how many of its partitions are offline, under-replicated or under min ISR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.cluster.min_isr_flag import MIN_ISR_DEFAULT, MinIsrRowArguments, min_isr_answer
from kshell.cluster.min_isr_flag import OF_ROWS as MIN_ISR
from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result, Row
from kshell.metadata.image import Image
from kshell.metadata.partition_state import MinIsr
from kshell.tables.declaration import FieldNames
from kshell.tables.selection import asked_for, row_flags
from kshell.tables.state.topics import TOPICS_TABLE as TABLE
from kshell.tables.state.topics import topic_rows

if TYPE_CHECKING:
    from kshell.engine.session import Session

_OF_MIN_ISR = frozenset(("minIsr", "underMinIsr"))


def run(session: Session, args: MinIsrRowArguments) -> Result:
    """Return one row per topic; partitions are decoded only if a field needs them."""

    needs_min_isr = args.where is not None and not _OF_MIN_ISR.isdisjoint(asked_for(TABLE.fields, args.where))

    def make(session: Session, image: Image, wanted: FieldNames, least: MinIsr) -> Iterable[Row]:
        return topic_rows(session, image, wanted, least, args.where)

    return min_isr_answer(session, args, TABLE, make, needs_min_isr=needs_min_isr)


COMMAND = Command(
    name="topics",
    task=Task.CLUSTER,
    summary="the topics, and how many of their partitions are in trouble",
    run=run,
    arguments=MinIsrRowArguments,
    extra_words_for="name",
    flags=(MIN_ISR_DEFAULT, *row_flags(TABLE.fields)),
    examples=(
        Example("topics", "every topic"),
        Example("topics --where 'underReplicated > 0 or offline > 0' --sort -offline,name", "those in trouble"),
        Example("topics --columns name,partitions,minIsr -o json", "three fields, exactly"),
        Example("topics --where 'configs.cleanup.policy == compact' --columns name", "by what is set"),
    ),
    description=(
        "underReplicated, offline and underMinIsr count partitions, as kafka-topics.sh does: replicas that a"
        f" reassignment adds do not count yet, and a partition without a leader is under min ISR, too. {MIN_ISR}"
    ),
)
