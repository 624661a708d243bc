"""The result of a command as a Python object, for notebooks and programs.

:class:`Result` wraps the result of the engine and converts it to rows, data frames, JSON, HTML, widgets and plots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from kshell.engine import plain
from kshell.engine.result import Column, Many, Report, Row, Rows, Tree, Value
from kshell.engine.result import Result as Answer
from kshell.errors import EXIT_OK
from kshell.json_text import JsonObject, to_json
from kshell.render import render
from kshell.result.frames import fields, row_names, schema
from kshell.result.materialized import materialized

if TYPE_CHECKING:
    from kshell.engine.execution import Call
    from kshell.plots import Plot
    from kshell.result.widget import TableWidget
    from kshell.tables.declaration import Field


class Result:
    """The result of a command, with all rows in memory, so that it can be used repeatedly and pickled.

    Attributes:
        answer: the result of the engine, for the renderers.
        notes: sentences for the user about the data.
        reported_before: those of them that a notebook has shown already, and does not repeat below every answer.
        output: the format (``-o``) in which a notebook shows it; ``""`` for the format that suits the notebook.
        secret: whether values are not redacted; then a notebook shows a message in place of it.
        parts: the results of the lines, if it is the result of several lines.
        as_widget: whether a notebook shows a table as :meth:`widget`.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        notes: Sequence[str] = (),
        output: str = "",
        secret: bool = False,
        parts: Sequence[Result] = (),
        exit_code: int = EXIT_OK,
    ) -> None:
        self.answer = materialized(answer)
        self.exit_code: int = max(answer.exit_code, exit_code, *(part.exit_code for part in parts), EXIT_OK)
        """The highest exit code of the command and its parts: 1 if a predicate says no, 4 if the data is damaged."""
        self.notes = tuple(notes)
        self.reported_before: frozenset[str] = frozenset()
        self.output = output
        self.secret = secret
        self.as_widget = False
        self.parts = tuple(parts)

    @classmethod
    def of(cls, call: Call, answer: Answer) -> Result:
        """Make the result of a call, with all problems and notes of its session.

        The rows are read first, because only after that all notes and the exit code are known.
        """
        session = call.session
        result = cls(answer, output=call.shape.output or "", secret=session.redaction.show_secrets)
        result.notes = tuple(dict.fromkeys((*session.problems(), *session.notes())))
        if not answer.overrides_exit_code:
            result.exit_code = max(result.exit_code, session.exit_code())
        return result

    @property
    def news(self) -> list[str]:
        """The notes that a notebook shows below the answer."""
        return [note for note in self.notes if note not in self.reported_before]

    # --- data --------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[JsonObject]:
        """The result as rows, with keys in Kafka's lowerCamelCase. An object is one row, a tree one row per leaf.

        The result of several lines has one row per line; a value that is no object is in the column ``value``.
        """
        return [dict(row) for row in self._rows()]

    def _rows(self) -> Sequence[Row]:
        answer = self.answer
        if isinstance(answer, Rows):
            return [row if isinstance(row, Mapping) else {"value": row} for row in plain.objects(answer)]
        if isinstance(answer, Tree):
            return list(plain.leaves(answer.root))
        value = self.to_dict()
        items = value if isinstance(value, list) else [] if value is None else [value]
        return [row if isinstance(row, dict) else {"value": row} for row in items]

    def to_dict(self) -> Any:
        """The exact value that ``-o json`` prints, as Python objects."""
        if isinstance(self.answer, Many):
            return [part.to_dict() for part in self.parts]
        return json.loads(self.to_json() or "null")

    def to_json(self) -> str:
        """The result as exact JSON, as ``-o json`` prints it; 64-bit integers stay integers."""
        if isinstance(self.answer, Many):
            return to_json(self.to_dict(), indent=2) + "\n"
        return "".join(render(self.answer, "json"))

    @property
    def columns(self) -> dict[str, str]:
        """The name of each column of :attr:`rows` -> its type, as :mod:`kshell.result.frames` lists the types.

        Types that the command declares do not depend on the rows. Other columns (``sql``) get the type that holds all
        their values.
        """
        return schema(self._fields(self._rows()))

    def _fields(self, rows: Sequence[Row]) -> list[Field]:
        answer = self.answer
        if isinstance(answer, Rows) and answer.bare is None:
            declared = {column.name: column for column in answer.columns}
            columns = [declared.get(name, Column(name)) for name in plain.columns(answer)]
        elif isinstance(answer, Rows):
            columns = [Column("value", type=next((c.type for c in answer.columns if c.name == answer.bare), None))]
        elif isinstance(answer, Tree):
            columns = [Column("path", type="string"), Column("value", type="json")]
        else:
            columns = [Column(name) for name in row_names(rows)]
        return fields(columns, rows)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` of the rows; types as :mod:`kshell.result.frames` says. Raises UsageError."""
        from kshell.result.frames import to_arrow

        rows = self._rows()
        return to_arrow(self._fields(rows), rows)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of the rows, in Arrow's types. Raises UsageError where pandas is not installed."""
        from kshell.result.frames import to_pandas

        return to_pandas(self.to_arrow())

    @property
    def df(self) -> Any:
        """The rows as a ``pandas.DataFrame``, short for :meth:`to_pandas`."""
        return self.to_pandas()

    def to_polars(self) -> Any:
        """A ``polars.DataFrame`` of the rows. Raises UsageError where polars is not installed."""
        from kshell.result.frames import to_polars

        return to_polars(self.to_arrow())

    def to_spark(self, spark: object) -> Any:
        """A DataFrame of the rows in the given Spark session."""
        from kshell.result.frames import to_spark

        return to_spark(self.to_arrow(), spark)

    def diff(self, other: Result) -> Result:
        """Compare with a newer result, and return the changes in the columns of the command ``diff``.

        Rows are matched by their leading columns; a single object is compared field by field.
        """
        from kshell.result.difference import difference

        return difference(self, other)

    @property
    def sections(self) -> dict[str, Result]:
        """The sections of a report by key, such as ``replicas`` of ``quorum``; empty for any other result."""
        answer = self.answer
        if not isinstance(answer, Report):
            return {}
        return {
            section.key: Result(
                section.body if isinstance(section.body, Rows) else Value(section.key, "object", dict(section.body)),
                secret=self.secret,
            )
            for section in answer.sections
        }

    # --- a list of rows ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[JsonObject]:
        return iter(self.rows)

    def __len__(self) -> int:
        answer = self.answer
        return len(answer.rows) if isinstance(answer, Rows) and isinstance(answer.rows, Sequence) else len(self._rows())

    def __bool__(self) -> bool:
        return True  # an empty result must not look like a failure

    @overload
    def __getitem__(self, key: int) -> JsonObject: ...
    @overload
    def __getitem__(self, key: slice) -> list[JsonObject]: ...
    def __getitem__(self, key: int | slice) -> JsonObject | list[JsonObject]:
        if isinstance(key, slice):
            return [dict(row) for row in self._rows()[key]]
        answer = self.answer
        if isinstance(answer, Rows) and answer.bare is None and isinstance(answer.rows, Sequence):
            row = answer.rows[key]  # only this row, so that a loop over indices does not make all rows each time
            return {name: row.get(name) for name in plain.columns(answer)}
        return dict(self._rows()[key])

    # --- display -----------------------------------------------------------------------------------------------------

    def plot(self, *, interactive: bool = False) -> Plot:
        """Draw the result. ``interactive``: as a chart to zoom and point at, for a timeline only.

        Raises UsageError if there is no picture for such a result; its hint names commands that have one.
        """
        from kshell.plots import draw

        return draw(self.answer, interactive=interactive)

    def widget(self) -> TableWidget:
        """The table as a widget that sorts, filters, searches, pages and copies, for a notebook with a running kernel.

        Raises UsageError if it is no table, holds secrets, or the extra ``notebook`` is not installed.
        """
        from kshell.result.widget import table_widget

        return table_widget(self)

    def to_html(self, *, limit: int | None = None) -> str:
        """The result as an HTML fragment without scripts; ``limit``: the most rows or nodes that it shows."""
        if isinstance(self.answer, Many):
            return "".join(part.to_html(limit=limit) for part in self.parts)
        return "".join(render(self.answer, "html", limit=limit))

    def __str__(self) -> str:
        if isinstance(self.answer, Many):
            return "\n".join(map(str, self.parts))
        return "".join(render(self.answer, "text"))

    def __getstate__(self) -> dict[str, object]:
        from kshell.result.materialized import portable

        return {**self.__dict__, "answer": portable(self.answer)}

    def __repr__(self) -> str:
        kind = type(self.answer).__name__.lower()
        size = f", {len(self)} rows" if isinstance(self.answer, Rows) else ""
        return f"<kshell.Result: {kind}{size}>"

    def _repr_html_(self) -> str | None:
        from kshell.result.shown import html

        return html(self)

    def _repr_markdown_(self) -> str | None:
        from kshell.result.shown import markdown

        return markdown(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from kshell.result.shown import text

        printer.text(text(self))
