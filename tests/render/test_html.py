"""``html``: what each kind of result is on a page, and that every one is whole and well nested."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kshell.engine.result import Column, Nothing, Report, Result, Row, Rows, Section, StyledText, Text, Value
from kshell.errors import CommandError
from kshell.render import render
from tests.render import samples
from tests.render.page import Page, page_of
from tests.render.samples import printed


def test_text() -> None:
    assert printed(samples.text(), "html") == "<pre>\n/image\ntwo\n</pre>\n"


def test_markdown() -> None:
    """Headings are below the levels that a notebook's outline lists."""
    source = (
        '# ls\n\nA **b** `c<` [d](https://a.example/?x="y") [e](javascript:f)\n\n'
        "- one\n\n```\na\nb\n```\n\n| a |\n| - |\n| b |\n\n### f\n"
    )
    assert printed(Text(source, markdown=True), "html") == (
        "<h5>ls</h5>\n"
        '<p>A <b>b</b> <code>c&lt;</code> <a href="https://a.example/?x=%22y%22">d</a> [e](javascript:f)</p>\n'
        "<p>- one</p>\n"
        "<pre>a\nb</pre>\n"
        "<table>\n<tr><th>a</th></tr>\n<tr><td>b</td></tr>\n</table>\n"
        "<h6>f</h6>\n"
    )


def test_a_value_is_a_line() -> None:
    page = page_of(samples.scalar())
    assert page.rows() == [["/image/features/metadataVersion", "4.3-IV0"]]
    assert page.find("th")[0].attrs["scope"] == "row"


def test_an_object_is_a_table_of_its_fields() -> None:
    page = page_of(samples.value())
    assert page.find("caption")[0].text == "/image/topics/byName/orders/0"
    assert page.rows() == [
        ["replicas", "1, 2, 3"],
        ["isr", "[]"],
        ["leader", "1"],
        ["leaderRecoveryState", "RECOVERED"],
        ["fenced", "false"],
        ["rack", "-"],
    ]


def test_objects_in_objects_are_tables() -> None:
    listeners = [{"name": "EXTERNAL", "host": "kafka-1.example", "port": 9092, "protocol": "SASL_PLAINTEXT"}]
    versions = {
        "a.version": {"min": 0, "max": 1},
        "b.version": {"min": 0, "max": 10},
        "c.version": {"min": 0, "max": 1},
    }
    page = page_of(Value("/p", "broker", {"id": 1, "listeners": listeners, "features": versions}))
    assert ["name", "host", "port", "protocol"] in page.rows()
    assert ["b.version", "min=0, max=10"] in page.rows()
    assert "{" not in page.text


def test_a_report_names_its_tables() -> None:
    """Titles are captions, not headings, which would be in the outline of a notebook."""
    page = page_of(samples.report())
    assert page.find("table")[0].find("caption") == []
    assert [caption.text for caption in page.find("caption")] == ["Log", "Voters"]
    assert ["1", "0"] in page.rows()
    assert ["20", "-"] in page.rows()


def test_a_toned_title_is_a_badge() -> None:
    page = page_of(Report([Section("a", StyledText("worst", "critical"), {}), Section("b", "plain", {})]))
    assert [p.text for p in page.find("p")] == ["worst", "plain"]
    assert "background-color" in page.find("p")[0].find("span")[0].attrs["style"]
    assert page.find("p")[1].find("span") == []


def test_nothing() -> None:
    assert printed(Nothing(), "html") == ""


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("result", samples.hostile(), ids=lambda r: type(r).__name__)
def test_hostile_names_stay_words(result: Result, limit: int | None) -> None:
    page_of(result, limit=limit)  # which looks at every element and attribute


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CommandError("here")])
def test_a_table_that_is_ended_is_closed(error: BaseException) -> None:
    def endless() -> Iterator[Row]:
        yield {"n": 1}
        raise error

    chunks: list[str] = []
    with pytest.raises(type(error)):
        chunks.extend(render(Rows((Column("n"),), endless(), live=True), "html"))
    assert Page("".join(chunks)).rows() == [["n"], ["1"]]
