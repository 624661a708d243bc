"""The part of Markdown that ``help`` and ``man`` are written in, for terminals and pages.

Headings, paragraphs, lists, fenced and indented code, tables; inside a line ``**bold**``, `` `code` `` and links.
Anything else is words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from kshell import escape
from kshell.render.cells import blanks, cells
from kshell.render.color import paint
from kshell.render.options import RenderOptions

_WIDEST = 100
"""Columns of the longest line that is pleasant to read."""
_ITEM = re.compile(r"(\s*)([-*]|\d+\.)\s+(.*)", re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """``kind``: heading (``level`` 1 to 6), paragraph, item (``lead``: its indentation and mark), code or table."""

    kind: str
    lines: list[str]
    level: int = 0
    lead: str = ""

    @property
    def words(self) -> str:
        return " ".join(line.strip() for line in self.lines)


Span = tuple[str, str, str]
"""(kind: ``""``, ``code``, ``bold`` or ``link``; text; the link's address)."""


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text, in order."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        end, block = _block(lines, at)
        if block is not None:
            yield block
        at = end


def _block(lines: list[str], at: int) -> tuple[int, Block | None]:
    """The block that starts at a line, if one does, and the line after it."""
    line = lines[at]
    if not line.strip():
        return at + 1, None
    if line.startswith("```"):
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines))
        return end + 1, Block("code", lines[at + 1 : end])
    if match := re.match(r"(#{1,6})\s+(.*)", line):
        return at + 1, Block("heading", [match[2]], level=len(match[1]))
    if line.startswith("    "):
        end = _while(lines, at, lambda one: one.startswith("    "))
        return end, Block("code", [one[4:] for one in lines[at:end]])
    if line.startswith("|"):
        end = _while(lines, at, lambda one: one.startswith("|"))
        return end, Block("table", lines[at:end])
    end = _while(lines, at + 1, _goes_on)
    if item := _ITEM.match(line):
        return end, Block("item", [item[3], *lines[at + 1 : end]], lead=f"{item[1]}{item[2]} ")
    return end, Block("paragraph", lines[at:end])


def _while(lines: list[str], at: int, holds: Callable[[str], bool]) -> int:
    while at < len(lines) and holds(lines[at]):
        at += 1
    return at


def _goes_on(line: str) -> bool:
    """Whether a line continues the paragraph or item above it."""
    return bool(line.strip()) and not line.startswith(("```", "#", "|")) and _ITEM.match(line) is None


def spans(text: str) -> Iterator[Span]:
    """A line's parts."""
    at = 0
    for match in _SPAN.finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()], ""
        at = match.end()
        if match[1]:
            yield "code", match[1], ""
        elif match[2]:
            yield "bold", match[2], ""
        else:
            yield "link", match[3], match[4]
    if at < len(text):
        yield "", text[at:], ""


def table_rows(lines: list[str]) -> list[list[str]]:
    """A table's cells, the header first, without the line of dashes."""
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
    rows = [row for row in rows if not all(re.fullmatch(":?-+:?", cell) for cell in row)]
    return [[cell.replace("\\|", "|") for cell in row] for row in rows]


# --- a terminal -----------------------------------------------------------------------------------------------------

Word = list[tuple[str, str]]
"""What stands between two blanks: its (text, style) parts."""


def to_terminal(text: str, options: RenderOptions) -> Iterator[str]:
    """Lines without marks, broken to the width; code keeps its backticks where there is no colour to tell it by."""
    before = ""
    for block in blocks(text):
        if before and not (before == block.kind == "item"):
            yield "\n"
        before = block.kind
        if block.kind == "code":
            yield from ("    " + paint(escape.terminal(line), "code", options.color) + "\n" for line in block.lines)
        elif block.kind == "table":
            yield from _terminal_table(table_rows(block.lines), options)
        elif block.kind == "heading":
            yield (
                paint(" ".join(_unstyled(word) for word in _words(block.words, options)), "bold", options.color) + "\n"
            )
        else:
            yield from _wrapped(block, options)


def _words(text: str, options: RenderOptions) -> list[Word]:
    words: list[Word] = [[]]
    for kind, part, address in spans(text):
        shown = f"`{part}`" if kind == "code" and not options.color else part
        shown += f" ({address})" if address and address != part else ""
        for number, piece in enumerate(re.split(r"\s+", shown)):
            if number:
                words.append([])
            if piece:
                words[-1].append((escape.terminal(piece), kind if kind in ("bold", "code") else ""))
    return [word for word in words if word]


def _unstyled(word: Word) -> str:
    return "".join(part for part, _ in word)


def _wrapped(block: Block, options: RenderOptions) -> Iterator[str]:
    hanging = " " * len(block.lead)
    widest = _WIDEST if options.width is None else min(options.width, _WIDEST)
    line, used = block.lead, len(block.lead)
    for word in _words(block.words, options):
        size = sum(cells(part) for part, _ in word)
        if used > len(hanging) and used + 1 + size > widest:
            yield line + "\n"
            line, used = hanging, len(hanging)
        gap = " " if used > len(hanging) else ""
        line += gap + "".join(paint(part, style, options.color) for part, style in word)
        used += len(gap) + size
    yield line + "\n"


def _terminal_table(rows: list[list[str]], options: RenderOptions) -> Iterator[str]:
    plain = [[" ".join(_unstyled(word) for word in _words(cell, options)) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip_longest(*plain, fillvalue="")]
    for number, row in enumerate(plain):
        line = "  ".join(cell + blanks(cell, width) for cell, width in zip(row, widths, strict=False)).rstrip()
        yield paint(line, "bold" if number == 0 else "", options.color) + "\n"


# --- a page ---------------------------------------------------------------------------------------------------------


def to_html(text: str, highest: int = 1) -> Iterator[str]:
    """Every block as an element of its own; lists are paragraphs with their marks; links must lead to the web.

    ``highest`` is the level that the highest headings get.
    """
    for block in blocks(text):
        if block.kind == "code":
            yield "<pre>" + "\n".join(map(escape.html, block.lines)) + "</pre>\n"
        elif block.kind == "table":
            yield from _html_table(table_rows(block.lines))
        elif block.kind == "heading":
            level = min(block.level + highest - 1, 6)
            yield f"<h{level}>{_inline(block.words)}</h{level}>\n"
        elif block.kind == "item":
            yield f"<p>{escape.html(block.lead)}{_inline(block.words)}</p>\n"
        else:
            yield f"<p>{_inline(block.words)}</p>\n"


def _inline(text: str) -> str:
    out = []
    for kind, part, address in spans(text):
        shown = escape.html(part)
        if kind == "link" and address.startswith(("https://", "http://")):
            shown = f'<a href="{escape.html(address)}">{shown}</a>'
        elif kind in ("code", "bold"):
            tag = {"code": "code", "bold": "b"}[kind]
            shown = f"<{tag}>{shown}</{tag}>"
        out.append(shown)
    return "".join(out)


def _html_table(rows: list[list[str]]) -> Iterator[str]:
    yield "<table>\n"
    for number, row in enumerate(rows):
        tag = "th" if number == 0 else "td"
        yield f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in row)}</tr>\n"
    yield "</table>\n"
