"""kshell in marimo, as somebody with a browser sees it: what a cell ends with shows itself, without any magic."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.needed import is_required, missing

if not is_required():
    pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, expect

from tests import builders
from tests.browser.desk import LIMIT, Desk
from tests.browser.lab import SECONDS
from tests.browser.test_jupyterlab import contrast, rows
from tests.canaries.planted import HOSTILE, IMAGE, hostile_values
from tests.notebooks.running import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "session",
    'session.run("topics")',
    'session.run("tree /image/cluster")',
    'session.run("timeline --all").plot()',
    "session.partitions().widget()",
    "session.topics().to_polars()",
)
_BOOK = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import kshell

    session = kshell.open({directory!r})
    return (session,)
"""


@pytest.fixture(scope="module")
def page_of_marimo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a marimo that shows the cells on a dark page. Skips without marimo."""
    if find_spec("marimo") is None:
        missing("marimo is not installed")
    place = tmp_path_factory.mktemp("marimo")
    leader = builders.control_batch([builders.leader_change()])
    builders.write_log(place / "data", leader, builders.batch(hostile_values(), 1))
    shown = "".join(f"\n\n@app.cell\ndef _(session):\n    {cell}\n    return\n" for cell in CELLS)
    (place / "book.py").write_text(_BOOK.format(directory=str(place / "data")) + shown)
    config = place / "home" / ".config" / "marimo" / "marimo.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[display]\ntheme = "dark"\n')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KSHELL_", "XDG_"))}
    env = {**kept, "HOME": str(place / "home"), "PYTHONPATH": str(ROOT), "MARIMO_SKIP_UPDATE_CHECK": "1"}
    words = ["run", "book.py", "--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    with (place / "log").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "marimo", *words],
            cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            _wait(server, f"http://127.0.0.1:{port}/health", place / "log")
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(SECONDS)
            if server.poll() is None:
                server.kill()
                server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"marimo did not come up:\n{log.read_text('utf-8', 'replace')[-4000:]}")


def test_answers_show_themselves(chromium: Browser, page_of_marimo: str) -> None:
    window = chromium.new_context(viewport={"width": 1100, "height": 3000}, color_scheme="dark")
    try:
        found = Desk(window.new_page())
        page = found.page
        page.goto(page_of_marimo, timeout=LIMIT)
        expect(page.get_by_text("<kshell session on")).to_be_visible(timeout=LIMIT)
        topics = page.locator("table:has(th:text-is('underReplicated'))").first
        expect(rows(topics).first).to_be_visible(timeout=LIMIT)
        assert IMAGE in topics.inner_text() and rows(topics).count() == len(HOSTILE)
        assert contrast(rows(topics).first.locator("td").first) > 4.5
        heads = [box for head in topics.locator("th").all() if (box := head.bounding_box())]
        names = topics.locator("th").all_inner_texts()
        assert all(box["width"] > 7 * len(name) for box, name in zip(heads, names, strict=True)), "room between them"
        expect(page.locator("summary", has_text="brokers").first).to_be_visible()
        picture = page.locator(".output img").first
        expect(picture).to_be_visible(timeout=LIMIT)
        widget = page.locator(".kshell-widget:visible").last
        expect(rows(widget).first).to_be_visible(timeout=LIMIT)
        assert contrast(rows(widget).first.locator("td").first) > 4.5
        page.locator(".dt-search input").fill("onerror")
        expect(page.locator(".dt-info")).to_contain_text("of 1 entry", timeout=LIMIT)
        assert found.errors == []
        outside = re.compile(r"(http|ws)://127\.0\.0\.1:|data:|blob:")
        assert [address for address in found.asked if not outside.match(address)] == []
    finally:
        window.close()
