"""Tables as widgets: asked for by a line, a cell or the configuration, with a static table beside each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.needed import is_required

if not is_required():
    pytest.importorskip("itables", reason="the extra notebook is not installed")
    pytest.importorskip("anywidget", reason="the extra notebook is not installed")

import kshell
from kshell.engine.result import TIMESTAMP, Column, Rows
from kshell.errors import UsageError
from kshell.result import Result, widget
from tests.canaries.planted import HOSTILE
from tests.magic.shell import Cells, Forms

VIEW = "application/vnd.jupyter.widget-view+json"


def kinds(shown: list[Forms]) -> list[list[str]]:
    return [sorted(forms) for forms in shown]


WIDGET = [["text/html", "text/plain"], [VIEW, "text/html", "text/plain"]]


def test_a_line_asks_for_a_widget_behind_the_static_table(cells: Cells) -> None:
    cells.run("x = %kafka --widget topics\nx")
    assert kinds(cells.shown) == WIDGET
    static = cells.shown[0]["text/html"]
    assert "legacy-import" in static and "<script" not in static and "<style" not in static
    assert "itables" not in json.dumps(cells.shown) and "function" not in json.dumps(cells.shown)
    cells.run("%kafka topics")
    assert VIEW not in cells.shown[-1]


def test_a_cell_asks_for_all_its_lines_and_what_is_no_table_stays_as_it_is(cells: Cells) -> None:
    cells.run("%%kafka --widget\npwd\ntopics --limit 1\nusers -o json\nstatus")
    assert [VIEW in forms for forms in cells.shown] == [False, False, True, False, False]
    assert json.loads(cells.shown[3]["text/plain"])[0]["name"] == "alice"


def test_the_configuration_asks_for_all_lines(cells: Cells) -> None:
    cells.run("%config KafkaMagics.widget = True")
    cells.run("%kafka topics")
    assert kinds(cells.shown) == WIDGET
    cells.run("%reload_ext kshell")
    cells.run("%config KafkaMagics.widget = False")
    cells.run("%kafka topics")
    assert VIEW not in cells.shown[-1]


def test_a_terminal_shows_text(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(cells.ip), "kernel")
    cells.run("%kafka --widget topics")
    assert VIEW not in cells.shown[-1] and "legacy-import" in cells.text()


def test_the_widget_itself_is_shown_the_same_way_and_vs_code_gets_one_output(cells: Cells) -> None:
    cells.run("x = %kafka topics\nx.widget()")
    assert kinds(cells.shown) == WIDGET
    cells.ip.user_ns["__vsc_ipynb_file__"] = "/home/alice/book.ipynb"
    cells.run("x.widget()")
    assert kinds(cells.shown[2:]) == [sorted((VIEW, "text/html", "text/plain"))]


@pytest.fixture(scope="module")
def session() -> kshell.api.Session:
    return kshell.open(demo=True)


def test_it_has_all_rows_in_columns_of_which_those_of_the_page_are_seen(session: kshell.api.Session) -> None:
    result = session.run("partitions")
    arguments: dict[str, Any] = result.widget()._dt_args
    data = json.loads(arguments["data_json"])
    assert len(data) == len(result) and len(data[0]) == len(result.columns)
    seen = [name for name, one in zip(result.columns, arguments["columnDefs"], strict=True) if one["visible"]]
    assert seen == ["topic", "partition", "leader", "replicas", "isr", "elr", "state"]
    numbers = [name for name, one in zip(result.columns, arguments["columnDefs"], strict=True) if one["type"] == "num"]
    assert numbers == [name for name, kind in result.columns.items() if kind == "int32"]


def test_markup_is_text_in_cells_names_and_notes() -> None:
    columns = (*(Column(name) for name in HOSTILE), Column("list"), Column("object"), Column("big"), Column("at"))
    row = {
        **{name: name for name in HOSTILE},
        "list": list(HOSTILE),
        "object": {name: {name: [name]} for name in HOSTILE},
        "big": (1 << 63) - 1,
        "at": None,
    }
    shown = Result(Rows(columns, [row]), notes=HOSTILE).widget()
    cells = json.loads(shown._dt_args["data_json"])[0]
    assert "&lt;img src=x onerror=alert(1)&gt;" in cells[0]
    assert not any("<" in cell or "\x1b" in cell or "\n" in cell for cell in cells)
    assert cells[-2:] == [str((1 << 63) - 1), "-"], "as text: a browser's number would lose its end"
    assert "<img" not in shown._dt_args["table_html"] and "<script" not in shown._dt_args["table_html"]
    assert "keys_to_be_evaluated" not in shown._dt_args
    assert "<img" not in shown.static and "<script" not in shown.static


def test_more_rows_than_a_browser_takes_are_said_to_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widget, "MOST", 10)
    rows = Rows((Column("at", type=TIMESTAMP),), [{"at": None}] * 12)
    shown = Result(rows).widget()
    assert len(json.loads(shown._dt_args["data_json"])) == 10
    assert shown.caption == "the first 10 of 12 rows; --where and --limit choose, .df has them all"


def test_what_cannot_be_a_widget_says_so(session: kshell.api.Session) -> None:
    with pytest.raises(UsageError, match="only a table") as caught:
        session.run("status").widget()
    assert "sections" in str(caught.value.hint)
    assert session.run("status").sections["problems"].widget() is not None
    with pytest.raises(UsageError, match="holds secrets"):
        kshell.open(demo=True, show_secrets=True).run("users").widget()
    for line in ("diff 150 now", "health", "tokens", "topics --limit 0"):
        assert session.run(line).widget()._dt_args["data_json"]


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, session: kshell.api.Session) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    result = session.run("topics")
    monkeypatch.delitem(__import__("sys").modules, "kshell.result.widget")
    monkeypatch.setattr("kshell.extras.importlib.import_module", absent)
    with pytest.raises(UsageError, match="needs the package anywidget"):
        result.widget()
