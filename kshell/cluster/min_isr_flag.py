"""The flag ``--min-isr-default``: min.insync.replicas where only brokers' server.properties have it, not the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arguments, Flag
from kshell.engine.predicates import answers_unknown_without_rows
from kshell.engine.result import Row, Rows
from kshell.metadata.families.topics import NAMES
from kshell.metadata.image import Image
from kshell.metadata.partition_state import MinIsr
from kshell.tables.answer import table_answer
from kshell.tables.declaration import FieldNames, Table
from kshell.tables.selection import RowArguments

if TYPE_CHECKING:
    from kshell.engine.session import Session


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 10):
        raise ValueError("a whole number of 1 or more")
    return int(text)


MIN_ISR_DEFAULT = Flag(
    ("--min-isr-default",),
    "min.insync.replicas in the brokers' server.properties, which the log does not hold",
    metavar="N",
    convert=_positive,
)


class MinIsrArguments(Arguments):
    """The value of :data:`MIN_ISR_DEFAULT`; base class for the arguments of a command that has this flag."""

    min_isr_default: int | None


class MinIsrRowArguments(MinIsrArguments, RowArguments):
    """Base class for a command that also has ``--where``, ``--columns`` and the other options of rows."""


DESCRIPTION = (
    "min.insync.replicas is the topic's, else that of the broker which leads, else that of all brokers, as far as these"
    " are set in the log; what only a server.properties says is unknown (null), or --min-isr-default."
)


def min_isr_of(session: Session, image: Image, args: MinIsrArguments) -> MinIsr:
    """The ``min.insync.replicas`` of each topic; a remark says for how many topics it is unknown."""
    least = MinIsr(image, args.min_isr_default)
    note_unknown(session, image, least)
    return least


def note_unknown(session: Session, image: Image, least: MinIsr) -> int:
    """Count the topics whose value is unknown, and add a remark if there are any."""
    unknown = sum(least.of(name) is None for name in image[NAMES])
    if unknown:
        topics = "1 topic" if unknown == 1 else f"{unknown} topics"
        session.remarks.append(
            f"min.insync.replicas of {topics} is not in the log: --min-isr-default says what the brokers' files have"
        )
    return unknown


def min_isr_answer(
    session: Session,
    args: MinIsrRowArguments,
    table: Table,
    make: Callable[[Session, Image, FieldNames, MinIsr], Iterable[Row]],
    *,
    needs_min_isr: bool,
) -> Rows:
    """Answer with a table whose rows, made by ``make``, depend on min.insync.replicas.

    ``needs_min_isr``: whether the user's question does, too. Then a remark counts the topics whose value is unknown,
    and ``--fail-if-any`` without rows exits with 3 (unknown) instead of 0.
    """
    unknown = 0

    def rows(session: Session, image: Image, wanted: FieldNames) -> Iterable[Row]:
        nonlocal unknown
        least = MinIsr(image, args.min_isr_default)
        unknown = note_unknown(session, image, least) if needs_min_isr else 0
        return make(session, image, wanted, least)

    result = table_answer(session, args, table, make=rows)
    if args.fail_if_any and unknown:
        answers_unknown_without_rows(result)
    return result
