"""Run a call and print its answer in the requested format, for the one-shot, interactive and notebook front ends.

A call comes in; text goes to standard output, a file or a program, and the exit code goes back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO

from kshell.engine.execution import Call
from kshell.engine.formats import FORMATS
from kshell.engine.predicates import determine_exit_code, exit_code_of
from kshell.engine.result import Frames, Many, Nothing, Report, Result, Rows
from kshell.errors import EXIT_OK, KshellError
from kshell.render import render
from kshell.render.cells import rows_of
from kshell.render.color import use_color
from kshell.render.output import OutputClosed, emit

_DEFAULT_WIDTH = 80
"""The assumed columns of a terminal that does not report its width."""


def answer(call: Call, complain: Callable[[KshellError], None], *, stdout: TextIO | None = None) -> int:
    """Run a call, print its answer, and return the exit code. Raises KshellError, OutputClosed.

    ``complain`` gets errors that do not end the command: of lines of a file (``source --keep-going``), of ``watch``.
    """
    return show_answer(call, call.run(), complain, sys.stdout if stdout is None else stdout)


def show_answer(call: Call, result: Result, complain: Callable[[KshellError], None], out: TextIO) -> int:
    """Print the result of a call that ran already, as :func:`answer` does."""
    if isinstance(result, Frames):
        from kshell.render.frames import show  # late: only watch has them

        return show(call, result, complain, out)
    if isinstance(result, Many):
        return _print_parts(result, complain, out)
    if isinstance(result, Nothing):
        return max(result.exit_code, call.session.exit_code())
    shape, line = call.shape, call.line
    if isinstance(result, Rows) and result.live:
        stop_paging(out)
    fmt = shape.output or "text"
    width = shape.width or terminal_width(out)
    to_screen = fmt == "text" and line.target is None and line.program is None
    visible = answer_last(result, out, width) if to_screen else result
    try:
        written = emit(
            localized(visible, fmt, shape.timezone),
            fmt,
            stdout=out,
            target=line.target,
            append=line.append,
            program=line.program,
            forbidden=call.session.protected,
            before=getattr(call.session.progress, "stop", None) if out.isatty() else None,
            header=not shape.no_header,
            width=width,
            color=use_color(shape.color or "auto", out),
        )
    except OutputClosed as closed:
        determine_exit_code(result)
        closed.exit_code = exit_code_of(result, call.session)
        raise
    return max(written, exit_code_of(result, call.session))


def answer_last(result: Result, out: TextIO, width: int | None) -> Result:
    """Reverse the sections of a report whose first section is the answer, if it is longer than the terminal.

    On a terminal without a pager the user sees only the end of a long text, so the answer is printed last there. With a
    pager, in a file, or in a short text the answer comes first. Other results are returned unchanged.
    """
    page = result if result.readable is None else result.readable
    if not isinstance(page, Report) or not page.is_answer_first or not out.isatty() or getattr(out, "pages", False):
        return result
    import shutil  # late: most answers are short

    size = shutil.get_terminal_size()
    if rows_of("".join(render(page, "text", width=width)), size.columns) < size.lines:
        return result
    return Report(page.sections[::-1], exit_code=page.exit_code)


def _print_parts(many: Many, complain: Callable[[KshellError], None], out: TextIO) -> int:
    code = EXIT_OK
    for part in many.parts:
        if part.error is not None:
            complain(part.error)
            code = max(code, part.error.exit_code)
        elif part.call is not None and part.result is not None:
            try:
                code = max(code, show_answer(part.call, part.result, complain, out))
            except OutputClosed as closed:
                closed.exit_code = max(code, closed.exit_code)
                raise
    return max(code, many.exit_code)


def localized(result: Result, fmt: str, timezone: str | None) -> Result:
    """Return the answer with its times in the user's time zone, if one is set and the format is for reading."""
    if timezone is None or fmt not in FORMATS or not FORMATS[fmt].is_text:
        return result
    from kshell.engine.zones import in_zone  # late: few users set one

    return in_zone(result, timezone)


def localized_text(text: str, timezone: str | None) -> str:
    """Return a text with its times in the user's time zone, if one is set."""
    if timezone is None:
        return text
    from kshell.engine.zones import text_in_zone  # late: few users set one

    return text_in_zone(text, timezone)


def stop_paging(out: TextIO) -> None:
    """Turn paging off on a stream that can page (that of the interactive shell), for an answer without an end."""
    direct = getattr(out, "direct", None)
    if direct is not None:
        direct()


def terminal_width(out: TextIO) -> int | None:
    """Return ``COLUMNS`` if set, else the columns of the terminal; ``None`` without a terminal: nothing is cut."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    if not out.isatty():
        return None
    try:
        return os.get_terminal_size(out.fileno()).columns or _DEFAULT_WIDTH
    except OSError:  # no terminal after all (a test's stream that says it is one)
        return _DEFAULT_WIDTH


def message_width(stream: TextIO) -> int | None:
    """Return the columns for sentences on standard error; ``None`` without a terminal, so that log lines stay whole."""
    return terminal_width(stream) if stream.isatty() else None
