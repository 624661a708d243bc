"""A result in a notebook: which forms of it there are, and its notes below it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell import escape
from kshell.engine.result import Drawing, Many, Nothing, Report, Rows
from kshell.engine.result import Result as Answer
from kshell.errors import UsageError
from kshell.render import render

if TYPE_CHECKING:
    from kshell.result import Result

SHOWN = 100
"""Rows of a table, and nodes of a tree, that a notebook shows at once."""
_WITHHELD = "This answer holds secrets, and a notebook saves what it shows: .rows has them, > FILE writes them."


def html(result: Result) -> str | None:
    """A fragment of a page; ``None`` where another format was asked for."""
    if result.parts:
        return _joined(html(part) for part in result.parts)
    if result.output not in ("", "html") or is_empty(result):
        return None
    notes = "".join(f'<p style="opacity:.75">{escape.html(note)}</p>\n' for note in result.notes)
    if result.secret:
        return f"<p>{escape.html(_WITHHELD)}</p>\n"
    limit = SHOWN if not result.output else None
    answer = result.answer if result.output else for_eyes(result.answer)
    return picture(result) + "".join(render(answer, "html", limit=limit)) + notes


def for_eyes(answer: Answer) -> Answer:
    """What people are shown where the exact answer does not read well, if that is a table or a page."""
    people = answer.for_people
    if isinstance(answer, Rows) and answer.page is not None:
        return answer
    if isinstance(people, Report) or (isinstance(people, Rows) and people.columns):
        return people
    return answer


def picture(result: Result) -> str:
    """A drawing's picture, where text has one in characters; nothing where it cannot be made."""
    if not isinstance(result.answer.for_people, Drawing) or result.secret:
        return ""
    try:
        return result.plot().to_html()
    except UsageError:
        return ""  # no plotting library: the rows are there


def markdown(result: Result) -> str | None:
    """Markdown; ``None`` where another format was asked for."""
    if result.parts:
        return _joined(markdown(part) for part in result.parts)
    if result.output not in ("", "markdown") or is_empty(result):
        return None
    if result.secret:
        return _WITHHELD
    limit = SHOWN if not result.output else None
    notes = "".join(f"\n{escape.markdown(note)}\n" for note in result.notes)
    return "".join(render(result.answer, "markdown", limit=limit)) + notes


def text(result: Result) -> str:
    """The answer in the format that was asked for, else as a terminal has it, and as much of it as a page has."""
    if result.parts:
        return _joined(text(part) for part in result.parts) or ""
    if is_empty(result):
        return ""
    if result.secret:
        return _WITHHELD
    fmt = result.output or "text"
    width = shutil.get_terminal_size().columns if fmt == "text" else None
    notes = [f"note: {escape.terminal(note)}" for note in result.notes] if fmt in ("text", "wide") else []
    lines = render(result.answer, fmt, width=width)
    if not result.output:
        lines = _first(lines)
    return "\n".join(["".join(lines).removesuffix("\n"), *notes]).lstrip("\n")


def _first(chunks: Iterator[str]) -> Iterator[str]:
    """As many lines as a page shows rows; what follows is only counted: it is saved with every notebook otherwise."""
    left = SHOWN + 1  # a table's header
    more = 0
    for chunk in chunks:
        lines = chunk.splitlines(keepends=True)
        yield from lines[:left]
        more += len(lines[left:])
        left = max(left - len(lines), 0)
    if more:
        yield f"… {more:,} more line{'' if more == 1 else 's'}; print(x) and .rows have all\n"


def _joined(forms: Iterable[str | None]) -> str | None:
    return "\n".join(form for form in forms if form) or None


def bundle(result: Result) -> dict[str, str]:
    """Every form of it, by MIME type: a front end shows the richest that it can."""
    forms = {"text/plain": text(result), "text/markdown": markdown(result), "text/html": html(result)}
    return {kind: form for kind, form in forms.items() if form}


def is_table(result: Result) -> bool:
    """Whether it is shown as a table: :meth:`Result.widget` has one."""
    return isinstance(for_eyes(result.answer), Rows) and not result.output and not result.secret


def is_empty(result: Result) -> bool:
    """Whether there is nothing to see."""
    return isinstance(result.answer, Nothing | Many)
