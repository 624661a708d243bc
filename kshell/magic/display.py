"""Show results, progress and errors below a cell. This is the only module that uses IPython's display functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from kshell import escape
from kshell.errors import Interrupted, KshellError
from kshell.escape import terminal
from kshell.render.faults import own_fault
from kshell.render.output import describe_error
from kshell.render.progress import Pace
from kshell.result import Result
from kshell.result.shown import bundle, is_table

if TYPE_CHECKING:
    from kshell.result.widget import TableWidget

Forms = Mapping[str, Any]
"""MIME type -> the same output in that form; the notebook shows the richest form that it can."""


def show(result: Result, *, in_terminal: bool = False) -> None:
    """Show a result. In a terminal, several lines begin on a new line, below the prompt that IPython wrote."""
    if result.as_widget and not in_terminal and is_table(result):
        show_widget(result.widget())
        return
    forms = bundle(result)
    if in_terminal and "\n" in forms.get("text/plain", ""):
        forms["text/plain"] = "\n" + forms["text/plain"]
    put(forms)


def put(forms: Forms) -> None:
    """Show an output, given in all its forms; without forms, show nothing."""
    if forms:
        show_raw: Any = display
        show_raw(dict(forms), raw=True)


def show_widget(widget: TableWidget) -> None:
    """Show a widget after its static table, which it hides while the kernel runs and which a saved notebook shows.

    Two outputs are needed, because for a widget without a kernel JupyterLab shows an error, not the other forms of the
    same output. VS Code and Colab arrange outputs differently, and get one output with all forms.
    """
    ip = get_ipython()
    if "__vsc_ipynb_file__" in (ip.user_ns if ip is not None else {}) or "google.colab" in sys.modules:
        put(widget._repr_mimebundle_()[0])
        return
    put(widget.marked_static())
    put(widget.view())


class LiveOutput:
    """An output that is shown once and then updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, forms: Forms) -> None:
        """Show the output, or update it."""
        if self._handle is None:
            handle_type: Any = DisplayHandle
            self._handle = handle_type()
            self._handle.display(dict(forms), raw=True)
        else:
            self._handle.update(dict(forms), raw=True)

    def clear(self) -> None:
        """Empty the display, which cannot be removed."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
        self._handle = None


_EVERY = 0.2
"""Seconds between two drawings of the progress."""


class CellProgress:
    """The progress callback of sources that shows a line below the cell; :meth:`clear` removes it."""

    def __init__(self) -> None:
        self._pace = Pace(_EVERY)
        self._place = LiveOutput()

    def __call__(self, completed: int, total: int, label: str) -> None:
        if not self._pace.is_due():
            return
        name = terminal(os.path.basename(label))
        line = f"{min(completed / total, 1.0):4.0%} of {total / 1e6:.1f} MB  {name}" if total else name
        self._place.draw({"text/plain": line})

    def clear(self) -> None:
        """Remove the line; the next progress starts from scratch."""
        self._place.clear()
        self._pace.end()


_HOOK = "_render_traceback_"
"""The method of an exception that IPython calls for the lines to show in place of a traceback."""


def short(error: BaseException, line: str | None = None, place: str = "") -> KshellError:
    """Return the error as a KshellError that IPython shows in a few lines: ``line`` with a caret, after ``place``.

    An unexpected exception is replaced, too, because its text and traceback may hold values of records.
    """
    failure = _typed(error)
    text = describe_error(failure, line=line)
    head = f"{type(failure).__name__}: {f'{place}: ' if place else ''}"
    failure.args = (escape.terminal(failure.message),)  # escaped, because a notebook also saves str() of the error
    failure.__dict__[_HOOK] = partial(list, (head + text).split("\n"))
    return failure


def rendered(error: KshellError) -> list[str]:
    """Return the lines that IPython shows for an error that no magic raised (``x.plot()``)."""
    lines: list[str] = short(error).__dict__[_HOOK]()
    return lines


def install() -> None:
    """Make IPython use :func:`rendered` for all errors of kshell, also those raised outside the magics."""
    setattr(KshellError, _HOOK, rendered)


def remove() -> None:
    """Undo :func:`install`."""
    if _HOOK in KshellError.__dict__:
        delattr(KshellError, _HOOK)


def _typed(error: BaseException) -> KshellError:
    if isinstance(error, KshellError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    return own_fault(error)


def show_error(error: KshellError) -> None:
    """Show an error that does not end the cell. It must come from :func:`short`."""
    put({"text/plain": "\n".join(error.__dict__[_HOOK]())})
