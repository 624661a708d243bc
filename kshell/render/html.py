"""``html``: fragments for pages and notebooks. No script, and only what suits light and dark pages.

The style is in :mod:`.html_style`, tables in :mod:`.html_table`, trees in :mod:`.html_tree`, values in
:mod:`.html_cells`. Notebooks show the same with a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kshell import escape
from kshell.engine.result import Nothing, Report, Rows, Section, Text, Toned, Tree, Value
from kshell.render.html_cells import fields
from kshell.render.html_page import page
from kshell.render.html_style import CAPTION, SCROLL, TONES, badge
from kshell.render.html_table import table
from kshell.render.html_tree import tree
from kshell.render.look import Look, Renderers, nothing

_HEADING = 5
"""The highest heading of a manual page: a notebook's outline lists those of four levels, outputs' as well."""


def text(result: Text, look: Look) -> Iterator[str]:
    """Words as they are laid out; Markdown as a page has it."""
    if result.markdown:
        from kshell.render.prose import to_html

        yield from to_html(result.text, _HEADING)
        return
    yield "<pre>\n"
    yield from (escape.html(line) + "\n" for line in result.text.removesuffix("\n").split("\n"))
    yield "</pre>\n"


def value(result: Value, look: Look) -> Iterator[str]:
    """An object's fields, or the path and its value, as a table."""
    if isinstance(result.value, Mapping) and result.value:
        yield from _object(result.value, f"{CAPTION}{escape.html(result.path)}</caption>" if result.path else "", look)
        return
    yield from _object({result.path: result.value}, "", look)


def rows(result: Rows, look: Look) -> Iterator[str]:
    """A table of all columns, or what they have for pages."""
    return _rows(result, look, "")


def _rows(rows: Rows, look: Look, title: str) -> Iterator[str]:
    return table(rows, look, title) if rows.page is None else page(rows, look, title)


def report(result: Report, look: Look) -> Iterator[str]:
    """A table for each section, its title above: no heading, which would end up in a notebook's outline."""
    for section in result.sections:
        title = _title(section)
        if isinstance(section.body, Rows):
            yield from _rows(section.body, look, title)
        elif section.body:
            yield from _object(section.body, f"{CAPTION}{title}</caption>" if title else "", look)
        elif title:
            yield f"<p>{title}</p>\n"


def _title(section: Section) -> str:
    if not section.title:
        return ""
    words = f"<strong>{escape.html(section.title)}</strong>"
    tone = section.title.tone if isinstance(section.title, Toned) else ""
    return badge(tone, words) if tone in TONES else words


def _object(item: Mapping[str, object], caption: str, look: Look) -> Iterator[str]:
    yield SCROLL + "\n"
    yield from fields(item, caption=caption)
    yield "</div>\n"


FORMATS: dict[str, Renderers] = {
    "html": {Text: text, Value: value, Rows: rows, Tree: tree, Report: report, Nothing: nothing}
}
