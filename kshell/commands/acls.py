"""``acls``: the access control entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Result, Row
from kshell.metadata.image import Image
from kshell.tables.answer import table_answer
from kshell.tables.declaration import FieldNames
from kshell.tables.selection import RowArguments, row_flags
from kshell.tables.state.access import ACLS_TABLE as TABLE

if TYPE_CHECKING:
    from kshell.engine.session import Session

_EVERYBODY = "User:*"


class AclsArguments(RowArguments):
    """Arguments and options of ``acls``."""

    principal: str | None


def run(session: Session, args: AclsArguments) -> Result:
    """Return one row per ACL; with ``--principal``, only the ACLs of this principal and those of ``User:*``."""
    if args.principal is None:
        return table_answer(session, args, TABLE)
    counting = {args.principal, _EVERYBODY}

    def make(session: Session, image: Image, wanted: FieldNames) -> Iterable[Row]:
        return (row for row in TABLE.rows(session, image, None) if row["principal"] in counting)

    return table_answer(session, args, TABLE, make=make)


def _principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError("a principal, such as User:alice")
    return text


def complete_principal(session: Session, typed: str) -> Iterable[str]:
    """Complete a principal: those that ACLs name."""
    return sorted({entry.value.principal for entry in session.image["acls"].values()})


COMMAND = Command(
    name="acls",
    task=Task.ACCESS,
    summary="the access control entries",
    run=run,
    arguments=AclsArguments,
    extra_words_for="principal",
    flags=(
        Flag(
            ("--principal",),
            "those that count for this principal: its own, and those of User:*",
            metavar="TYPE:NAME",
            convert=_principal,
            complete=complete_principal,
        ),
        *row_flags(TABLE.fields),
    ),
    examples=(
        Example("acls", "every entry"),
        Example("acls --principal User:intern", "what counts for one principal"),
        Example("acls --where 'permissionType == DENY' -o json", "what is forbidden"),
    ),
    description=(
        "Each row is one entry, with its id, as in /image/acls/byId. `can` answers whether a principal may do"
        " something. Brokers (-b) do not report ids."
    ),
)
