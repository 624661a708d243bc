"""What a line shows, and what of it is wrong: a canary, or text that a terminal, a page or a spreadsheet would obey."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

from kshell import escape
from kshell.engine.execution import deadline, prepare, prepare_words
from kshell.engine.result import Exit
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render.answer import answer
from kshell.render.output import describe_error
from tests.canaries.planted import Canaries

_SECONDS = 1
"""After which a line that goes on (``watch --until``) is given up."""
_ALLOWED = {"csv": "\n\t", "tsv": "\n\t"}
"""Characters that an answer has by itself, or between quotes; all others have line feeds only."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_PLAIN_TAGS = frozenset(
    "a abbr b body br caption code col colgroup dd del details div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6"
    " head header html i ins li main meta nav ol p pre section small span strong style summary table tbody td tfoot th"
    " thead time title tr ul wbr".split()
)
"""Of a page: nothing that runs, loads or asks."""


class Shown(NamedTuple):
    """What a line prints: an answer in a format, and messages, which are text."""

    answer: str
    messages: str


def shown(session: Session, line: str | Sequence[str], fmt: str) -> Shown:
    """What a line, or a line's words, prints in a format, whatever format the line itself names."""
    text = line if isinstance(line, str) else " ".join(line)
    out = io.StringIO()
    said: list[str] = []

    def complain(error: KshellError) -> None:
        said.append(describe_error(error, line=line if isinstance(line, str) else None))

    try:
        call = prepare(session, line) if isinstance(line, str) else prepare_words(session, [*line])
        assert call is not None, line
        plain = call._replace(
            shape=call.shape._replace(output=fmt), line=call.line._replace(target=None, program=None, append=False)
        )
        with deadline(_SECONDS if text.startswith(("watch", "follow")) else None):
            answer(plain, complain, stdout=out)
        said += [escape.terminal(note) for note in (*call.session.problems(), *call.session.notes())]
    except Exit:
        pass
    except KshellError as error:
        complain(error)
    return Shown(out.getvalue(), "".join(f"{sentence}\n" for sentence in said))


def faults(fmt: str, text: str | Shown, canaries: Canaries) -> list[str]:
    """What is wrong with an answer in a format, and with messages beside it."""
    if isinstance(text, Shown):
        return [*faults(fmt, text.answer, canaries), *faults("text", text.messages, canaries)]
    found = [f"secret: {place}" for place in sorted(canaries.seen_in(text))]
    allowed = _ALLOWED.get(fmt, "\n")
    odd = {char for char in escape.unsafe().findall(text) if char not in allowed}
    found += [f"raw character: {char!r}" for char in sorted(odd)]
    checks = {"html": _of_page, "markdown": _of_markdown, "csv": _of_csv}
    if fmt in checks:
        found += checks[fmt](text)
    return found


# --- pages -----------------------------------------------------------------------------------------------------------


_FOLLOWED = ("javascript:", "evil.example", "url(")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_picture = tag == "img" and (dict(attrs).get("src") or "").startswith("data:image/png;base64,")
        if tag not in _PLAIN_TAGS and not is_picture:
            self.faults.append(f"tag: {self.get_starttag_text()}")
        for name, value in attrs:
            is_followed = name in ("href", "src", "style", "action") and not (value or "").startswith("#")
            if name.startswith("on") or (is_followed and any(text in (value or "") for text in _FOLLOWED)):
                self.faults.append(f"attribute: {self.get_starttag_text()}")


def _of_page(text: str) -> list[str]:
    page = _Page()
    page.feed(text)
    page.close()
    return page.faults


def _of_markdown(text: str) -> list[str]:
    reader = MarkdownIt("commonmark").enable("table")

    def tokens(level: Any) -> Iterator[Any]:
        for token in level:
            yield token
            yield from tokens(token.children or ())

    return [
        f"{token.type}: {token.content or token.attrs}"
        for token in tokens(reader.parse(text))
        if token.type in ("html_block", "html_inline", "image", "link_open")
    ]


def _of_csv(text: str) -> list[str]:
    cells = (cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row)
    return [f"formula: {cell!r}" for cell in cells if cell[:1] in "=+-@\t\r" and cell and not _NUMBER.fullmatch(cell)]
