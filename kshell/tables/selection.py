"""Which rows and columns an answer has, and in what order: ``--where``, ``--sort``, ``--columns``, ``--limit``.

``--fail-if-any`` makes the exit code tell whether a row is left.

A command that gives rows takes :func:`row_flags` among its flags, and hands its rows to :func:`select`; the commands
of the history take ``--where`` alone (:func:`where_flag`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.engine.arguments import count
from kshell.engine.declaration import CONDITION, Flag
from kshell.engine.predicates import FAIL_IF_ANY, answers_by_rows
from kshell.engine.result import Row, Rows
from kshell.errors import EXIT_FINDING, EXIT_OK, UsageError, did_you_mean
from kshell.tables.declaration import Field, Wanted, columns, where_type

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.tables.where import Predicate
    from kshell.tables.where_kinds import FieldType

_OPTIONS = ("where", "sort", "columns", "limit")


class Key(NamedTuple):
    """A field to sort by."""

    name: str
    falling: bool


class Conditions:
    """Conditions on rows with these fields: the conversion of ``--where``, and its completion."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)

    def __call__(self, text: str) -> Predicate:
        """The condition in a text. Raises ExpressionError."""
        from kshell.tables.where import compile_where  # late: most lines have no condition

        return compile_where(text, self._kinds())

    def complete(self, typed: str) -> Iterable[str]:
        """What an unfinished condition may become."""
        from kshell.tables.where import complete_where

        return complete_where(typed, self._kinds())

    def _kinds(self) -> dict[str, FieldType]:
        return {field.name: where_type(field.type) for field in self.fields}


def where_flag(fields: Sequence[Field]) -> Flag:
    """``--where`` for rows with these fields."""
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
    """The options of a command whose rows have these fields."""
    names = [field.name for field in fields]

    def complete_names(session: Session, typed: str) -> Iterable[str]:
        return _complete_listed(names, typed, "")

    def complete_keys(session: Session, typed: str) -> Iterable[str]:
        return _complete_listed(names, typed, "-")

    return (
        where_flag(fields),
        Flag(
            ("--sort",),
            "order by these fields, falling where a - is in front; null comes last",
            metavar="[-]FIELD,…",
            convert=lambda text: _keys(text, names),
            complete=complete_keys,
            dashed=True,
        ),
        Flag(
            ("--columns",),
            "these fields, in this order",
            metavar="FIELD,…",
            convert=lambda text: _listed(text, names),
            complete=complete_names,
        ),
        Flag(("--limit",), "no more rows than these", metavar="N", convert=count),
        FAIL_IF_ANY,
    )


def is_given(args: Any) -> bool:
    """Whether the line chooses rows or columns."""
    return any(getattr(args, name) is not None for name in _OPTIONS)


def wanted(fields: Sequence[Field], args: Any) -> Wanted:
    """The fields that the line's options need, so that others need not be made; ``None`` for all."""
    if args.columns is None:
        return None
    names = {*args.columns, *(key.name for key in args.sort or ())}
    if args.where is not None:
        names |= asked_for(fields, args.where)
    return frozenset(names)


def asked_for(fields: Sequence[Field], where: Predicate) -> frozenset[str]:
    """The fields that a condition needs. A word of it may be text that happens to be a field's name: one too many makes
    an answer dearer, or more careful, than it has to be.
    """
    return frozenset(field.name for field in fields if field.name in where.words)


def worst_first(rows: Sequence[Row], args: Any, name: str, order: Sequence[str]) -> Sequence[Row]:
    """Rows for users, by where a field's value is in ``order``. With ``--limit``, every format has the same rows."""
    return rows if args.limit is not None else sorted(rows, key=lambda row: order.index(row[name]))


def select(
    fields: Sequence[Field],
    rows: Iterable[Row],
    args: Any,
    *,
    people: Callable[[Row], Row] | None = None,
    tone: Callable[[Row], str] | None = None,
    exit_code: int = 0,
) -> Rows:
    """The rows that the line's options ask for, as an answer; they stream unless they are sorted.

    ``people`` makes a row that reads well out of an exact one; fields that it changes count as they were. ``tone`` is
    that of :class:`Rows`. With ``--fail-if-any`` the rows that are left decide between the exit codes 0 and 1, also
    for a command that has an answer of its own.

    Raises:
        UsageError: no row can be left to decide.
    """
    if args.fail_if_any and args.limit == 0:
        raise UsageError(
            "--limit 0 leaves no row for --fail-if-any to see", hint="without --limit; `> /dev/null` keeps it quiet"
        )
    selected = columns(fields if args.columns is None else chosen(fields, args.columns))
    order = tuple((key.name, key.falling) for key in args.sort or ())
    result = Rows(selected, _Chosen(rows, args), tone=tone, order=order, exit_code=exit_code)
    if args.fail_if_any:
        answers_by_rows(result, some=EXIT_FINDING, none=EXIT_OK)
        if isinstance(rows, list):
            next(iter(result.rows), None)  # now: a page of the command's own may show them, and not read these
    if people is not None:
        result.for_people = Rows(selected, _ReadableRows(result, people))
    return result


def chosen(fields: Sequence[Field], names: Iterable[str]) -> list[Field]:
    """The fields of those names, in their order; asked for by name, each is shown."""
    fields_by_name = {field.name: field for field in fields}
    return [fields_by_name[name]._replace(wide=False, spare=0) for name in names]


class _Chosen:
    """The chosen rows, made anew whenever they are asked for, as far as ``rows`` can be."""

    def __init__(self, rows: Iterable[Row], args: Any) -> None:
        self._rows = rows
        self._args = args

    def __iter__(self) -> Iterator[Row]:
        where: Predicate | None = self._args.where
        rows = iter(self._rows) if where is None else filter(where, self._rows)
        for key in reversed(self._args.sort or ()):
            rows = iter(_sorted(rows, key))
        return rows if self._args.limit is None else islice(rows, self._args.limit)


class _ReadableRows:
    """An answer's rows as people read them: whatever those rows are by then (``watch`` reads them at once)."""

    def __init__(self, result: Rows, people: Callable[[Row], Row]) -> None:
        self._result = result
        self._people = people

    def __iter__(self) -> Iterator[Row]:
        return map(self._people, self._result.rows)


def _sorted(rows: Iterable[Row], key: Key) -> list[Row]:
    """Stable, so that keys can be applied one after the other, the last one first."""
    not_null: list[Row] = []
    null: list[Row] = []
    for row in rows:
        (null if row.get(key.name) is None else not_null).append(row)
    not_null.sort(key=lambda row: _rank(row[key.name]), reverse=key.falling)
    return not_null + null


def _rank(value: Any) -> Any:
    """What orders values of one field: numbers by size, text by its characters, lists by their elements."""
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
    """The field of that name, upper or lower case as may be. Raises UsageError with those it may have meant."""
    if name in names:
        return name
    alike = [candidate for candidate in names if candidate.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    hint = did_you_mean(name, names, f"fields: {', '.join(names)}")
    raise UsageError(f"there is no field {name}" if name else "a field's name is missing", hint=hint)


def _complete_listed(names: list[str], typed: str, mark: str) -> list[str]:
    """The last name of a list with commas; ``mark`` may stand before each."""
    before, comma, last = typed.rpartition(",")
    lead = mark if mark and last.startswith(mark) else ""
    used = {name.lstrip(mark) if mark else name for name in before.split(",")}
    return [f"{before}{comma}{lead}{name}" for name in names if name not in used]
