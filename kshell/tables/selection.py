"""Rows, columns and order of an answer: ``--where``, ``--sort``, ``--columns``, ``--limit``, ``--fail-if-any``.

A command with rows declares :func:`row_flags` among its flags and passes its rows to :func:`select`; the commands of
the history take ``--where`` alone (:func:`where_flag`), and ``--fail-if-any`` if they are no predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.arguments import count
from kshell.engine.declaration import CONDITION, Arguments, Flag
from kshell.engine.predicates import FAIL_IF_ANY, fail_if_any
from kshell.engine.result import Row, Rows
from kshell.errors import UsageError, did_you_mean
from kshell.tables.declaration import Field, FieldNames, columns, where_type

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.where import Predicate
    from kshell.tables.where_kinds import FieldType

_OPTIONS = ("where", "sort", "columns", "limit")


class Key(NamedTuple):
    """A field to sort by."""

    name: str
    falling: bool


class RowArguments(Arguments):
    """The parsed options of :func:`row_flags`."""

    where: Predicate | None
    sort: tuple[Key, ...] | None
    columns: tuple[str, ...] | None
    limit: int | None
    fail_if_any: bool


class Conditions:
    """Parses and completes ``--where`` for rows with these fields."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)

    def __call__(self, text: str) -> Predicate:
        """Return the condition that a text means. Raises ExpressionError."""
        from kshell.tables.where import compile_where  # late: most lines have no condition

        return compile_where(text, self._kinds())

    def complete(self, typed: str) -> Iterable[str]:
        """Complete an unfinished condition."""
        from kshell.tables.where import complete_where

        return complete_where(typed, self._kinds())

    def _kinds(self) -> dict[str, FieldType]:
        return {field.name: where_type(field.type) for field in self.fields}


def where_flag(fields: Sequence[Field]) -> Flag:
    """Return the flag ``--where`` for rows with these fields."""
    conditions = Conditions(fields)
    return Flag(
        ("--where",),
        "only rows that fulfil the condition",
        metavar=CONDITION,
        convert=conditions,
        complete=lambda session, typed: conditions.complete(typed),
        once=True,
    )


def row_flags(fields: Sequence[Field]) -> tuple[Flag, ...]:
    """Return the options of a command whose rows have these fields."""
    names = [field.name for field in fields]

    def complete_names(session: Session, typed: str) -> Iterable[str]:
        return _complete_listed(names, typed, "")

    def complete_keys(session: Session, typed: str) -> Iterable[str]:
        return _complete_listed(names, typed, "-")

    return (
        where_flag(fields),
        Flag(
            ("--sort",),
            "sort by these fields; put - before a field for descending order; null comes last",
            metavar="[-]FIELD,…",
            convert=lambda text: _keys(text, names),
            complete=complete_keys,
            dashed=True,
        ),
        Flag(
            ("--columns",),
            "show these fields, in this order",
            metavar="FIELD,…",
            convert=lambda text: _listed(text, names),
            complete=complete_names,
        ),
        Flag(("--limit",), "show at most this many rows", metavar="N", convert=count),
        FAIL_IF_ANY,
    )


def has_row_options(args: RowArguments) -> bool:
    """Whether the line has any option that selects or sorts rows, or selects columns."""
    return any(getattr(args, name) is not None for name in _OPTIONS)


def wanted(fields: Sequence[Field], args: RowArguments) -> FieldNames:
    """Return the fields that the line's options need, so that others can be left out of the rows; ``None`` for all."""
    if args.columns is None:
        return None
    names = {*args.columns, *(key.name for key in args.sort or ())}
    if args.where is not None:
        names |= asked_for(fields, args.where)
    return frozenset(names)


def asked_for(fields: Sequence[Field], where: Predicate) -> frozenset[str]:
    """Return the fields that a condition needs; one too many, without harm, if a text in it is also a field's name."""
    return frozenset(field.name for field in fields if field.name in where.words)


def worst_first(rows: Sequence[Row], args: RowArguments, name: str, order: Sequence[str]) -> Sequence[Row]:
    """Return rows sorted by where a field's value is in ``order``; with ``--limit`` unsorted, as in other formats."""
    return rows if args.limit is not None else sorted(rows, key=lambda row: order.index(row[name]))


def select(
    fields: Sequence[Field],
    rows: Iterable[Row],
    args: RowArguments,
    *,
    readable: Callable[[Row], Row] | None = None,
    tone: Callable[[Row], str] | None = None,
    exit_code: int = 0,
) -> Rows:
    """Return the answer with the rows that the line's options ask for; they stream unless they are sorted.

    With ``--fail-if-any`` the exit code is 1 if a row is left, else 0, also for a command with an exit code of its own.

    Args:
        readable: makes a row for users out of an exact one; conditions and sorting use the exact one.
        tone: as in :class:`Rows`.

    Raises:
        UsageError: ``--limit 0`` with ``--fail-if-any``, which needs a row to decide.
    """
    selected = columns(fields if args.columns is None else chosen(fields, args.columns))
    order = tuple((key.name, key.falling) for key in args.sort or ())
    result = Rows(selected, _Chosen(rows, args), tone=tone, order=order, exit_code=exit_code)
    if args.fail_if_any:
        fail_if_any(result, args.limit)
        if isinstance(rows, Sized):
            next(iter(result.rows), None)  # sets the exit code now: a command's own page may never read these rows
    if readable is not None:
        result.readable = Rows(selected, _ReadableRows(result, readable))
    return result


def chosen(fields: Sequence[Field], names: Iterable[str]) -> list[Field]:
    """Return the fields with these names, in the order of the names, set to be shown always."""
    fields_by_name = {field.name: field for field in fields}
    return [fields_by_name[name]._replace(wide=False, spare=0) for name in names]


class _Chosen:
    """The selected rows; each iteration selects again, if ``rows`` can be iterated again."""

    def __init__(self, rows: Iterable[Row], args: RowArguments) -> None:
        self._rows = rows
        self._args = args

    def __iter__(self) -> Iterator[Row]:
        where: Predicate | None = self._args.where
        rows = iter(self._rows) if where is None else filter(where, self._rows)
        for key in reversed(self._args.sort or ()):
            rows = iter(_sorted(rows, key))
        return rows if self._args.limit is None else islice(rows, self._args.limit)


class _ReadableRows:
    """The rows of an answer, converted for users while iterating; ``watch`` may replace ``result.rows`` before."""

    def __init__(self, result: Rows, readable: Callable[[Row], Row]) -> None:
        self._result = result
        self._readable = readable

    def __iter__(self) -> Iterator[Row]:
        return map(self._readable, self._result.rows)


def _sorted(rows: Iterable[Row], key: Key) -> list[Row]:
    """Sort rows by one key, nulls last. Stable, so that several keys are applied from the last to the first."""
    not_null: list[Row] = []
    null: list[Row] = []
    for row in rows:
        (null if row.get(key.name) is None else not_null).append(row)
    not_null.sort(key=lambda row: _rank(row[key.name]), reverse=key.falling)
    return not_null + null


def _rank(value: Any) -> Any:
    """Return the sort key of a value: numbers by size, text by its characters, lists by their elements."""
    if value is None:
        return 0, 0
    if isinstance(value, bool | int | float):
        return 1, value
    if isinstance(value, str):
        return 2, value
    if isinstance(value, list | tuple):
        return 3, [_rank(item) for item in value]
    return 4, [(str(name), _rank(item)) for name, item in value.items()]


# --- options ---------------------------------------------------------------------------------------------------------


def _keys(text: str, names: list[str]) -> tuple[Key, ...]:
    keys = []
    for key_text in map(str.strip, text.split(",")):
        keys.append(Key(_named(key_text.lstrip("-+"), names), key_text.startswith("-")))
    return tuple(keys)


def _listed(text: str, names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_named(name.strip(), names) for name in text.split(",")))


def _named(name: str, names: list[str]) -> str:
    """Return the field with a name, in upper or lower case. Raises UsageError, which proposes names."""
    if name in names:
        return name
    alike = [candidate for candidate in names if candidate.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    hint = did_you_mean(name, names, f"fields: {', '.join(names)}")
    raise UsageError(f"there is no field {name}" if name else "a field's name is missing", hint=hint)


def _complete_listed(names: list[str], typed: str, mark: str) -> list[str]:
    """Complete the last name of a comma-separated list; ``mark`` may stand before each name."""
    before, comma, last = typed.rpartition(",")
    lead = mark if mark and last.startswith(mark) else ""
    used = {name.lstrip(mark) if mark else name for name in before.split(",")}
    return [f"{before}{comma}{lead}{name}" for name in names if name not in used]
