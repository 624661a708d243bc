"""``tokens``: delegation tokens, and when they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result, Row
from kshell.tables.answer import table_answer
from kshell.tables.selection import RowArguments, row_flags
from kshell.tables.state.access import TOKENS_TABLE as TABLE
from kshell.tree.image import iso

if TYPE_CHECKING:
    from kshell.engine.session import Session

_TIMES = ("issueTimestamp", "expiryTimestamp", "maxTimestamp")


def run(session: Session, args: RowArguments) -> Result:
    """Return one row per token; text output has times instead of milliseconds."""
    return table_answer(session, args, TABLE, readable=_readable)


def _readable(row: Row) -> Row:
    return {**row, **{name: iso(row[name]) for name in _TIMES}}


COMMAND = Command(
    name="tokens",
    task=Task.ACCESS,
    summary="the delegation tokens, and when they end",
    run=run,
    arguments=RowArguments,
    extra_words_for="owner",
    flags=row_flags(TABLE.fields),
    examples=(
        Example("tokens", "every token, the one that ends first above"),
        Example("tokens --where \"owner == 'User:svc-etl'\" -o json", "those of a principal, exactly"),
    ),
    description=(
        "A token is renewed until maxTimestamp at the latest. One that has ended stays in the log until the controller"
        " removes it. The log holds nothing that would let anybody use a token."
    ),
)
