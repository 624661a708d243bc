"""Rows that have a :class:`~kshell.engine.result.Page`: without doubles, and folded by what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kshell import escape
from kshell.engine.result import Page, Row, Rows
from kshell.render.html_cells import words
from kshell.render.html_style import BELOW, SUMMARY, TONES, badge, dim
from kshell.render.html_table import note, table, tally
from kshell.render.limits import shares
from kshell.render.look import Look

_OPEN = ("critical", "error")
"""Blocks of these tones start open; without them the first does."""


def page(rows: Rows, look: Look, title: str = "") -> Iterator[str]:
    """The rows as their page has them. They are read at once: a page says first how many there are."""
    assert rows.page is not None
    found = list(rows)
    double = rows.page.double
    kept = found if double is None else [row for row in found if not double(row)]
    if rows.page.fold and kept:
        yield from _folded(_among(rows, kept, rows.page), look, title)
    else:
        yield from table(_among(rows, kept, rows.page), look, title)
    if len(kept) < len(found):
        yield note(f"{len(found) - len(kept):,} more rows say the same; .df has them")


def _among(rows: Rows, kept: Sequence[Row], page: Page | None) -> Rows:
    """Some of the rows."""
    return Rows(rows.columns, kept, tone=rows.tone, page=page, order=rows.order)


def _folded(rows: Rows, look: Look, title: str) -> Iterator[str]:
    fold = rows.page.fold if rows.page else ()
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: [row.get(name) for name in fold])]
    tones = [rows.tone(block[0]) if rows.tone else "" for block in blocks]
    told = " ".join(part for part in (title, dim(tally(rows))) if part)
    yield f'<div style="margin:0 0 0.3em 0">{told}</div>\n'
    first = 0 if not set(tones) & set(_OPEN) else -1
    sizes = [len(block) for block in blocks]
    room = sizes if look.limit is None else shares(sizes, look.limit)
    for place, block in enumerate(blocks):
        opened = " open" if tones[place] in _OPEN or place == first else ""
        yield f"<details{opened}>{SUMMARY}{_summary(block, fold, tones[place])}</summary>{BELOW}\n"
        yield from _block(rows, block, look._replace(limit=None if look.limit is None else room[place]))
        yield "</div></details>\n"


def _summary(block: list[Row], fold: Sequence[str], tone: str) -> str:
    """What the block is about: the tone as a badge, the other values as they are, and how many rows."""
    values = [block[0].get(name) for name in fold]
    parts = [badge(tone) if tone in TONES and value == tone else words(value) for value in values]
    return f"{' '.join(parts)} {dim(f'({len(block):,})')}"


def _block(rows: Rows, block: list[Row], look: Look) -> Iterator[str]:
    """A table of what differs; what all its rows have in common is said once above it."""
    assert rows.page is not None
    names = [column for column in rows.page.columns if column.name not in rows.page.fold]
    common = {} if len(block) < 2 else {c.name: block[0].get(c.name) for c in names if _is_common(block, c.name)}
    for name, value in common.items():
        yield f"<div>{escape.html(name)}: {words(value)}</div>\n"
    left = tuple(column for column in names if column.name not in common) or tuple(names[:1])
    yield from table(Rows(left, block, order=rows.order, page=rows.page._replace(columns=left)), look)


def _is_common(block: list[Row], name: str) -> bool:
    value: Any = block[0].get(name)
    return all(row.get(name) == value for row in block)
