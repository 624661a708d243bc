"""A table as a widget that sorts, filters, searches, pages and copies: DataTables, which itables brings for notebooks.

Only this module knows itables. The widget's program comes from the package, not from a network; every cell goes to it
as escaped text. The rows are in the browser as long as the kernel lives. What a notebook saves of it is no script but
the same table as markup (docs/decisions/0072).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Column, Difference, Row, Rows
from kshell.errors import UsageError
from kshell.extras import require
from kshell.render.cells import are_numbers, cell
from kshell.render.html import LONG, NUMBERS, columns_of, on_page, visible_columns
from kshell.result.shown import for_eyes, html

if TYPE_CHECKING:
    from kshell.result import Result

_PURPOSE = "a table as a widget"
_, itables_widget, polars = require(_PURPOSE, "notebook", "anywidget", "itables.widget", "polars")
_ITable: Any = itables_widget.ITable
MOST = 100_000
"""Rows that a widget has: the browser has all of them in its memory."""
_PER_PAGE = [10, 25, 50, 100, 500]
_WRAPPED = "kshell-wrapped"
_STATIC, _LIVE = "kshell-static", "kshell-widget"
_SEEN = {"columns": ":visible", "escapeExcelFormula": True}
"""What is copied and saved: what is seen, of all pages; a spreadsheet must not take a topic's name for a formula."""
_STYLE = f"""\
table.{_LIVE} td {{ vertical-align: top; }}
table.{_LIVE} td.{_WRAPPED} {{ white-space: normal; overflow-wrap: anywhere; min-width: 20em; }}
:host(:not(.dark)) .itables_anywidget {{ color: #212529; color-scheme: light; }}
.jp-OutputArea-child:has(.{_STATIC}):has(+ .jp-OutputArea-child .{_LIVE}) {{ display: none; }}
"""
"""In marimo, a widget is in a tree of its own, which DataTables does not know to be dark: it stays a light one. In
JupyterLab and Notebook 7, it stands in the place of the static table in front of it as long as it is alive."""


class TableWidget(_ITable):  # type: ignore[misc]  # itables comes with an extra
    """The widget, and what is shown and saved of it where no widget can be.

    ``static`` is the table as markup without a script. ``_repr_mimebundle_`` gives both as one output.
    """

    def __init__(self, static: str, description: str, **options: Any) -> None:
        super().__init__(**options)
        self.static = static
        self._description = description

    def __repr__(self) -> str:
        return f"<{self._description}>"

    def view(self) -> dict[str, Any]:
        """The forms of the widget alone, by MIME type: nothing is to be seen where it cannot be."""
        return {**super()._repr_mimebundle_()[0], "text/plain": "", "text/html": ""}

    def marked_static(self) -> dict[str, str]:
        """The forms of the static table that the widget, if it is shown in the next output, stands in place of."""
        return {"text/plain": repr(self), "text/html": f'<div class="{_STATIC}">\n{self.static}</div>\n'}

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        return {**super()._repr_mimebundle_()[0], "text/plain": repr(self), "text/html": self.static}, {}


def table_widget(result: Result) -> TableWidget:
    """The table of a result as a widget.

    Raises:
        UsageError: the result is no table, or holds secrets, which a widget would leave in the page.
    """
    answer = for_eyes(result.answer)
    if not isinstance(answer, Rows):
        raise UsageError(
            "only a table can be a widget", hint="a part of a page is one: x.sections['problems'].widget()"
        )
    if result.secret:
        raise UsageError("this answer holds secrets, and a page keeps what a widget has", hint=".rows has them")
    rows: Sequence[Row] = answer.rows if isinstance(answer.rows, Sequence) else list(answer.rows)
    columns = columns_of(answer)
    shown = [on_page(answer, row) for row in rows[:MOST]]
    values = {column.name: [_text(row.get(column.name)) for row in shown] for column in columns}
    notes = list(result.notes)
    if len(rows) > MOST:
        notes.append(f"the first {MOST:,} of {len(rows):,} rows; --where and --limit choose, .df has them all")
    return TableWidget(
        html(result) or "",
        f"a table of {len(rows):,} rows: a running kernel shows it; .df has them",
        df=polars.DataFrame(values, schema=dict.fromkeys(values, polars.String)),
        caption="\n".join(notes),
        **_options(columns, values, shown, {column.name for column in visible_columns(answer)}),
    )


def _options(
    columns: Sequence[Column], values: Mapping[str, Sequence[str]], rows: Sequence[Row], visible: set[str]
) -> dict[str, Any]:
    """The options of itables and DataTables. Nothing in them is a script, and cells are text, not markup."""
    definitions = [
        {
            "targets": [place],
            "visible": column.name in visible,
            "type": "num" if _is_numeric(column, rows) else "string",
            "className": _WRAPPED if max(map(len, values[column.name]), default=0) > LONG else "",
        }
        for place, column in enumerate(columns)
    ]
    return {
        "allow_html": False,
        "maxBytes": 0,
        "maxRows": 0,
        "maxColumns": 0,
        "showIndex": False,
        "show_dtypes": False,
        "format_floats_in_python": False,
        "text_in_header_can_be_selected": False,
        "classes": f"{_LIVE} display nowrap compact",
        "style": "width:100%",
        "css": _STYLE,
        "scrollX": True,
        "columnDefs": definitions,
        "columnControl": ["order", "searchDropdown"],  # a second line of the header would be copied as an empty row
        "ordering": {"indicators": False, "handler": True},
        "buttons": [
            {"extend": "copyHtml5", "text": "Copy", "title": "", "exportOptions": _SEEN},
            {"extend": "csvHtml5", "text": "CSV", "title": "kshell", "exportOptions": _SEEN},
            {"extend": "colvis", "text": "Columns"},
            {"extend": "pageLength"},
        ],
        "layout": {"topStart": "buttons", "topEnd": "search", "bottomStart": "info", "bottomEnd": "paging"},
        "lengthMenu": _PER_PAGE,
        "pageLength": _PER_PAGE[0],
    }


def _is_numeric(column: Column, rows: Sequence[Row]) -> bool:
    """Whether a column sorts by number, though its cells are text: null is a ``-``, which DataTables takes for none."""
    if column.type is not None:
        return isinstance(column.type, str) and column.type in NUMBERS
    return are_numbers(row.get(column.name) for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(item, Difference) for item in value):
        return "; ".join(_difference(item) for item in value)
    return cell(value, ", ")


def _difference(change: Difference) -> str:
    name = f"{cell(change.name)}: " if change.name else ""
    return f"{name}{cell(change.old, ', ')} → {cell(change.new, ', ')}"
