"""The commands whose rows have a look of their own on pages, on the sample."""

from __future__ import annotations

import pickle

import pytest

from kshell.engine.result import Report, Result, Rows
from kshell.render import render
from tests.commands.shell import run
from tests.docs_reference import sample_session
from tests.render.page import page_of


def answer(line: str) -> Result:
    """As a notebook has it: the rows are read."""
    result = run(sample_session(), line)
    for rows in [result] if isinstance(result, Rows) else []:
        rows.rows = list(rows)
    return result


def test_health_is_folded_by_finding() -> None:
    page = page_of(answer("health"), limit=50)
    first = page.find("details")[0]
    assert first.find("summary")[0].text == "critical offlinePartition (1)"
    assert "open" in first.attrs
    assert page.text.startswith("1 critical, 2 error")
    assert "level" not in [head.text for head in page.find("th")]


def test_health_is_a_table_where_the_line_chose() -> None:
    page = page_of(answer("health --sort -finding --limit 3"))
    assert page.find("details") == []
    assert page.find("th")[1].attrs["aria-sort"] == "descending"
    assert len(page.rows()) == 4
    page = page_of(answer("health --columns path --limit 1"))
    assert page.rows()[-1][0].startswith("critical /image/")


def test_diff_tells_what_became_of_each_field() -> None:
    page = page_of(answer("diff 160 now /image/topics"))
    assert [head.text for head in page.find("th")][:4] == ["change", "path", "type", "value"]
    changed = next(row for row in page.rows() if row[1:2] == ["/image/topics/byName/orders/0"])
    assert changed[0] == "~ changed"
    assert "isr: 3, 1, 2 → 1, 2" in changed[3]
    removed = [row for row in page.rows() if row[0] == "− removed"]
    assert removed
    assert not any("/byId/" in row[1] for row in page.rows() if len(row) == 4)
    assert "more rows say the same" in page.text


def test_diff_of_ids_has_ids() -> None:
    page = page_of(answer("diff 160 now /image/topics/byId"))
    assert sum("/byId/" in row[1] for row in page.rows() if len(row) == 4) > 5
    assert "say the same" not in page.text


def test_diff_of_a_value_without_fields() -> None:
    page = page_of(answer("diff 100 now /image/features"))
    assert all(row[0] in ("change", "+ added", "− removed", "~ changed") for row in page.rows())


def test_status_has_levels() -> None:
    page = page_of(answer("status"))
    assert [caption.text.split("\u2003")[0] for caption in page.find("caption")][-1] == "Problems"
    badges = [cell.text for cell in page.find("td") if cell.find("span")]
    assert badges[:2] == ["critical", "error"]


@pytest.mark.parametrize("line", ["health", "diff 160 now", "topics --sort -partitions"])
def test_what_pages_need_can_be_pickled(line: str) -> None:
    result = answer(line)
    assert isinstance(result, Rows)
    result.readable = result.line = None
    again = pickle.loads(pickle.dumps(result))
    assert list(render(again, "html")) == list(render(result, "html"))


def test_text_looks_as_before() -> None:
    report = answer("status").readable
    assert isinstance(report, Report)
    assert "".join(render(answer("diff 160 now --stat"), "text")).splitlines()[0].split() == [
        "type", "added", "removed", "changed",
    ]  # fmt: skip
