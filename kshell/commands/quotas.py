"""``quotas``: the limits of users, client ids and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result
from kshell.tables.answer import table_answer
from kshell.tables.selection import RowArguments, row_flags
from kshell.tables.state.access import QUOTAS_TABLE as TABLE

if TYPE_CHECKING:
    from kshell.engine.session import Session


def run(session: Session, args: RowArguments) -> Result:
    """Return one row per limit (one quota key of one entity)."""
    return table_answer(session, args, TABLE)


COMMAND = Command(
    name="quotas",
    task=Task.ACCESS,
    summary="the limits of users, client ids and addresses",
    run=run,
    arguments=RowArguments,
    extra_words_for="user",
    flags=row_flags(TABLE.fields),
    examples=(
        Example("quotas", "every limit"),
        Example("quotas --where 'user != null' --sort -value", "those of users, the highest first"),
        Example("quotas --where \"key ~ 'byte_rate'\" --columns name,key,value -o json", "for a script"),
    ),
    description=(
        "An entity is a user, a client id, both together, or an address; what it does not have is null, and <default>"
        " is every one that has no limit of its own. A user, a client id or an address that is really called <default>"
        " reads %3Cdefault>, as in the tree's paths. The column entity (-o wide) is Kafka's own form: there null is the"
        " default, and every name is exact."
    ),
)
