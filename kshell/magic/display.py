"""What stands below a cell: the one place that talks to IPython's displays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from IPython.display import DisplayHandle, display

from kshell.result import Result
from kshell.result.shown import bundle

Forms = Mapping[str, str]
"""MIME type -> the same thing in that form; the front end shows the richest that it can."""


def show(result: Result, *, in_terminal: bool = False) -> None:
    """Shows a result. In a terminal it begins on a line of its own, below the prompt that IPython wrote."""
    forms = bundle(result)
    if in_terminal and "\n" in forms.get("text/plain", ""):
        forms["text/plain"] = "\n" + forms["text/plain"]
    put(forms)


def put(forms: Forms) -> None:
    """Shows something; nothing where there is no form of it."""
    if forms:
        shown: Any = display
        shown(dict(forms), raw=True)


class Drawing:
    """Something that is shown once and then replaced in its place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, forms: Forms) -> None:
        """Shows it, or what it has become."""
        if self._handle is None:
            made: Any = DisplayHandle
            self._handle = made()
            self._handle.display(dict(forms), raw=True)
        else:
            self._handle.update(dict(forms), raw=True)

    def clear(self) -> None:
        """Empties the place: a display cannot be taken back."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
        self._handle = None
