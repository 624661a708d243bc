"""``users``: list the SCRAM credentials of users: mechanism and number of iterations, without keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Example, Task
from kshell.engine.result import Result
from kshell.tables.answer import table_answer
from kshell.tables.selection import RowArguments, row_flags
from kshell.tables.state.access import USERS_TABLE as TABLE

if TYPE_CHECKING:
    from kshell.engine.session import Session


def run(session: Session, args: RowArguments) -> Result:
    """Return one row per credential, which is one mechanism of one user."""
    return table_answer(session, args, TABLE)


COMMAND = Command(
    name="users",
    task=Task.ACCESS,
    summary="the users with SCRAM credentials, their mechanisms and iterations",
    run=run,
    arguments=RowArguments,
    extra_words_for="name",
    flags=row_flags(TABLE.fields),
    examples=(
        Example("users", "every credential"),
        Example("users --where 'iterations < 8192'", "those with few iterations"),
        Example("users --columns name -o csv", "names only"),
    ),
    description=(
        "A user has one credential for each mechanism. Users that come from elsewhere (TLS certificates, OAuth, LDAP)"
        " are not in the metadata log. Keys and salts are no part of this answer: /image/scram has them, redacted."
    ),
)
