"""Render answers of commands as one HTML page without scripts: a section for each, with a picture if it has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kshell import plots
from kshell.commands.report import Answered
from kshell.engine.result import Drawing, Result
from kshell.errors import UsageError
from kshell.escape import html
from kshell.render import render
from kshell.render.html_document import Anchor, document

_DRAWN_AT: Final = 110
"""Width of a picture that is drawn in characters."""
_FOOTER: Final = "Times are UTC. Made by kshell report; nothing in it is run or fetched."


def page(title: str, facts: list[str], notes: list[str], answers: Sequence[Answered]) -> Iterator[str]:
    """The lines of the page; ``facts`` (such as the range of offsets) and ``notes`` come below its title."""
    anchors = [Anchor(each.chapter.name, each.chapter.title) for each in answers]
    body = (line for each in answers for line in _section(each))
    yield from document(title, facts, notes, anchors, body, _FOOTER)


def _section(answered: Answered) -> Iterator[str]:
    chapter = answered.chapter
    yield f'<section id="{chapter.name}" aria-labelledby="{chapter.name}-title">'
    yield f'<h2 id="{chapter.name}-title">{html(chapter.title)}</h2>'
    yield f'<p class="lead">{html(chapter.lead)}</p>'
    if answered.error is not None:
        hint = f" ({answered.error.hint})" if answered.error.hint else ""
        yield f'<p class="note">No answer: {html(answered.error.message + hint)}</p>'
    elif answered.result is not None:
        drawn = list(_picture(answered.result))
        yield from drawn
        # Below a picture, its numbers are in a table that is folded.
        yield from ["<details><summary>Rows</summary>"] if drawn else []
        yield from (chunk.rstrip("\n") for chunk in render(answered.result, "html"))
        yield from ["</details>"] if drawn else []
        if answered.rows == 0:
            yield '<p class="note">Nothing.</p>'
    if answered.left_out:
        yield f'<p class="note">{answered.left_out:,} more rows are left out.</p>'
    line = " ".join(chapter.command_line)
    yield f'<p class="about"><code>{html(line)}</code></p>\n</section>'


def _picture(result: Result) -> Iterator[str]:
    """The HTML of an answer's plot, if one can be drawn; else of its drawing in characters; else nothing."""
    if plots.picture_of(result) is not None:
        try:
            yield f"<figure>{plots.draw(result).to_html()}</figure>"
            return
        except UsageError:
            pass  # nothing to draw, or no library to draw with
    if isinstance(result.readable, Drawing):
        lines = ("".join(parts).rstrip() for parts in result.readable.draw(_DRAWN_AT))
        yield f"<pre>{html(chr(10).join(lines))}</pre>"
