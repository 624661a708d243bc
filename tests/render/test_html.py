"""``html``: golden outputs, and a parser that finds only our own elements around hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from kshell.commands.base.result import Column, Nothing, Result, Rows, Text, Value
from kshell.render import render
from tests.render import samples
from tests.render.samples import printed

TABLE = '<table cellpadding="4" style="border-collapse:collapse">\n'
TH = '<th style="text-align:left;border-bottom:1px solid #8888">'
TD = '<td style="text-align:left">'
NUMBER = '<td style="text-align:right">'


def test_text() -> None:
    assert printed(samples.text(), "html") == "<pre>\n/image\ntwo\n</pre>\n"


def test_markdown() -> None:
    source = (
        '# ls\n\nA **b** `c<` [d](https://a.example/?x="y") [e](javascript:f)\n\n'
        "- one\n\n```\na\nb\n```\n\n| a |\n| - |\n| b |\n"
    )
    assert printed(Text(source, markdown=True), "html") == (
        "<h1>ls</h1>\n"
        '<p>A <b>b</b> <code>c&lt;</code> <a href="https://a.example/?x=&quot;y&quot;">d</a> e</p>\n'
        "<p>- one</p>\n"
        "<pre>a\nb</pre>\n"
        "<table>\n<tr><th>a</th></tr>\n<tr><td>b</td></tr>\n</table>\n"
    )


def test_value() -> None:
    assert printed(samples.scalar(), "html") == (
        f"{TABLE}<tr>{TH}path</th>{TH}value</th></tr>\n"
        f"<tr>{TD}/image/features/metadataVersion</td>{TD}4.3-IV0</td></tr>\n</table>\n"
    )
    assert printed(Value("/p", "partition", {"leader": 1}), "html") == (
        f"{TABLE}<tr>{TH}key</th>{TH}value</th></tr>\n<tr>{TD}leader</td>{NUMBER}1</td></tr>\n</table>\n"
    )


def test_rows() -> None:
    assert printed(samples.rows(), "html", header=False) == (
        f"{TABLE}<tr>{TD}orders</td>{NUMBER}12</td>{TD}1, 2</td>{TD}a</td></tr>\n"
        f"<tr>{TD}a,b</td>{NUMBER}3</td>{TD}[]</td>{TD}-</td></tr>\n</table>\n"
    )


def test_tree() -> None:
    below = '<div style="margin-left:1.5em">\n'
    assert printed(samples.tree(), "html") == (
        f"<details open><summary>/image</summary>{below}<details open><summary>topics</summary>{below}"
        f"<details open><summary>orders</summary>{below}<details open><summary>0</summary>{below}"
        "<div>leader: <code>1</code></div>\n<div>isr: <code>1, 2</code></div>\n"
        "</div></details>\n</div></details>\n</div></details>\n"
        "<div>n: <code>7</code></div>\n<div>… 2 more</div>\n</div></details>\n"
    )


def test_report() -> None:
    page = printed(samples.report(), "html")
    assert page.count("<table") == 3
    assert "<h3>Voters</h3>\n" + TABLE + f"<tr>{TH}id</th>{TH}lag</th></tr>\n<tr>{NUMBER}1</td>{NUMBER}0</td>" in page


def test_nothing() -> None:
    assert printed(Nothing(), "html") == ""


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "cellpadding", "open", "href"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("result", samples.hostile(), ids=lambda r: type(r).__name__)
def test_only_our_elements(result: Result) -> None:
    page = Elements()
    page.feed(printed(result, "html"))
    page.close()
    assert not page.open
    ours = {"table", "tr", "th", "td", "details", "summary", "div", "code", "pre", "p", "h1", "h3", "b"}
    assert page.seen <= ours


def test_a_table_that_is_ended_is_closed() -> None:
    def endless() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        raise KeyboardInterrupt

    chunks: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        chunks.extend(render(Rows((Column("n"),), endless(), live=True), "html"))
    assert "".join(chunks).rstrip().endswith("</table>")
