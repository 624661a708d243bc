"""A table of 10,000 partitions in JupyterLab: as a widget, saved, and opened where no kernel is."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.needed import is_required

if not is_required():
    pytest.importorskip("playwright", reason="playwright is not installed")
    pytest.importorskip("itables", reason="the extra notebook is not installed")
    pytest.importorskip("anywidget", reason="the extra notebook is not installed")
    pytest.importorskip("nbconvert", reason="the tools of a notebook are not installed")

from playwright.sync_api import Browser, Locator, expect

from tests import builders
from tests.browser.desk import LIMIT, Desk, desk
from tests.browser.lab import Lab
from tests.browser.test_jupyterlab import calm, contrast, rows
from tests.canaries.planted import IMAGE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOPICS, EACH = 100, 100
OFFLINE = (42, 7)
"""Topic and partition without a leader; the topic's name is markup."""


def name_of(topic: int) -> str:
    return IMAGE if topic == OFFLINE[0] else f"events.of.the.country.number-{topic:03}"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A metadata log with 10,000 partitions."""
    values = []
    for topic in range(TOPICS):
        values.append(builders.value("TOPIC", name=name_of(topic), topicId=builders.uuid(topic + 1)))
        for partition in range(EACH):
            gone = (topic, partition) == OFFLINE
            values.append(
                builders.value(
                    "PARTITION",
                    partitionId=partition,
                    topicId=builders.uuid(topic + 1),
                    replicas=[1, 2],
                    isr=[1] if gone else [1, 2],
                    leader=-1 if gone else 1 + partition % 2,
                    leaderEpoch=0,
                )
            )
    place = tmp_path_factory.mktemp("many")
    leader = builders.control_batch([builders.leader_change()])
    builders.write_log(place, leader, builders.batch(values, 1))
    return place


def cells(output: Locator, column: int) -> list[str]:
    """What stands in a column of the rows that are seen."""
    return rows(output).locator(f"td:nth-child({column})").all_inner_texts()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ten_thousand_partitions(chromium: Browser, lab: Lab, directory: Path, theme: str) -> None:
    name = f"table-{theme}.ipynb"
    lab.add(name, [f"%load_ext kshell\n%kafka connect -d {directory};", "%kafka partitions --widget"])
    with desk(chromium, lab, name, theme, permissions=["clipboard-read", "clipboard-write"]) as found:
        found.run_all()
        widget = found.outputs().locator(".dt-container")
        expect(widget.locator(".dt-info")).to_contain_text("10,000", timeout=LIMIT)
        assert found.outputs(1).first.is_hidden(), "the static table is behind the widget"
        assert contrast(rows(widget).first.locator("td").first) > 4.5
        if theme == "light":
            sorted_filtered_searched_and_copied(found, widget)
        calm(found)
        found.save()
    assert "<script" not in lab.saved(name) and "itables" not in lab.saved(name)
    opened_without_its_kernel(chromium, lab, name, theme)


def sorted_filtered_searched_and_copied(found: Desk, widget: Locator) -> None:
    """Every row takes part, not only the ten that are seen."""
    heads = widget.locator("thead tr").first.locator("th")
    assert heads.all_inner_texts() == ["topic", "partition", "leader", "replicas", "isr", "elr", "state"]
    heads.nth(1).click()
    heads.nth(1).click()
    expect(rows(widget).first.locator("td").nth(1)).to_have_text("99", timeout=LIMIT)  # as a number, not before 9
    assert cells(widget, 2) == ["99"] * 10
    heads.nth(2).click()
    expect(rows(widget).first.locator("td").nth(2)).to_have_text("-1", timeout=LIMIT)
    assert cells(widget, 1)[0] == IMAGE and cells(widget, 7)[0] == "offline"

    filter_by(widget, 0, "number-01")
    expect(widget.locator(".dt-info")).to_contain_text("of 1,000 entries", timeout=LIMIT)
    filter_by(widget, 1, "7")  # a number: equals
    expect(widget.locator(".dt-info")).to_contain_text("of 10 entries", timeout=LIMIT)
    assert cells(widget, 1) == [name_of(10 + digit) for digit in range(10)]
    widget.get_by_role("button", name="Copy").click()
    expect(found.page.locator(".dt-button-info")).to_contain_text("10 rows", timeout=LIMIT)
    header, *lines = found.evaluate("() => navigator.clipboard.readText()").replace("\r", "").split("\n")
    assert header.split("\t") == ["topic", "partition", "leader", "replicas", "isr", "elr", "state"]
    assert sorted(filter(None, lines)) == [
        f"{name_of(10 + digit)}\t7\t2\t1, 2\t1, 2\t[]\tonline" for digit in range(10)
    ]

    filter_by(widget, 0, "")
    filter_by(widget, 1, "")
    widget.locator(".dt-search input").fill("offline")
    expect(widget.locator(".dt-info")).to_contain_text("of 1 entry", timeout=LIMIT)
    assert cells(widget, 1) == [IMAGE]
    widget.locator(".dt-search input").fill("")
    widget.locator(".dt-paging button.last").click()
    expect(widget.locator(".dt-info")).to_contain_text("to 10,000", timeout=LIMIT)


def filter_by(widget: Locator, column: int, text: str) -> None:
    """What the magnifying glass in a column's head opens."""
    head = widget.locator(".dt-scroll-head thead tr").first.locator("th").nth(column)
    head.get_by_role("button", name="Search").click()
    box = widget.page.locator(".dtcc-dropdown input:visible")
    box.fill(text)
    widget.page.keyboard.press("Escape")
    expect(box).to_have_count(0, timeout=LIMIT)


def opened_without_its_kernel(chromium: Browser, lab: Lab, name: str, theme: str) -> None:
    """In JupyterLab by its author, whom it trusts, with another kernel; and as a page, where no script may run."""
    book = json.loads(lab.saved(name))
    static, view = (output["data"] for output in book["cells"][1]["outputs"])
    assert static.keys() == {"text/html", "text/plain"} and "application/vnd.jupyter.widget-view+json" in view
    lab.write(f"later-{name}", book)
    with desk(chromium, lab, f"later-{name}", theme) as later:
        static = later.outputs(1).first
        expect(rows(static).first).to_be_visible(timeout=LIMIT)
        assert rows(static).count() == 100 and "100 of 10,000 rows" in static.inner_text()
        assert contrast(rows(static).first.locator("td").first) > 4.5
        calm(later)

    nbconvert: Any = importlib.import_module("nbconvert")
    nbformat: Any = importlib.import_module("nbformat")
    page, _ = nbconvert.HTMLExporter(theme=theme).from_notebook_node(nbformat.reads(lab.saved(name), as_version=4))
    window = chromium.new_context(java_script_enabled=False, offline=True)
    try:
        exported = window.new_page()
        exported.set_content(page, wait_until="domcontentloaded")
        outputs = exported.locator(".jp-OutputArea-output")
        assert rows(outputs).count() == 100 and IMAGE in rows(outputs).first.inner_text()
        assert outputs.locator("script").count() == 0
    finally:
        window.close()
