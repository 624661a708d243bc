"""``kshell-pipeline compact``: what many steps have written into few files."""

from __future__ import annotations

from typing import Any

from kshell.commands.base.result import Rows, typed
from kshell.commands.base.spec import Example, Flag
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.base.warehouse_flags import OUT
from kshell.spark.warehouse.compaction import LARGE

_COLUMNS = typed("table:string rows:int64 filesBefore:int64 filesAfter:int64 bytesBefore:int64 bytesAfter:int64")
_LARGE = LARGE >> 20


def run(args: Any) -> Rows:
    """A row for each table that was rewritten. Raises CommandError where there are no tables: nothing is made there."""
    from kshell.spark.verbs.base.opened import opened
    from kshell.spark.warehouse.compaction import compact

    with opened(args) as place:
        if not place.warehouse.state.step:
            raise place.warehouse.no_tables()
        with place.warehouse.writing():
            made = compact(place.warehouse, args.larger << 20, told=place.progress)
        return Rows(_COLUMNS, made)


def _megabytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise ValueError("a number of megabytes")
    return int(text[:9])


VERB = Verb(
    name="compact",
    summary="put the batches that many steps have written together",
    run=run,
    flags=(
        OUT,
        Flag(("--larger",), f"leave batches alone that have so many megabytes ({_LARGE})", "MB", _megabytes, _LARGE),
        *SPARK_FLAGS,
    ),
    examples=(Example(f"{NAME} compact --out tables", "after many steps of a stream"),),
    description=(
        "Rows stay what they are. Tables that are replaced as a whole have nothing to put together. It is a step of its"
        " own: when it is killed, nothing has changed."
    ),
)
