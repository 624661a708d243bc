"""Where answers go: standard output, a file (``> FILE``, ``>> FILE``), or a program (``| PROGRAM``)."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, TextIO

from kshell import escape
from kshell.engine.result import Result, Rows
from kshell.errors import EXIT_OK, EXIT_USAGE, CommandError, DeadlineError, KshellError, UsageError
from kshell.render import render
from kshell.render.cells import ELLIPSIS, cells
from kshell.render.color import paint
from kshell.sources.directory.files import demand_outside, local_path

if TYPE_CHECKING:
    import subprocess

_LAST_ANSWER = 2.0
"""Seconds that a program has for its last words after Ctrl-C or a deadline ended what it reads."""


class OutputClosed(Exception):
    """Who read standard output went away (``| head``): there is nobody to write to, and nothing to complain about.

    Standard output leads to nowhere from then on, so that the interpreter's last flush is quiet as well.
    """

    exit_code = EXIT_OK
    """Of the answer that was being written, as far as it was known by then."""


def emit(
    result: Result,
    fmt: str,
    *,
    stdout: TextIO | None = None,
    target: str | None = None,
    append: bool = False,
    program: str | None = None,
    forbidden: Iterable[str] = (),
    before: Callable[[], None] | None = None,
    header: bool = True,
    width: int | None = None,
    color: bool = False,
) -> int:
    """Renders a result and writes it. The exit code of the writing: 0, or 2 when ``program`` ended with a failure.

    To ``stdout`` (``sys.stdout`` when ``None``), with ``width`` and ``color`` as they are; or to the file ``target``,
    or into the standard input of ``sh -c program``, both without colour or width. None of the files
    ``forbidden`` is written, and nothing below such a directory. ``before`` is called when the first words are about to
    go to ``stdout``. The result's own exit code is the caller's business.

    Raises CommandError with the operating system's reason, OutputClosed when nobody reads standard output any more,
    and what the result's rows raise while they are made.
    """
    plain = target is not None or program is not None
    return pour(
        render(result, fmt, header=header, width=None if plain else width, color=color and not plain),
        stdout=stdout,
        target=target,
        append=append,
        program=program,
        forbidden=forbidden,
        before=before,
        live=isinstance(result, Rows) and result.live,
    )


def pour(
    chunks: Iterator[str],
    *,
    stdout: TextIO | None = None,
    target: str | None = None,
    append: bool = False,
    program: str | None = None,
    forbidden: Iterable[str] = (),
    before: Callable[[], None] | None = None,
    live: bool = False,
) -> int:
    """As :func:`emit`, with what is rendered already. ``live``: every chunk is to arrive before the next is made.

    Then ``chunks`` may be a generator that has a last word to say when Ctrl-C or a deadline ends it.
    """
    out = sys.stdout if stdout is None else stdout
    if target is not None:
        _to_file(chunks, target, append=append, forbidden=forbidden, live=live)
        return EXIT_OK
    if program is not None:
        return _to_program(chunks, program, out, live=live)
    _to_stdout(chunks, out, before, live=live)
    return EXIT_OK


def _to_stdout(chunks: Iterator[str], out: TextIO, before: Callable[[], None] | None, *, live: bool) -> None:
    if (out.encoding or "utf-8").lower().replace("-", "") != "utf8" and hasattr(out, "reconfigure"):
        # Names are UTF-8 in Kafka; a locale that cannot say them must not end in a traceback.
        out.reconfigure(encoding="utf-8")
    try:
        with while_read(out) if live else contextlib.nullcontext():
            # What is loaded for the answer is loaded while its first chunk is made.
            first = list(itertools.islice(chunks, 1))
            if before is not None:
                before()
            _write(first, chunks, out, "standard output", live=live)
    except (BrokenPipeError, OutputClosed):
        _abandon(out)
        raise OutputClosed from None


def _abandon(out: TextIO) -> None:
    """Whatever is still in the stream's buffer goes to nowhere when the interpreter flushes it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, out.fileno())
        finally:
            os.close(nowhere)


def _write(first: list[str], rest: Iterator[str], stream: IO[str], name: str, *, live: bool = False) -> None:
    """Only what writing raises becomes a CommandError; what making a chunk raises comes through."""
    try:
        for chunk in itertools.chain(first, rest):
            _put(chunk, stream, name, flush=live)
    except (KeyboardInterrupt, DeadlineError) as stop:
        for chunk in _last_words(rest, stop) if live else ():
            _put(chunk, stream, name, flush=True)
        raise
    _put("", stream, name, flush=True)


def _put(chunk: str, stream: IO[str], name: str, *, flush: bool) -> None:
    try:
        stream.write(chunk)
        if flush:
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed(name, error) from None


def _last_words(chunks: Iterator[str], stop: BaseException) -> Iterator[str]:
    """What a generator has to say before it ends; nothing when it was the one that ended."""
    throw = getattr(chunks, "throw", None)
    if throw is not None:
        with contextlib.suppress(type(stop), StopIteration):
            yield throw(stop)


def _failed(name: str, error: OSError) -> CommandError:
    return CommandError(f"{name}: {error.strerror or error}")


@contextlib.contextmanager
def while_read(stream: IO[str]) -> Iterator[None]:
    """Raises OutputClosed inside, at once, when nobody reads a pipe any more: rows may be long in coming.

    A write would tell the same, and only at the next row. Nothing is watched where there is no pipe, or outside the
    main thread, where no signal can be handled.
    """
    from kshell.render.reader import watched

    with watched(stream, OutputClosed):
        yield


# --- a file ---------------------------------------------------------------------------------------------------------


def _to_file(chunks: Iterator[str], target: str, *, append: bool, forbidden: Iterable[str], live: bool) -> None:
    path = local_path(target)
    demand_outside(target, path, forbidden, "choose a file in another directory")
    # A command that fails before its first word leaves the file as it was.
    first = list(itertools.islice(chunks, 1))
    try:
        # The mode is 0666 without the umask's bits, as a shell's redirection has it.
        stream = open(path, "a" if append else "w", encoding="utf-8", newline="")  # noqa: SIM115  # closed below
    except OSError as error:
        raise _failed(target, error) from None
    try:
        _write(first, chunks, stream, target, live=live)
    except BrokenPipeError as error:
        raise _failed(target, error) from None
    finally:
        # What could not be flushed was said already; closing must still give the descriptor back.
        with contextlib.suppress(OSError):
            stream.close()


# --- a program ------------------------------------------------------------------------------------------------------


def _to_program(chunks: Iterator[str], program: str, out: TextIO, *, live: bool) -> int:
    """0, or 2 when the program failed, whatever its own code: 1 is an answer of kshell's.

    The program says itself why, on standard error, as in any shell.
    """
    import subprocess

    if "\0" in program:
        raise UsageError(f"{program}: no program has a NUL in its line")
    out.flush()
    with _inheritable(out) as target:
        process: subprocess.Popen[str] = subprocess.Popen(
            ["sh", "-c", program], stdin=subprocess.PIPE, stdout=target, encoding="utf-8"
        )
        with process:
            assert process.stdin is not None
            try:
                # A program that has read enough (head) is no failure of ours.
                with contextlib.suppress(BrokenPipeError, OutputClosed):
                    with while_read(process.stdin) if live else contextlib.nullcontext():
                        _write([], chunks, process.stdin, program, live=live)
                    process.stdin.close()
                    process.wait()
            except (DeadlineError, KeyboardInterrupt):
                # A deadline or Ctrl-C ends the program, too: leaving the block would wait for it.
                _end(process, patience=_LAST_ANSWER if live else 0)
                raise
            finally:
                with contextlib.suppress(OSError):
                    process.stdin.close()
    return EXIT_OK if process.returncode == 0 else EXIT_USAGE


def _end(process: subprocess.Popen[str], *, patience: float) -> None:
    """Ends a program; one that gets rows without end may first say what it made of them."""
    import subprocess

    if patience:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            assert process.stdin is not None
            process.stdin.close()
            process.wait(patience)
    process.terminate()


@contextlib.contextmanager
def _inheritable(out: TextIO) -> Iterator[Any]:
    """What a child process may write to so that it arrives in ``out``, which need not be a real file (a notebook)."""
    try:
        out.fileno()
    except (OSError, ValueError, AttributeError):
        import tempfile

        with tempfile.TemporaryFile() as spool:
            try:
                yield spool
            finally:
                spool.seek(0)
                out.write(spool.read().decode("utf-8", "replace"))
    else:
        yield out


# --- errors ---------------------------------------------------------------------------------------------------------


_HANGING = "  "


def message_lines(text: str, *, width: int | None, style: str = "", color: bool = False, name: str = "") -> str:
    """A sentence for standard error, escaped, and broken between words where the terminal is narrower; no newline at
    the end.

    Args:
        text: the sentence.
        width: the terminal's columns; ``None`` where there is none: the sentence stays one line.
        style: a style of :data:`kshell.render.color.CODES`, or none.
        color: whether there are colours.
        name: what the first line begins with, without the style.
    """
    lines = [name + escape.terminal(text)]
    if width is not None and cells(lines[0]) > width:
        from kshell.render.wrapping import wrapped  # late: most sentences are short

        lines = list(wrapped(lines[0], width, hanging=_HANGING))
    first, *rest = lines
    return "\n".join(
        [first[: len(name)] + paint(first[len(name) :], style, color), *(paint(r, style, color) for r in rest)]
    )


def describe_error(
    error: KshellError, *, color: bool = False, line: str | None = None, width: int | None = None, name: str = ""
) -> str:
    """What is said of an error on standard error: the message, the faulty place in ``line``, the hint.

    ``line`` is what was typed; it is shown, with a caret below the fault, when the error knows its column. An error
    within an expression brings that along, and its column counts there. Lines are escaped; there is no newline at the
    end. ``width`` and ``name`` are those of :func:`message_lines`.
    """
    line = getattr(error, "text", line)
    lines = [message_lines(error.message, width=width, style="error", color=color, name=name)]
    column = error.column if isinstance(error, UsageError) else None
    if line is not None and line.strip() and column is not None:
        before, visible = escape.terminal(line[:column]), escape.terminal(line)
        if width is not None and len(visible) > width - len(_HANGING):
            before, visible = _around(before, visible, width - len(_HANGING))
        lines += [f"  {visible}", f"  {' ' * cells(before)}{paint('^', 'error', color)}"]
    if error.hint:
        lines.append(message_lines(error.hint, width=width, style="hint", color=color))
    return "\n".join(lines)


def _around(before: str, line: str, room: int) -> tuple[str, str]:
    """What is before the fault, and the line, as far as there is room around it; ``…`` where the line goes on."""
    start = max(0, min(len(before) - room // 2, len(line) - room))
    visible = line[start : start + room]
    if start:
        visible = ELLIPSIS + visible[1:]
    if start + room < len(line):
        visible = visible[:-1] + ELLIPSIS
    return before[start:], visible
