"""Format a report as Markdown, which links to its pictures as separate files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from kshell.escape import markdown as plain
from kshell.spark.report.compose import ComposedSection, Document
from kshell.spark.report.section import NUMBERS, Attention, ReportSection, SectionTable, text_of


def markdown(document: Document, folder: str) -> str:
    """Return the whole text, with links to pictures as ``folder/NAME.png``."""
    return "\n\n".join(_blocks(document, folder)) + "\n"


def _blocks(document: Document, folder: str) -> Iterator[str]:
    yield f"# {plain(document.title)}"
    yield " · ".join(map(plain, document.facts))
    yield from map(plain, document.notes)
    yield "## Needs attention"
    yield "\n".join(_attention(document.attention)) or "Nothing: no section has anything to point out."
    for part in document.parts:
        yield from _part(part, folder)
    yield "Times and days are UTC. Made by `kshell-pipeline report`."


def _attention(attention: Iterable[tuple[Attention, ReportSection]]) -> Iterator[str]:
    for item, section in attention:
        where = f" ({plain(item.where)})" if item.where else ""
        yield f"- {item.level}: **{plain(item.figure)}** {plain(item.message)}{where}. See {plain(section.title)}."


def _part(part: ComposedSection, folder: str) -> Iterator[str]:
    yield f"## {plain(part.section.title)}"
    yield plain(part.content.lead, line_start=True)
    for picture in part.pictures:
        yield f"![{plain(picture.alt)}]({quote(folder)}/{quote(picture.name)}.png)"
        if picture.note:
            yield plain(picture.note, line_start=True)
    for table in part.content.tables:
        yield f"**{plain(table.caption)}**"
        yield "\n".join(_table(table))
        if len(table.rows) < table.of:
            yield f"{len(table.rows):,} of {table.of:,}."
    tables = ", ".join(f"`{source}`" for source in part.section.sources)
    yield f"{plain(part.section.about)} More in {tables}."


def _table(table: SectionTable) -> Iterator[str]:
    yield _line(plain(column.title) for column in table.columns)
    yield _line("---:" if column.kind in NUMBERS else "---" for column in table.columns)
    for row in table.rows:
        yield _line(plain(text_of(column.kind, row[column.name])) for column in table.columns)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
