"""The forms in which a notebook shows a result: HTML, Markdown and plain text, each with the notes below.

IPython asks a :class:`kshell.result.Result` for them. A result with secrets is replaced by a message, because a
notebook saves what it shows.
"""

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

MOST_SHOWN = 100
"""The most rows of a table and nodes of a tree that a notebook shows."""
_WITHHELD = "This answer holds secrets, and a notebook saves what it shows: .rows has them, > FILE writes them."


def html(result: Result) -> str | None:
    """The result as an HTML fragment; ``None`` if it is empty or another format was requested."""
    if result.parts:
        return _joined(html(part) for part in result.parts)
    if result.output not in ("", "html") or is_empty(result):
        return None
    notes = "".join(f'<p style="opacity:.75">{escape.html(note)}</p>\n' for note in result.news)
    if result.secret:
        return f"<p>{escape.html(_WITHHELD)}</p>\n"
    limit = MOST_SHOWN if not result.output else None
    answer = result.answer if result.output else for_eyes(result.answer)
    return picture(result) + "".join(render(answer, "html", limit=limit)) + notes


def for_eyes(answer: Answer) -> Answer:
    """Return ``readable`` of a result if it is a table or report; else, or with a page layout, the result itself."""
    people = answer.readable
    if isinstance(answer, Rows) and answer.page is not None:
        return answer
    if isinstance(people, Report) or (isinstance(people, Rows) and people.columns):
        return people
    return answer


def picture(result: Result) -> str:
    """Return an HTML image in place of a plot that text draws with characters; ``""`` if there is none to draw."""
    if not isinstance(result.answer.readable, Drawing) or result.secret:
        return ""
    try:
        return result.plot().to_html()
    except UsageError:
        return ""  # without a plotting library, only the rows are shown


def markdown(result: Result) -> str | None:
    """The result as Markdown; ``None`` if it is empty or another format was requested."""
    if result.parts:
        return _joined(markdown(part) for part in result.parts)
    if result.output not in ("", "markdown") or is_empty(result):
        return None
    if result.secret:
        return _WITHHELD
    limit = MOST_SHOWN if not result.output else None
    notes = "".join(f"\n{escape.markdown(note)}\n" for note in result.news)
    return "".join(render(result.answer, "markdown", limit=limit)) + notes


def text(result: Result) -> str:
    """The result as plain text in the requested format, in full; by default as at a terminal, with a limit of lines."""
    if result.parts:
        return _joined(text(part) for part in result.parts) or ""
    if is_empty(result):
        return ""
    if result.secret:
        return _WITHHELD
    fmt = result.output or "text"
    width = shutil.get_terminal_size().columns if fmt == "text" else None
    notes = [f"note: {escape.terminal(note)}" for note in result.news] if fmt in ("text", "wide") else []
    lines = render(result.answer, fmt, width=width)
    if not result.output:
        lines = _first(lines)
    return "\n".join(["".join(lines).removesuffix("\n"), *notes]).lstrip("\n")


def _first(chunks: Iterator[str]) -> Iterator[str]:
    """Yield the first lines and a note with the number of further ones, which every saved notebook would hold."""
    remaining = MOST_SHOWN + 1  # one more for the header of a table
    more = 0
    for chunk in chunks:
        lines = chunk.splitlines(keepends=True)
        yield from lines[:remaining]
        more += len(lines[remaining:])
        remaining = max(remaining - len(lines), 0)
    if more:
        yield f"… {more:,} more line{'' if more == 1 else 's'}; print(x) and .rows have all\n"


def _joined(forms: Iterable[str | None]) -> str | None:
    return "\n".join(form for form in forms if form) or None


def bundle(result: Result) -> dict[str, str]:
    """Return all forms of a result by MIME type; the notebook shows the richest form that it can."""
    forms = {"text/plain": text(result), "text/markdown": markdown(result), "text/html": html(result)}
    return {kind: form for kind, form in forms.items() if form}


def is_table(result: Result) -> bool:
    """Whether a result is shown as a table, so that :meth:`Result.widget` works."""
    return isinstance(for_eyes(result.answer), Rows) and not result.output and not result.secret


def is_empty(result: Result) -> bool:
    """Whether a result itself has nothing to show: it has no answer, or only parts."""
    return isinstance(result.answer, Nothing | Many)
