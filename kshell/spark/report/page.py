"""A report as one HTML page: no script, nothing from elsewhere, pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from kshell.escape import html
from kshell.spark.report.base.cells import NUMBERS, said
from kshell.spark.report.base.told import Attention, Column, Section, Table
from kshell.spark.report.compose import Document, Part, Shown
from kshell.spark.report.page_style import STYLE

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_LONG = 40
"""Characters from which on lines may be broken."""


def page(document: Document) -> str:
    """The whole page."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    title = html(document.title)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>"
    yield f'<p class="facts">{" · ".join(map(html, document.facts))}</p>'
    yield from (f'<p class="note">{html(note)}</p>' for note in document.notes)
    yield '</header>\n<nav aria-label="Sections"><ul>'
    yield '<li><a href="#attention">Needs attention</a></li>'
    for part in document.parts:
        yield f'<li><a href="#{part.section.name}">{html(part.section.title)}</a></li>'
    yield "</ul></nav>\n<main>"
    yield from _attention(document.attention)
    for part in document.parts:
        yield from _part(part)
    yield "</main>\n<footer>Times and days are UTC. Made by kshell-pipeline report.</footer>\n</body>\n</html>"


def _attention(found: tuple[tuple[Attention, Section], ...]) -> Iterator[str]:
    yield '<section id="attention" aria-labelledby="attention-title">'
    yield '<h2 id="attention-title">Needs attention</h2>'
    if not found:
        yield '<p class="lead">Nothing: no section has anything to point out.</p>\n</section>'
        return
    yield '<ul class="attention">'
    for one, section in found:
        where = f"{html(one.where)} · " if one.where else ""
        yield (
            f'<li class="{one.level}"><span class="figure">{html(one.figure)}</span>'
            f'<span><span class="level">{one.level}</span>{html(one.words)}</span>'
            f'<span class="where">{where}<a href="#{section.name}">{html(section.title)}</a></span></li>'
        )
    yield "</ul>\n</section>"


def _part(part: Part) -> Iterator[str]:
    name = part.section.name
    yield f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{html(part.section.title)}</h2>'
    yield f'<p class="lead">{html(part.told.lead)}</p>'
    for shown in part.pictures:
        yield _picture(shown)
    for table in part.told.tables:
        yield from _table(table)
    tables = ", ".join(f"<code>{html(source)}</code>" for source in part.section.sources)
    yield f'<p class="about">{html(part.section.about)} More in {tables}.</p>\n</section>'


def _picture(shown: Shown) -> str:
    width, height = shown.size
    data = base64.b64encode(shown.png).decode("ascii")
    caption = f"<figcaption>{html(shown.note)}</figcaption>" if shown.note else ""
    # Who cannot use a mouse scrolls what has the focus.
    return (
        f'<figure><div class="scroll" tabindex="0" role="group" aria-label="Picture">'
        f'<img src="data:image/png;base64,{data}" alt="{html(shown.alt)}"'
        f' width="{width}" height="{height}"></div>{caption}</figure>'
    )


def _table(table: Table) -> Iterator[str]:
    left_out = table.of - len(table.rows)
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{html(table.caption)}">\n<table>'
    yield f"<caption>{html(table.caption)}</caption>"
    heads = (f'<th scope="col"{_class(column, "")}>{html(column.title)}</th>' for column in table.columns)
    yield f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = []
        for place, column in enumerate(table.columns):
            words = said(column.kind, row[column.name])
            tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
            cells.append(f"<{tag}{scope}{_class(column, words)}>{html(words)}</{tag}>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if left_out > 0:
        yield f'<p class="note">{len(table.rows):,} of {table.of:,}.</p>'


def _class(column: Column, words: str) -> str:
    if column.kind in NUMBERS:
        return ' class="n"'
    if column.kind == "time":
        return ' class="t"'
    return ' class="w"' if len(words) > _LONG else ""
