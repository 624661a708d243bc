"""Format a report as one HTML page without scripts, with the pictures in it; for light and dark screens and paper."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from kshell.escape import html
from kshell.render.html_document import Anchor
from kshell.render.html_document import document as page_around
from kshell.spark.report.compose import ComposedSection, Document, RenderedPicture
from kshell.spark.report.section import NUMBERS, Attention, ReportSection, SectionTable, TableColumn, text_of

_LONG = 40
"""A table cell with more characters than this is allowed to wrap."""


def page(document: Document) -> str:
    """Return the whole page as HTML."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    anchors = [Anchor("attention", "Needs attention")]
    anchors += [Anchor(part.section.name, part.section.title) for part in document.parts]
    footer = "Times and days are UTC. Made by kshell-pipeline report."
    yield from page_around(document.title, document.facts, document.notes, anchors, _body(document), footer)


def _body(document: Document) -> Iterator[str]:
    yield from _attention(document.attention)
    for part in document.parts:
        yield from _part(part)


def _attention(attention: tuple[tuple[Attention, ReportSection], ...]) -> Iterator[str]:
    yield '<section id="attention" aria-labelledby="attention-title">'
    yield '<h2 id="attention-title">Needs attention</h2>'
    if not attention:
        yield '<p class="lead">Nothing: no section has anything to point out.</p>\n</section>'
        return
    yield '<ul class="attention">'
    for item, section in attention:
        where = f"{html(item.where)} · " if item.where else ""
        yield (
            f'<li class="{item.level}"><span class="figure">{html(item.figure)}</span>'
            f'<span><span class="level">{item.level}</span>{html(item.message)}</span>'
            f'<span class="where">{where}<a href="#{section.name}">{html(section.title)}</a></span></li>'
        )
    yield "</ul>\n</section>"


def _part(part: ComposedSection) -> Iterator[str]:
    name = part.section.name
    yield f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{html(part.section.title)}</h2>'
    yield f'<p class="lead">{html(part.content.lead)}</p>'
    for picture in part.pictures:
        yield _picture(picture)
    for table in part.content.tables:
        yield from _table(table)
    tables = ", ".join(f"<code>{html(source)}</code>" for source in part.section.sources)
    yield f'<p class="about">{html(part.section.about)} More in {tables}.</p>\n</section>'


def _picture(picture: RenderedPicture) -> str:
    width, height = picture.size
    data = base64.b64encode(picture.png).decode("ascii")
    caption = f"<figcaption>{html(picture.note)}</figcaption>" if picture.note else ""
    # It can have the focus, so that users without a mouse can scroll it with the keyboard.
    return (
        f'<figure><div class="scroll" tabindex="0" role="group" aria-label="Picture">'
        f'<img src="data:image/png;base64,{data}" alt="{html(picture.alt)}"'
        f' width="{width}" height="{height}"></div>{caption}</figure>'
    )


def _table(table: SectionTable) -> Iterator[str]:
    left_out = table.of - len(table.rows)
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{html(table.caption)}">\n<table>'
    yield f"<caption>{html(table.caption)}</caption>"
    heads = (f'<th scope="col"{_class(column, "")}>{html(column.title)}</th>' for column in table.columns)
    yield f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = []
        for place, column in enumerate(table.columns):
            text = text_of(column.kind, row[column.name])
            tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
            cells.append(f"<{tag}{scope}{_class(column, text)}>{html(text)}</{tag}>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if left_out > 0:
        yield f'<p class="note">{len(table.rows):,} of {table.of:,}.</p>'


def _class(column: TableColumn, text: str) -> str:
    if column.kind in NUMBERS:
        return ' class="n"'
    if column.kind == "time":
        return ' class="t"'
    return ' class="w"' if len(text) > _LONG else ""
