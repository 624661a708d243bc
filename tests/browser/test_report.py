"""``report`` in a real browser: light, dark, and on paper, where nobody can scroll."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.needed import is_required

if not is_required():
    pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser

from kshell.engine.session import Session
from tests.browser.test_jupyterlab import contrast
from tests.commands.shell import opened, run
from tests.test_fixtures import FIXTURES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAPER = 718
"""CSS pixels of A4 between margins of 1 cm."""
WIDER = """() => [document.scrollingElement, ...document.querySelectorAll('div, pre, figure')]
    .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.outerHTML.slice(0, 200))"""
"""The boxes whose contents are wider than they are."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the report on a cluster with many findings."""
    file = tmp_path_factory.mktemp("report") / "incident.html"
    session: Session = opened(FIXTURES / "4.3.1" / "broker-0")
    run(session, f"report --to {file}")
    assert "<script" not in file.read_text().lower()
    return Path(file).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_light_and_dark(chromium: Browser, report: str, scheme: Literal["light", "dark"]) -> None:
    page = chromium.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page.goto(report)
    for part in ("h1", "h2", ".facts", "nav a", "summary", "tbody td"):
        assert contrast(page.locator(part).first) > 4.5, part
    assert page.locator("h2").count() > 5
    page.close()


def test_nothing_is_cut_on_paper(chromium: Browser, report: str) -> None:
    page = chromium.new_page(viewport={"width": PAPER, "height": 1000})
    page.goto(report)
    assert page.evaluate(WIDER), "on a screen of that width there is something to scroll"
    page.emulate_media(media="print")
    assert page.evaluate(WIDER) == []
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
