"""The flag ``--min-isr-default``: min.insync.replicas where only brokers' server.properties have it, not the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arguments, Flag
from kshell.engine.predicates import answers_unknown_without_rows
from kshell.engine.result import Row, Rows
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partial import NOT_AVAILABLE
from kshell.metadata.partition_state import MinIsr
from kshell.metadata.partitions import Partition
from kshell.tables.answer import table_answer
from kshell.tables.declaration import Field, FieldNames, Table
from kshell.tables.selection import RowArguments, asked_for

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
    " are set in the log; what only a server.properties says is unknown (null), or --min-isr-default. It is unknown,"
    " too, where brokers (-b) refuse the configs that may have it."
)
OF_ROWS = f"{DESCRIPTION} If no row is left and the answer depends on an unknown value, --fail-if-any ends with 3."
""":data:`DESCRIPTION` for commands that have :class:`MinIsrRowArguments`."""


def min_isr_of(session: Session, image: Image, args: MinIsrArguments) -> MinIsr:
    """The ``min.insync.replicas`` of each topic; a remark says for how many topics it is unknown."""
    least = MinIsr(image, args.min_isr_default)
    note_unknown(session, image, least)
    return least


def note_unknown(session: Session, image: Image, least: MinIsr) -> int:
    """Count the topics whose value is unknown, and add remarks if there are any."""
    unknown = {name: least.unreported(name) for name in image[NAMES] if least.of(name) is None}
    if least.has_unreported_brokers():
        for topic in image[TOPICS].values():
            if topic.name in unknown:
                continue
            leaders = {value.leader for _, value in topic.scan() if isinstance(value, Partition)}
            gaps = (least.unreported(topic.name, leader) for leader in leaders)
            if (gap := next(filter(None, gaps), None)) is not None:
                unknown[topic.name] = gap
    refused = [gap for gap in unknown.values() if gap is not None]
    if refused:
        resource, reason = refused[0]
        rest = len({gap.resource for gap in refused}) - 1
        more = f" (and {rest} more)" if rest else ""
        session.remarks.append(
            f"min.insync.replicas of {_topics(len(refused))} is unknown: brokers do not report the configs of"
            f" {resource or 'anything'}{more}: {reason.removeprefix(f'{NOT_AVAILABLE}: ')}; --min-isr-default does not"
            " count there, as a value may be set"
        )
    if unset := len(unknown) - len(refused):
        session.remarks.append(
            f"min.insync.replicas of {_topics(unset)} is not in the log: --min-isr-default says what the brokers' files"
            " have"
        )
    return len(unknown)


def _topics(count: int) -> str:
    return "1 topic" if count == 1 else f"{count} topics"


def unknown_without_rows(result: Rows, args: RowArguments, unknown: int) -> None:
    """Make the exit code of ``--fail-if-any`` without rows 3 if the value is unknown for some: they may be missing."""
    if args.fail_if_any and unknown:
        answers_unknown_without_rows(result)


def may_be_missing(fields: Sequence[Field], args: RowArguments, row: Row) -> bool:
    """Whether a row that the answer lacks, because ``minIsr`` is unknown, would fulfil ``--where`` with some value."""
    return args.where is None or "minIsr" in asked_for(fields, args.where) or args.where(row)


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
    unknown_without_rows(result, args, unknown)
    return result
