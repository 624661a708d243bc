"""One server and one browser for the tests of a module; each test has a window of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import Lab, Unavailable, browser_program, serve
from tests.needed import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not for longer than a module: an event loop runs in this thread as long as the browser does.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser. Skips without one."""
    try:
        browser_program()
    except Unavailable as error:
        missing(str(error))
    from tests.browser.desk import browser

    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab server. Skips without JupyterLab."""
    try:
        with serve(tmp_path_factory.mktemp("lab") / "work") as server:
            yield server
    except Unavailable as error:
        missing(str(error))
