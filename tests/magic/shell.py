"""Cells as a notebook runs them: in IPython's own shell, with every display recorded."""

from __future__ import annotations

import io
import sys
from typing import Any, cast

from IPython.core.completer import provisionalcompleter
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from kshell.errors import KshellError

Forms = dict[str, Any]


class _Publisher(DisplayPublisher):
    """Keeps what is displayed; an update replaces what it updates, as a page would."""

    shown: list[Forms]
    places: dict[str, int]

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: Any = False,
        **rest: Any,
    ) -> None:
        place = str((transient or {}).get("display_id", ""))
        if update:
            self.shown[self.places[place]] = data
            return
        if place:
            self.places[place] = len(self.shown)
        self.shown.append(data)


class _Hook(DisplayHook):
    """The last value of a cell, as a kernel sends it: no prompt, and nothing where nothing is to be seen."""

    shown: list[Forms]

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: Forms, md_dict: Any = None) -> None:
        if format_dict:
            self.shown.append(format_dict)

    def finish_displayhook(self) -> None: ...


class _Shell(InteractiveShell):
    """With a kernel's looks: what has no end is drawn in its place."""

    kernel = True

    def init_display_pub(self) -> None:
        made: Any = _Publisher
        self.display_pub = made(parent=self, shell=self)


class Cells:
    """``shown`` is what stands below the cells that ran."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.Completer.use_jedi = False
        InteractiveShell.clear_instance()
        _Shell.clear_instance()
        self.ip: Any = _Shell.instance(config=config, displayhook_class=_Hook)
        self.shown: list[Forms] = []
        publisher, hook = cast("_Publisher", self.ip.display_pub), cast("_Hook", self.ip.displayhook)
        publisher.shown, publisher.places, hook.shown = self.shown, {}, self.shown
        self.stderr = ""
        self.ip.run_line_magic("load_ext", "kshell")

    def run(self, cell: str) -> Any:
        """Runs a cell; its value. Raises what it raised."""
        out, err = io.StringIO(), io.StringIO()
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = out, err
        try:
            done = self.ip.run_cell(cell, store_history=False)
        finally:
            sys.stdout, sys.stderr = before
        self.stderr += err.getvalue()
        self.printed = out.getvalue()
        done.raise_error()
        return done.result

    def fails(self, cell: str) -> KshellError:
        """Runs a cell that must fail with an error of ours; ``printed`` is what a person sees."""
        try:
            self.run(cell)
        except KshellError as error:
            return error
        raise AssertionError(f"{cell!r} did not fail")

    def complete(self, text: str) -> list[str]:
        """The candidates at ``|``, each as the whole line becomes."""
        at = text.index("|")
        text = text[:at] + text[at + 1 :]
        line = text[:at].count("\n")
        with provisionalcompleter():
            found = list(self.ip.Completer.completions(text, at))
        head = text[:at].rpartition("\n")[0]
        start_of_line = len(head) + 1 if line else 0
        return [text[start_of_line : one.start] + one.text for one in found]

    def text(self, at: int = -1) -> str:
        """A display as a terminal has it."""
        return str(self.shown[at].get("text/plain", ""))

    def close(self) -> None:
        """Ends the shell; sessions are closed."""
        held = getattr(self.ip, "_kshell_notebook", None)
        if held is not None:
            for name in list(held.sessions):
                held.sessions.close(name)
        self.ip.run_line_magic("unload_ext", "kshell")
        _Shell.clear_instance()
