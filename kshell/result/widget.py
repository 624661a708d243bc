"""Show a table in a notebook as a widget that sorts, filters, searches, pages and copies (DataTables, by itables).

Only this module imports itables. The widget's script comes from the package, not from a network; every cell is escaped
text. The rows are in the browser as long as the kernel runs. A saved notebook holds no script, but the same table as
static HTML (docs/decisions/0072).
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
    from kshell.json_text import JsonObject
    from kshell.result import Result

_PURPOSE = "a table as a widget"
_, itables_widget, polars = require(_PURPOSE, "notebook", "anywidget", "itables.widget", "polars")
_ITable: Any = itables_widget.ITable
MOST = 100_000
"""The most rows of a widget, as the browser keeps all of them in memory."""
_PER_PAGE = [10, 25, 50, 100, 500]
_WRAPPED = "kshell-wrapped"
_STATIC, _LIVE = "kshell-static", "kshell-widget"
_EXPORT_OPTIONS = {"columns": ":visible", "escapeExcelFormula": True}
"""Options for copying and saving: the visible columns of all pages, with formulas escaped for spreadsheets."""
_STYLE = f"""\
table.{_LIVE} td {{ vertical-align: top; }}
table.{_LIVE} td.{_WRAPPED} {{ white-space: normal; overflow-wrap: anywhere; min-width: 20em; }}
:host(:not(.dark)) .itables_anywidget {{ color: #212529; color-scheme: light; }}
.jp-OutputArea-child:has(.{_STATIC}):has(+ .jp-OutputArea-child .{_LIVE}) {{ display: none; }}
"""
"""In marimo, the widget is in a shadow tree in which DataTables does not recognize a dark page, so it stays light. In
JupyterLab and Notebook 7, the live widget hides the static table before it."""


class TableWidget(_ITable):  # type: ignore[misc]  # itables comes with an extra
    """The widget of a table, with its ``static`` form, HTML without a script, for where no widget can be shown.

    ``_repr_mimebundle_`` gives both as one output; :meth:`marked_static` and :meth:`view` give them as two.
    """

    def __init__(self, static: str, description: str, **options: Any) -> None:
        super().__init__(**options)
        self.static = static
        self._description = description

    def __repr__(self) -> str:
        return f"<{self._description}>"

    def view(self) -> JsonObject:
        """The forms of the widget alone, by MIME type; empty text where a widget cannot be shown."""
        return {**super()._repr_mimebundle_()[0], "text/plain": "", "text/html": ""}

    def marked_static(self) -> dict[str, str]:
        """The forms of the static table, by MIME type, marked so that a widget in the next output hides it."""
        return {"text/plain": repr(self), "text/html": f'<div class="{_STATIC}">\n{self.static}</div>\n'}

    def _repr_mimebundle_(self, **_: object) -> tuple[JsonObject, JsonObject]:
        return {**super()._repr_mimebundle_()[0], "text/plain": repr(self), "text/html": self.static}, {}


def table_widget(result: Result) -> TableWidget:
    """Make a widget of a result's table.

    Raises:
        UsageError: the result is no table, or holds secrets, which the widget would keep in the page.
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
    rendered = [on_page(answer, row) for row in rows[:MOST]]
    values = {column.name: [_text(row.get(column.name)) for row in rendered] for column in columns}
    notes = result.news
    if len(rows) > MOST:
        notes.append(f"the first {MOST:,} of {len(rows):,} rows; --where and --limit choose, .df has them all")
    return TableWidget(
        html(result) or "",
        f"a table of {len(rows):,} rows: a running kernel shows it; .df has them",
        df=polars.DataFrame(values, schema=dict.fromkeys(values, polars.String)),
        caption="\n".join(notes),
        **_options(columns, values, rendered, {column.name for column in visible_columns(answer)}),
    )


def _options(
    columns: Sequence[Column], values: Mapping[str, Sequence[str]], rows: Sequence[Row], visible: set[str]
) -> JsonObject:
    """Return the options for itables and DataTables. None of them is a script, and cells are text, not HTML."""
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
            {"extend": "copyHtml5", "text": "Copy", "title": "", "exportOptions": _EXPORT_OPTIONS},
            {"extend": "csvHtml5", "text": "CSV", "title": "kshell", "exportOptions": _EXPORT_OPTIONS},
            {"extend": "colvis", "text": "Columns"},
            {"extend": "pageLength"},
        ],
        "layout": {"topStart": "buttons", "topEnd": "search", "bottomStart": "info", "bottomEnd": "paging"},
        "lengthMenu": _PER_PAGE,
        "pageLength": _PER_PAGE[0],
    }


def _is_numeric(column: Column, rows: Sequence[Row]) -> bool:
    """Whether a column, whose cells are text, is sorted by number. DataTables treats the ``-`` of null as no number."""
    if column.type is not None:
        return isinstance(column.type, str) and column.type in NUMBERS
    return are_numbers(row.get(column.name) for row in rows)


def _text(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(item, Difference) for item in value):
        return "; ".join(_difference(item) for item in value)
    return cell(value, ", ")


def _difference(change: Difference) -> str:
    name = f"{cell(change.name)}: " if change.name else ""
    return f"{name}{cell(change.old, ', ')} → {cell(change.new, ', ')}"
