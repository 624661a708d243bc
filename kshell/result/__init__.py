"""What a command gave, for Python: rows, frames, JSON, a page and a picture of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from kshell.engine import plain
from kshell.engine.result import Column, Many, Report, Row, Rows, Tree, Value
from kshell.engine.result import Result as Answer
from kshell.errors import EXIT_OK
from kshell.json_text import to_json
from kshell.render import render
from kshell.result.frames import fields, row_names, schema
from kshell.result.materialized import materialized

if TYPE_CHECKING:
    from kshell.engine.execution import Call
    from kshell.engine.session import Session
    from kshell.plots import Plot
    from kshell.result.widget import TableWidget
    from kshell.tables.declaration import Field


class Result:
    """What a command gave. Rows that are made while they are read are read here, once; it can be pickled.

    ``notes`` are sentences for a person about the data. ``output`` is the format that was asked for (``-o``), in which
    it shows itself; ``""`` for what suits the place. With ``secret``, redaction was lifted: then it does not show
    itself. ``parts`` are the results of several lines, one each. ``as_widget``: a notebook shows a table as
    :meth:`widget` gives it.
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
        """What the renderers take."""
        self.exit_code: int = max(answer.exit_code, exit_code, *(part.exit_code for part in parts), EXIT_OK)
        """The command's own: 1 for a predicate's finding; 4 where the data is damaged."""
        self.notes = tuple(notes)
        self.output = output
        self.secret = secret
        self.as_widget = False
        self.parts = tuple(parts)

    @classmethod
    def of(cls, call: Call, answer: Answer, said: Callable[[Session], Sequence[str]]) -> Result:
        """What a call gave. Its notes (``said`` knows them) and exit code count once its rows were read: only then is
        known what there is to say of the data.
        """
        session = call.session
        result = cls(answer, output=call.shape.output or "", secret=session.redaction.show_secrets)
        result.notes = tuple(said(session))
        if not answer.judges_data:
            result.exit_code = max(result.exit_code, session.exit_code())
        return result

    # --- data --------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The result as rows, keys in Kafka's lowerCamelCase: of an object, one row; of a tree, its leaves.

        Of several lines (``parts``): what each gave, as one row; what is no object as its ``value``.
        """
        return [dict(row) for row in self._rows()]

    def _rows(self) -> Sequence[Row]:
        answer = self.answer
        if isinstance(answer, Rows):
            return [row if isinstance(row, Mapping) else {"value": row} for row in plain.objects(answer)]
        if isinstance(answer, Tree):
            return list(plain.leaves(answer.root))
        value = self.to_dict()
        found = value if isinstance(value, list) else [] if value is None else [value]
        return [row if isinstance(row, dict) else {"value": row} for row in found]

    def to_dict(self) -> Any:
        """The exact value that ``-o json`` prints, as Python objects."""
        if isinstance(self.answer, Many):
            return [part.to_dict() for part in self.parts]
        return json.loads(self.to_json() or "null")

    def to_json(self) -> str:
        """JSON, exact; 64-bit integers are integers."""
        if isinstance(self.answer, Many):
            return to_json(self.to_dict(), indent=2) + "\n"
        return "".join(render(self.answer, "json"))

    @property
    def columns(self) -> dict[str, str]:
        """The name of each column of :attr:`rows` -> its type, as :mod:`kshell.result.frames` lists them.

        What a command declares is the same whatever its rows hold, and without any row. Other columns (``sql``) have
        the type that holds all their values.
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
        """The same as :meth:`to_pandas`."""
        return self.to_pandas()

    def to_polars(self) -> Any:
        """A ``polars.DataFrame`` of the rows. Raises UsageError where polars is not installed."""
        from kshell.result.frames import to_polars

        return to_polars(self.to_arrow())

    def to_spark(self, spark: Any) -> Any:
        """A DataFrame of the rows in that Spark session."""
        from kshell.result.frames import to_spark

        return to_spark(self.to_arrow(), spark)

    def diff(self, other: Result) -> Result:
        """What is different in ``other``, which is taken for the newer: the columns of the command ``diff``.

        Rows are the same row where their leading columns are; values of a single thing are compared by their fields.
        """
        from kshell.result.difference import difference

        return difference(self, other)

    @property
    def sections(self) -> dict[str, Result]:
        """The parts of a page (``quorum``: ``replicas``), by key; none of anything else."""
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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        answer = self.answer
        return len(answer.rows) if isinstance(answer, Rows) and isinstance(answer.rows, Sequence) else len(self._rows())

    def __bool__(self) -> bool:
        return True  # whether a command gave something is not whether it ran

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, key: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(key, slice):
            return [dict(row) for row in self._rows()[key]]
        answer = self.answer
        if isinstance(answer, Rows) and answer.bare is None and isinstance(answer.rows, Sequence):
            row = answer.rows[key]  # one alone: a loop over indices need not make all of them each time
            return {name: row.get(name) for name in plain.columns(answer)}
        return dict(self._rows()[key])

    # --- looks -------------------------------------------------------------------------------------------------------

    def plot(self, *, interactive: bool = False) -> Plot:
        """A picture of it, where there is a natural one; ``interactive``: to zoom and point at, for a timeline.

        Raises UsageError where there is none, naming those.
        """
        from kshell.plots import draw

        return draw(self.answer, interactive=interactive)

    def widget(self) -> TableWidget:
        """The table as a widget that sorts, filters, searches, pages and copies, for a notebook with a running kernel.

        Raises UsageError: it is no table, it holds secrets, or the extra ``notebook`` is not installed.
        """
        from kshell.result.widget import table_widget

        return table_widget(self)

    def to_html(self, *, limit: int | None = None) -> str:
        """A fragment of a page, without scripts; ``limit`` is how many rows or nodes it shows."""
        if isinstance(self.answer, Many):
            return "".join(part.to_html(limit=limit) for part in self.parts)
        return "".join(render(self.answer, "html", limit=limit))

    def __str__(self) -> str:
        if isinstance(self.answer, Many):
            return "\n".join(map(str, self.parts))
        return "".join(render(self.answer, "text"))

    def __getstate__(self) -> dict[str, Any]:
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
