"""``mark``: give a name to an offset of the log, list these names, or remove one (:mod:`kshell.sources.marks`)."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.commands.as_of import complete_point
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Nothing, Result, Rows, typed
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.sources.directory.records import log_records
from kshell.sources.marks import Mark
from kshell.tree.image import epoch_ms, iso

_COLUMNS = typed("name:string offset:int64 time:timestamp timeMs:int64")


class MarkArguments(Arguments):
    """Arguments and options of ``mark``."""

    name: str | None
    point: list[str]
    remove: str | None


def run(session: Session, args: MarkArguments) -> Result:
    """Set or remove a mark; list all marks if no name is given."""
    if args.remove is not None:
        if args.name is not None:
            raise UsageError("mark: --remove NAME takes no other argument")
        session.marks.remove(args.remove.removeprefix("@"))
        return Nothing()
    if args.name is None:
        return _rows(session.marks.all())
    session.source.require_log("mark")
    then = session.reshape(point=" ".join(args.point)) if args.point else session
    last = then.loaded.last_offset
    offset = last if then.until is None else then.until
    if offset > last:
        reason = "cannot be read" if then.loaded.damage else "is not written yet"
        raise CommandError(f"offset {offset} {reason}", hint=f"the last one here is {last}" if last >= 0 else None)
    if offset < 0:
        raise CommandError("there is no record yet that could be marked")
    mark = Mark(args.name.removeprefix("@"), offset, _time(then, offset))
    session.marks.add(mark)
    if session.marks.path is None:
        session.remarks.append("no home directory to keep the mark in: it is forgotten when kshell ends")
    return _rows([mark])


def _time(session: Session, offset: int) -> int:
    """Return the time of the record at an offset of what is loaded, in epoch milliseconds.

    The image has it only of the last record that took effect: not of a control record, or one of an open transaction.
    """
    last = session.image.provenance
    if offset == last.offset:
        return last.timestamp
    records = log_records(session.source, start=offset, until=offset)
    return next((record.timestamp for record in records), session.loaded.last_timestamp)


def _rows(marks: list[Mark]) -> Rows:
    rows = [
        {"name": mark.name, "offset": mark.offset, "time": iso(mark.time_ms), "timeMs": epoch_ms(mark.time_ms)}
        for mark in marks
    ]
    return Rows(_COLUMNS, rows)


def _complete_name(session: Session, typed: str) -> Iterable[str]:
    return [mark.name for mark in session.marks.all() if mark.name.startswith(typed)]


COMMAND = Command(
    name="mark",
    task=Task.PAST,
    summary="names for points in time",
    run=run,
    arguments=MarkArguments,
    args=(
        Arg("name", "the name; the point is then @NAME wherever a point is asked for", arity="?"),
        Arg("point", "the point; the one that the shell shows when absent", arity="*", complete=complete_point),
    ),
    flags=(Flag(("--remove",), "forget that mark", metavar="MARK", complete=_complete_name),),
    examples=(
        Example("mark before-import 158", "a name for an offset"),
        Example("mark", "the marks of this cluster"),
        Example("mark --remove before-import", "forget it"),
    ),
    description=(
        "A mark is an offset with a name: `as-of @before-import`, `diff @before-import now`. Without a point it is the"
        " last record of what the shell shows. Setting an existing name again moves the mark. Marks belong to the"
        " cluster (by its id; a directory without a cluster id is known by its path) and are kept in"
        " $XDG_STATE_HOME/kshell/marks.json, or in ~/.local/state/kshell; without a home directory, until the shell"
        " ends."
    ),
)
