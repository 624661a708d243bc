"""Tables on pages: what is numeric, sorted, toned, clipped, folded and left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kshell.engine.result import Column, Difference, PageLayout, Row, Rows
from kshell.errors import CommandError
from kshell.render import render
from kshell.render.html_style import TONES
from tests.render import samples
from tests.render.page import Element, page_of
from tests.render.page import Page as Shown


def of(value: Any) -> Element:
    """The cell of a value."""
    return page_of(Rows((Column("v"),), [{"v": value}])).find("td")[0]


def test_rows() -> None:
    page = page_of(samples.rows())
    assert page.rows() == [
        ["name", "partitions", "replicas", "topicId"],
        ["orders", "12", "1, 2", "a"],
        ["a,b", "3", "[]", "-"],
    ]
    assert [head.attrs["scope"] for head in page.find("th")] == ["col"] * 4
    assert len(page.find("thead")) == len(page.find("tbody")) == 1
    assert page.find("caption") == []


def test_no_header() -> None:
    page = page_of(samples.rows(), header=False)
    assert page.find("th") == page.find("thead") == []
    assert page.rows()[0][0] == "orders"


def sides(page: Shown) -> list[str]:
    """On which side the header's and the first row's cells stand."""
    return ["right" if "text-align:right" in cell.attrs["style"] else "left" for cell in page.find("th")]


def test_numbers_stand_right_with_their_header() -> None:
    assert sides(page_of(samples.rows())) == ["left", "right", "left", "left"]
    typed = Rows((Column("a", type="int64"), Column("b", type="string"), Column("c", type=["int32"])), iter([]))
    assert sides(page_of(typed)) == ["right", "left", "left"]
    mixed = page_of(Rows((Column("a"),), [{"a": 1}, {"a": "x"}]))
    assert sides(mixed) == ["left"]
    assert all("text-align:left" in cell.attrs["style"] for cell in mixed.find("td"))


def test_what_the_line_sorted_by_is_marked() -> None:
    columns = tuple(map(Column, ("a", "b", "c")))
    page = page_of(Rows(columns, [], order=(("b", True), ("a", False))))
    heads = page.find("th")
    assert [head.text for head in heads] == ["a ▲", "b ▼", "c"]
    assert [head.attrs.get("aria-sort") for head in heads] == [None, "descending", None]


def test_what_was_left_out_is_said() -> None:
    rows = Rows((Column("n"),), [{"n": n} for n in range(4000)], order=())
    assert page_of(rows, limit=100).text.endswith("100 of 4,000 rows; .df has them all, --where and --limit choose")
    assert len(page_of(rows).rows()) == 4001
    assert page_of(Rows((Column("n"),), [])).text.endswith("no rows")


def test_a_short_value_has_no_title() -> None:
    assert "title" not in of("orders").attrs


def test_a_long_word_is_clipped_and_whole_in_its_title() -> None:
    cell = of("x" * 200)
    assert cell.attrs["title"] == cell.text == "x" * 200
    assert "text-overflow:ellipsis" in cell.attrs["style"]


@pytest.mark.parametrize("value", ["broker 3 is fenced", "x" * 60, [1, 2, 3], "2026-11-21T15:11:24.494Z"])
def test_what_is_short_or_one_word_stays_on_its_line(value: Any) -> None:
    assert "white-space:nowrap" in of(value).attrs["style"]


@pytest.mark.parametrize(
    "value",
    [
        "leader none, isr none of replicas 3, elr 3",
        "a sentence of words " * 5,
        list(range(100)),
        {"a": "x" * 40, "b": "y" * 40},
    ],
)
def test_long_words_wrap(value: Any) -> None:
    cell = of(value)
    assert "white-space:normal" in cell.attrs["style"]
    assert not cell.find("details")


def test_a_command_in_words_is_not_broken_at_its_hyphens() -> None:
    text = "run kafka-leader-election.sh --election-type unclean; or <b-c> wait " + "y-" * 40
    cell = of(text)
    assert cell.text == text
    assert [span.text for span in cell.find("span")] == ["kafka-leader-election.sh", "--election-type", "<b-c>"]


def test_null_is_dim() -> None:
    assert of(None).text == "-"
    assert "opacity" in of(None).attrs["style"]
    assert "opacity" not in of("-").attrs["style"]


ENDPOINT = {"name": "EXTERNAL", "host": "kafka-1.shop.example", "port": 9094, "securityProtocol": "SASL_PLAINTEXT"}


@pytest.mark.parametrize(
    ("value", "line", "inside"),
    [
        ({"isr": [1, 2], "leader": 1, "directories": ["x" * 22] * 3}, "leader 1 · isr 1, 2", ["isr", "1, 2"]),
        ([ENDPOINT, ENDPOINT], "host kafka-1.shop.example · port 9094 … (2)", list(map(str, ENDPOINT.values()))),
        ({"a": None, "b": {"c": 1}, "d": 2, "e": [], "f": "x" * 40}, f"d 2 · e [] · f {'x' * 40}", ["a", "-"]),
        ([["a" * 30], ["b" * 30]], None, None),
    ],
)
def test_objects_are_folded_behind_a_line(value: Any, line: str | None, inside: list[str] | None) -> None:
    cell = of(value)
    assert "open" not in cell.find("details")[0].attrs
    assert line is None or cell.find("summary")[0].text == line
    assert inside is None or inside in cell.rows()


def tone(row: Row) -> str:
    return str(row["level"])


@pytest.mark.parametrize("name", TONES)
def test_a_tone_is_a_word(name: str) -> None:
    """In the cell that says it; else beside what is in the first."""
    row = {"path": "/x", "level": name}
    for columns, expected in ((("path", "level"), name), (("path",), f"{name} /x")):
        page = page_of(Rows(tuple(map(Column, columns)), [row], tone=tone))
        (badge,) = page.find("td")[-1].find("span")
        assert "background-color" in badge.attrs["style"]
        assert page.find("td")[-1].text.endswith(expected)


def test_signs_tell_changes_without_colours() -> None:
    rows = Rows((Column("level"),), [{"level": one} for one in ("added", "removed", "changed")], tone=tone)
    page = page_of(rows)
    assert [cell.text for cell in page.find("td")] == ["+ added", "− removed", "~ changed"]
    assert page.find("caption")[0].text == "1 added, 1 removed, 1 changed"


def test_an_unknown_tone_is_none() -> None:
    page = page_of(Rows((Column("level"),), [{"level": "<b>"}], tone=tone))
    assert page.find("span") == []
    assert page.rows()[-1] == ["<b>"]


def halves(row: Row) -> Row:
    old, new = row["old"], row["new"]
    return {"what": [Difference(name, old.get(name), new.get(name)) for name in row["fields"]]}


def test_differences_are_old_and_new() -> None:
    rows = Rows((Column("old"),), [{"fields": ["isr", "x"], "old": {"isr": [1, 2]}, "new": {"isr": [1], "x": "<"}}])
    rows.page = PageLayout((Column("what"),), halves)
    page = page_of(rows)
    assert [div.text for div in page.find("td")[0].find("div")] == ["isr: 1, 2 → 1", "x: - → <"]
    assert [one.text for one in page.find("del")] == ["1, 2", "-"]
    assert [one.text for one in page.find("ins")] == ["1", "<"]


def is_odd(row: Row) -> bool:
    return bool(row["n"] % 2)


def test_doubles_are_left_out_and_counted() -> None:
    rows = Rows((Column("n"),), [{"n": n} for n in range(5)], page=PageLayout((Column("n"),), repeats=is_odd))
    page = page_of(rows)
    assert page.rows() == [["n"], ["0"], ["2"], ["4"]]
    assert page.text.endswith("2 more rows say the same and are left out; -o json has them")


def findings() -> Rows:
    found = [("critical", "offline", "/a", "x"), *(("warning", "thin", f"/{n}", "y") for n in range(30))]
    columns = tuple(map(Column, ("level", "finding", "path", "next")))
    rows = [dict(zip(("level", "finding", "path", "next"), one, strict=True)) for one in found]
    return Rows(columns, rows, tone=tone, page=PageLayout(columns, fold=("level", "finding")))


def test_folded_rows() -> None:
    page = page_of(findings(), limit=11)
    assert page.text.startswith("1 critical, 30 warning")
    bad, thin = page.find("details")
    assert ("open" in bad.attrs, "open" in thin.attrs) == (True, False)
    assert [one.text for one in page.find("summary")] == ["critical offline (1)", "warning thin (30)"]
    assert bad.rows() == [["path", "next"], ["/a", "x"]]
    assert "next: y" in thin.text  # once for all
    assert thin.rows() == [["path"], *([f"/{n}"] for n in range(10))]
    assert "10 of 30 rows" in thin.text


def test_the_first_block_is_open_where_nothing_is_bad() -> None:
    rows = findings()
    rows.rows = list(rows)[1:]
    (block,) = page_of(rows).find("details")
    assert "open" in block.attrs
    rows.rows = []
    assert page_of(rows).text.endswith("no rows")


def test_rows_stream_and_errors_come_after_the_end() -> None:
    def made() -> Iterator[Row]:
        yield {"n": 1}
        raise CommandError("here")

    chunks: list[str] = []
    with pytest.raises(CommandError):
        chunks.extend(render(Rows((Column("n"),), made()), "html"))
    assert Shown("".join(chunks)).rows() == [["n"], ["1"]]


names = st.text(st.characters() | st.sampled_from("<>&\"'\x1b`=/ "), max_size=12)
values = st.recursive(
    names | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=8,
)


@given(st.lists(names, max_size=3, unique=True), st.lists(values, max_size=3), st.integers(1, 3))
@example([""], [[{"0": [], "00000000x": "0", "0000000000yyy": []}]], 1)  # a table within the table
def test_any_name_and_value_stays_words(columns: list[str], found: list[Any], limit: int) -> None:
    """The page's parser refuses every element, attribute, style and control character that is not ours."""
    made: list[Row] = [dict.fromkeys(columns, value) for value in found]
    page = page_of(Rows(tuple(map(Column, columns)), made), limit=limit)
    outer = page.find("thead")[0]
    assert len(outer.find("th")) == len(columns)
