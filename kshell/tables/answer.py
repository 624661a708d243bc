"""The answer of a command that shows one table, such as ``topics`` or ``acls``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kshell.engine.result import Row, Rows
from kshell.metadata.image import Image
from kshell.tables.declaration import FieldNames, Table, image_for
from kshell.tables.existing import note_unknown_names
from kshell.tables.selection import RowArguments, select, wanted

if TYPE_CHECKING:
    from kshell.engine.session import Session

Make = Callable[["Session", Image, FieldNames], Iterable[Row]]


def table_answer(
    session: Session,
    args: RowArguments,
    table: Table,
    *,
    make: Make | None = None,
    readable: Callable[[Row], Row] | None = None,
) -> Rows:
    """Return the rows of a table that the line's options (:func:`.row_flags`) ask for.

    ``make`` gives the rows in place of ``table.rows``, for a command with options of its own; ``readable`` makes a row
    for users. Raises SourceError where the source does not report the table.
    """
    image = image_for(session, table.name, table.parts)
    note_unknown_names(session, image, args.where)
    rows = (make or table.rows)(session, image, wanted(table.fields, args))
    return select(table.fields, rows, args, readable=readable)
