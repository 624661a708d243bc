"""Render the Markdown of ``help`` and ``man`` for terminals and HTML pages; markdown-it parses it.

Supported are headings, paragraphs, lists, fenced and indented code, tables, and inside a line ``**bold**``,
`` `code` `` and links. Anything else stays text, HTML included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from kshell import escape
from kshell.render.cells import blanks, cells
from kshell.render.color import paint
from kshell.render.options import RenderOptions
from kshell.render.wrapping import wrapped

_WIDEST = 100
"""The most columns of a line, so that it is pleasant to read."""
_UNBROKEN = 40
"""Inline code of at most so many columns is never broken."""
_BRACKETED = re.compile(r"(?:\[(?:[^\[\]]|\[[^\[\]]*\])*\]|\S)+")
"""The parts of a synopsis that are not broken: ``[--sort [-]FIELD,…]``."""
_RULES = ("heading", "list", "fence", "code", "table", "backticks", "emphasis", "link", "escape")


class Span(NamedTuple):
    """A part of a line in one style. ``kind``: ``""``, ``code``, ``bold`` or ``link``; ``address``: the link's URL."""

    kind: str
    text: str
    address: str = ""


class Block(NamedTuple):
    """A block: ``heading`` (of a ``level``, 1 to 6), ``paragraph``, ``item`` (``lead``: indentation and mark),
    ``code``, ``table``.

    ``rows``: the cells of a table, the header first; the lines of code; for any other kind, one cell.
    """

    kind: str
    rows: Sequence[Sequence[Sequence[Span]]]
    level: int = 0
    lead: str = ""

    @property
    def spans(self) -> Sequence[Span]:
        """The content of a block that is neither code nor table."""
        return self.rows[0][0]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("zero").enable(_RULES)


def blocks(text: str) -> Iterator[Block]:
    """Parse a text and yield its blocks in order."""
    for node in SyntaxTreeNode(_parser().parse(text)).children:
        yield from _blocks(node)


def _blocks(node: SyntaxTreeNode, indent: str = "") -> Iterator[Block]:
    if node.type in ("fence", "code_block"):
        yield Block("code", [[[Span("code", line)]] for line in node.content.removesuffix("\n").split("\n")])
    elif node.type == "table":
        yield Block(
            "table", [[_spans(cell) for cell in row.children] for section in node.children for row in section.children]
        )
    elif node.type == "heading":
        yield Block("heading", [[_spans(node)]], level=int(node.tag[1]))
    elif node.type == "paragraph":
        yield Block("paragraph", [[_spans(node)]])
    else:
        for item in node.children:
            lead = f"{indent}{item.info}{item.markup} "
            for block in (block for child in item.children for block in _blocks(child, indent + "  ")):
                yield block._replace(kind="item", lead=lead) if block.kind == "paragraph" else block
                lead = " " * len(lead)


def _spans(node: SyntaxTreeNode) -> list[Span]:
    """Return the parts of a node whose content is one line of text."""
    return [_span(part) for inline in node.children for part in inline.children]


def _span(part: SyntaxTreeNode) -> Span:
    """Convert an inline node; nested styles inside bold or a link are dropped."""
    inside = "".join(_span(child).text for child in part.children)
    if part.type == "strong":
        return Span("bold", inside)
    if part.type == "link":
        return Span("link", inside, str(part.attrs["href"]))
    if part.type == "em":
        return Span("", f"{part.markup}{inside}{part.markup}")
    if part.type == "softbreak":
        return Span("", " ")
    return Span("code" if part.type == "code_inline" else "", part.content)


# --- a terminal -----------------------------------------------------------------------------------------------------

StyledWord = list[tuple[str, str]]
"""A word between two blanks as (text, style) parts."""


def to_terminal(text: str, options: RenderOptions) -> Iterator[str]:
    """Render Markdown for a terminal, broken to its width. Without colours, inline code keeps its backticks."""
    before = ""
    for block in blocks(text):
        if before and not (before == block.kind == "item"):
            yield "\n"
        before = block.kind
        if block.kind == "code":
            for [[line]] in block.rows:
                for text in _code_lines(escape.terminal(line.text), options):
                    yield "    " + paint(text, "code", options.color) + "\n"
        elif block.kind == "table":
            yield from _terminal_table(block, options)
        elif block.kind == "heading":
            yield paint(_unstyled(block.spans, options), "bold", options.color) + "\n"
        else:
            yield from _wrapped(block, options)


def _code_lines(line: str, options: RenderOptions) -> Iterable[str]:
    """Return a line of code unchanged; only a comment may be broken, into several comments."""
    if options.width is None or not line.startswith("# "):
        return (line,)
    return wrapped(line, options.width - 4, hanging="# ")


def _styled_words(spans: Sequence[Span], options: RenderOptions) -> list[StyledWord]:
    styled_words: list[StyledWord] = [[]]
    for kind, part, address in spans:
        text = f"`{part}`" if kind == "code" and not options.color else part
        text += f" ({address})" if address and address != part else ""
        pieces = _pieces(text) if kind == "code" else re.split(r"\s+", text)
        for number, piece in enumerate(pieces):
            if number:
                styled_words.append([])
            if piece:
                styled_words[-1].append((escape.terminal(piece), kind if kind in ("bold", "code") else ""))
    return [styled_word for styled_word in styled_words if styled_word]


def _pieces(code: str) -> list[str]:
    """Split inline code into parts that are not broken: short code is one, a long synopsis breaks between options."""
    return [code] if cells(code) <= _UNBROKEN else _BRACKETED.findall(code)


def _unstyled(spans: Sequence[Span], options: RenderOptions) -> str:
    return " ".join("".join(part for part, _ in styled_word) for styled_word in _styled_words(spans, options))


def _wrapped(block: Block, options: RenderOptions) -> Iterator[str]:
    hanging = " " * len(block.lead)
    widest = _WIDEST if options.width is None else min(options.width, _WIDEST)
    line, used = block.lead, len(block.lead)
    for styled_word in _styled_words(block.spans, options):
        size = sum(cells(part) for part, _ in styled_word)
        if used > len(hanging) and used + 1 + size > widest:
            yield line + "\n"
            line, used = hanging, len(hanging)
        gap = " " if used > len(hanging) else ""
        line += gap + "".join(paint(part, style, options.color) for part, style in styled_word)
        used += len(gap) + size
    yield line + "\n"


def _terminal_table(block: Block, options: RenderOptions) -> Iterator[str]:
    plain = [[_unstyled(cell, options) for cell in row] for row in block.rows]
    widths = [max(map(cells, column)) for column in zip_longest(*plain, fillvalue="")]
    for number, row in enumerate(plain):
        line = "  ".join(cell + blanks(cell, width) for cell, width in zip(row, widths, strict=False)).rstrip()
        yield paint(line, "bold" if number == 0 else "", options.color) + "\n"


# --- a page ---------------------------------------------------------------------------------------------------------


def to_html(text: str, highest: int = 1) -> Iterator[str]:
    """Render Markdown as HTML, one element per block. Items of lists are paragraphs; only http and https links work.

    ``highest`` is the level that headings of level 1 get.
    """
    for block in blocks(text):
        if block.kind == "code":
            yield "<pre>" + "\n".join(escape.html(line.text) for [[line]] in block.rows) + "</pre>\n"
        elif block.kind == "table":
            yield from _html_table(block)
        elif block.kind == "heading":
            level = min(block.level + highest - 1, 6)
            yield f"<h{level}>{_inline(block.spans)}</h{level}>\n"
        else:
            yield f"<p>{escape.html(block.lead)}{_inline(block.spans)}</p>\n"


def _inline(spans: Sequence[Span]) -> str:
    out = []
    for kind, part, address in spans:
        markup = escape.html(part)
        if kind == "link" and address.startswith(("https://", "http://")):
            markup = f'<a href="{escape.html(address)}">{markup}</a>'
        elif kind in ("code", "bold"):
            tag = {"code": "code", "bold": "b"}[kind]
            markup = f"<{tag}>{markup}</{tag}>"
        out.append(markup)
    return "".join(out)


def _html_table(block: Block) -> Iterator[str]:
    yield "<table>\n"
    for number, row in enumerate(block.rows):
        tag = "th" if number == 0 else "td"
        yield f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in row)}</tr>\n"
    yield "</table>\n"
