"""Errors in a cell: typed, and shown in a few lines instead of a traceback through our own code."""

from __future__ import annotations

from functools import partial

from kshell import escape
from kshell.errors import Interrupted, KshellError
from kshell.magic.display import put
from kshell.render.faults import own_fault
from kshell.render.output import describe_error

_HOOK = "_render_traceback_"
"""The name by which IPython asks an exception for its own looks."""


def short(error: BaseException, line: str | None = None, place: str = "") -> KshellError:
    """The error as a KshellError that shows itself in a few lines: ``line`` with a caret where it knows the column.

    What nobody foresaw becomes one as well: its text, and the values in its traceback, may be of records.
    """
    made = _typed(error)
    said = describe_error(made, line=line)
    head = f"{type(made).__name__}: {f'{place}: ' if place else ''}"
    made.args = (escape.terminal(made.message),)  # str() of it: a notebook saves that as well
    made.__dict__[_HOOK] = partial(list, (head + said).split("\n"))
    return made


def rendered(error: KshellError) -> list[str]:
    """What IPython shows of one that no line of ours raised (``x.plot()``)."""
    lines: list[str] = short(error).__dict__[_HOOK]()
    return lines


def install() -> None:
    """From now on our errors show themselves so, wherever they come from."""
    setattr(KshellError, _HOOK, rendered)


def remove() -> None:
    """Takes that back."""
    if _HOOK in KshellError.__dict__:
        delattr(KshellError, _HOOK)


def _typed(error: BaseException) -> KshellError:
    if isinstance(error, KshellError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    return own_fault(error)


def tell(error: KshellError) -> None:
    """Shows an error that does not end the cell."""
    put({"text/plain": "\n".join(error.__dict__[_HOOK]())})
