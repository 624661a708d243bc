"""A page as a tree of elements, for the tests of ``html``; anything that kshell does not write is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from kshell.engine.result import Result
from tests.render.samples import invisible, printed

OURS = {
    "table": {"cellpadding", "style"},
    "caption": {"style"},
    "thead": set(),
    "tbody": set(),
    "tr": {"style"},
    "th": {"scope", "style", "aria-sort"},
    "td": {"style", "title"},
    "details": {"open"},
    "summary": {"style"},
    "div": {"style"},
    "span": {"style", "aria-hidden"},
    "code": {"style"},
    "del": {"style"},
    "ins": {"style"},
    "a": {"href"},
    "pre": set(),
    "p": set(),
    "h5": set(),
    "h6": set(),
    "b": set(),
    "strong": set(),
}
"""Every element that a page may have, with its attributes."""

_STYLE = re.compile(r"([a-z-]+:[a-z0-9.,()% -]+)(;[a-z-]+:[a-z0-9.,()% -]+)*")


class Element:
    """An element: its attributes, and what is in it, texts among them."""

    def __init__(self, tag: str, attrs: dict[str, str]) -> None:
        self.tag = tag
        self.attrs = attrs
        self.inside: list[Element | str] = []

    @property
    def text(self) -> str:
        return "".join(one if isinstance(one, str) else one.text for one in self.inside).strip()

    def walk(self) -> Iterator[Element]:
        for one in self.inside:
            if isinstance(one, Element):
                yield one
                yield from one.walk()

    def find(self, tag: str) -> list[Element]:
        """The elements of a name, at any depth."""
        return [one for one in self.walk() if one.tag == tag]

    def rows(self) -> list[list[str]]:
        """The texts of the cells of every row of every table."""
        return [
            [cell.text for cell in row.inside if isinstance(cell, Element) and cell.tag in ("td", "th")]
            for row in self.find("tr")
        ]


class Page(Element):
    """Raises AssertionError for what is not closed, not ours, or would act on whoever looks at the source."""

    def __init__(self, source: str) -> None:
        super().__init__("", {})
        assert not invisible(source), invisible(source)
        reader = _Reader(self)
        reader.feed(source)
        reader.close()
        assert reader.open == [self]


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.open: list[Element] = [page]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in OURS, tag
        assert {name for name, _ in attrs} <= OURS[tag], (tag, attrs)
        made = Element(tag, {name: value or "" for name, value in attrs})
        assert len(made.attrs) == len(attrs)
        assert _STYLE.fullmatch(made.attrs.get("style", "a:b")), made.attrs
        assert made.attrs.get("href", "https://").startswith(("https://", "http://"))
        self.open[-1].inside.append(made)
        self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    handle_pi = handle_comment
    unknown_decl = handle_comment


def page_of(result: Result, **options: Any) -> Page:
    """A result as a page."""
    return Page(printed(result, "html", **options))
