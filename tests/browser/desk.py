"""A notebook that is open in the browser, used as a person does: menus, keys, the toolbar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Dialog, Locator, Page, expect, sync_playwright

from tests.browser.lab import SECONDS, Lab, browser_program

LIMIT = SECONDS * 1000
"""Milliseconds."""
TROUBLE = '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]'
"""Errors, warnings, and whatever else is written to standard error: JupyterLab shows them alike."""


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium. Raises Unavailable."""
    program = browser_program()
    with sync_playwright() as playwright:
        # Its sandbox does without root only.
        started = playwright.chromium.launch(executable_path=program, chromium_sandbox=False, timeout=LIMIT)
        yield started
        started.close()


class Desk:
    """A page with one notebook. Cells are counted from 0; negative numbers count from the end."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        """What went wrong in the page's own scripts, and what a script wanted to tell a person (``alert``)."""
        self.asked: set[str] = set()
        """Addresses that the page asked for."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self.asked.add(request.url))

    def _dialog(self, dialog: Dialog) -> None:
        self.errors.append(f"{dialog.type}: {dialog.message}")
        dialog.dismiss()

    def open(self, url: str) -> None:
        """Opens a notebook and waits until its kernel can be used."""
        self.page.goto(url, timeout=LIMIT)
        self.cells.first.wait_for(timeout=LIMIT)
        self.wait_until_idle()

    @property
    def cells(self) -> Locator:
        """Every cell, in its order."""
        return self.page.locator(".jp-Notebook .jp-Cell")

    @property
    def candidates(self) -> Locator:
        """The lines of the completer's menu."""
        return self.page.locator(".jp-Completer:not(.lm-mod-hidden) .jp-Completer-item")

    def outputs(self, cell: int = -1) -> Locator:
        """What stands below a cell."""
        return self.cells.nth(cell).locator(".jp-OutputArea-output")

    def wait_until_idle(self) -> None:
        """Waits until there is a kernel with nothing to do. (The toolbar says idle before there is one.)"""
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("(ipykernel) | Idle", timeout=LIMIT)

    def run_all(self) -> None:
        """Runs every cell, and waits until each has run, or one has failed and none will."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        # A cell that is empty gets no number, one that waits or runs has a star.
        self.page.wait_for_function(
            """trouble => {
                const cells = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell")]
                    .filter(cell => cell.querySelector(".cm-content").innerText.trim());
                const prompts = cells.map(cell => cell.querySelector(".jp-InputPrompt").textContent);
                const all = cells.length && prompts.every(prompt => /\\[\\d+\\]/.test(prompt));
                const none = !prompts.some(prompt => prompt.includes("*"));
                return all || (none && cells.some(cell => cell.querySelector(trouble)));
            }""",
            arg=TROUBLE,
            timeout=LIMIT,
        )
        self.wait_until_idle()

    def type(self, text: str, cell: int = -1) -> None:
        """Types into a cell in the place of what it has."""
        self.cells.nth(cell).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)

    def start(self, text: str, cell: int = -1) -> None:
        """Types a line and lets it run."""
        self.type(text, cell)
        self.page.keyboard.press("ControlOrMeta+Enter")

    def run(self, text: str, cell: int = -1) -> None:
        """Types a line, runs it and waits for its end."""
        before = self.number(cell)
        self.start(text, cell)
        prompt = self.prompt(cell)
        expect(prompt).not_to_have_text(before, timeout=LIMIT)
        expect(prompt).to_contain_text("]:", timeout=LIMIT)
        expect(prompt).not_to_contain_text("*", timeout=LIMIT)
        self.wait_until_idle()

    def prompt(self, cell: int = -1) -> Locator:
        """Where a cell's number stands."""
        return self.cells.nth(cell).locator(".jp-InputPrompt")

    def number(self, cell: int = -1) -> str:
        """What stands before a cell now: ``[3]:``."""
        return self.prompt(cell).inner_text()

    def typed(self, cell: int = -1) -> str:
        """What a cell has."""
        return self.cells.nth(cell).locator(".cm-content").inner_text()

    def interrupt(self) -> None:
        """The toolbar's square."""
        self.page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="interrupt"]').click()

    def save(self) -> None:
        """Ctrl-S, and waits until the notebook is on the server's disk."""
        self.page.keyboard.press("Escape")
        with self.page.expect_response(
            lambda got: got.request.method == "PUT" and "/api/contents/" in got.url, timeout=LIMIT
        ) as saved:
            self.page.keyboard.press("ControlOrMeta+s")
        assert saved.value.ok, saved.value.status_text

    def evaluate(self, script: str) -> Any:
        """What a function of the page gives."""
        return self.page.evaluate(script)


@contextmanager
def desk(started: Browser, lab: Lab, notebook: str, theme: str = "light", **context: Any) -> Iterator[Desk]:
    """A notebook opened in a window without a past; ``context`` are options of the window."""
    lab.set_theme(theme)
    window = started.new_context(**{"viewport": {"width": 1100, "height": 1400}, **context})
    try:
        found = Desk(window.new_page())
        found.open(lab.page(notebook))
        yield found
    finally:
        window.close()
