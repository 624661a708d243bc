"""Write rendered answers to standard output, a file or a program (:func:`emit`), and format error messages."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, TextIO

from kshell import escape
from kshell.engine.result import Result, Rows
from kshell.errors import EXIT_OK, EXIT_USAGE, CommandError, DeadlineError, KshellError, UsageError
from kshell.render import render
from kshell.render.cells import ELLIPSIS, cells
from kshell.render.color import paint
from kshell.sources.directory.files import local_path, require_outside

if TYPE_CHECKING:
    import subprocess

_LAST_ANSWER = 2.0
"""Seconds that a program has to print its last output after Ctrl-C or a deadline ended its input."""
_PIECE, _PAUSE = 1 << 15, 0.1
"""Characters that are written at once, and seconds after which fewer are."""


class OutputClosed(Exception):
    """The reader of standard output has closed the pipe (``| head``). This is no error, and prints no message.

    From then on standard output leads to ``/dev/null``, so that the last flush of the interpreter does not fail.
    """

    exit_code = EXIT_OK
    """The exit code of the answer that was being written, as far as it is known."""


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
    """Render a result and write it to ``stdout``, to the file ``target``, or to the standard input of ``program``.

    ``width`` and ``color`` apply to ``stdout`` only. ``forbidden`` are paths that are not written, nor anything below
    them. ``before`` is called just before the first text goes to ``stdout``.

    Returns:
        The exit code of the writing: 0, or 2 if ``program`` failed. The result's own exit code is not included.

    Raises:
        CommandError: the operating system refuses to write.
        OutputClosed: nobody reads standard output any more.
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
    """Write text that is rendered already, as :func:`emit` does.

    ``live``: each chunk is flushed before the next one is made. If Ctrl-C or a deadline then stops the output, the
    exception is thrown into ``chunks``, so that a generator can yield a last chunk.
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
        # Names are UTF-8 in Kafka; a locale that cannot encode them must not cause a traceback.
        out.reconfigure(encoding="utf-8")
    try:
        with while_read(out) if live else contextlib.nullcontext():
            # Making the first chunk loads the data, with its progress display, so ``before`` is called after it.
            first = list(itertools.islice(chunks, 1))
            if before is not None:
                before()
            _write(first, chunks, out, "standard output", live=live)
    except (BrokenPipeError, OutputClosed):
        _abandon(out)
        raise OutputClosed from None


def _abandon(out: TextIO) -> None:
    """Redirect a closed stream to ``/dev/null``, so that the interpreter can flush its buffer at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, out.fileno())
        finally:
            os.close(nowhere)


def _write(first: list[str], rest: Iterator[str], stream: IO[str], name: str, *, live: bool = False) -> None:
    """Write chunks. An OSError of writing becomes a CommandError; errors of making a chunk are passed on."""
    following = rest if live or stream.isatty() else _joined(rest)
    try:
        for chunk in itertools.chain(first, following):
            _put(chunk, stream, name, flush=live)
    except (KeyboardInterrupt, DeadlineError) as stop:
        for chunk in _last_words(rest, stop) if live else ():
            _put(chunk, stream, name, flush=True)
        raise
    _put("", stream, name, flush=True)


def _joined(chunks: Iterator[str]) -> Iterator[str]:
    """Join chunks that come in quick succession: where Python does not buffer, each is a system call of its own."""
    waiting: list[str] = []
    size, last = 0, time.monotonic()
    try:
        for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= _PIECE or time.monotonic() - last > _PAUSE:
                yield "".join(waiting)
                waiting.clear()
                size, last = 0, time.monotonic()
    except (Exception, KeyboardInterrupt):
        yield "".join(waiting)  # what was made before
        raise
    yield "".join(waiting)


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
    """Throw the exception into the generator, and yield the last chunk that it has, if any."""
    throw = getattr(chunks, "throw", None)
    if throw is not None:
        with contextlib.suppress(type(stop), StopIteration):
            yield throw(stop)


def _failed(name: str, error: OSError) -> CommandError:
    return CommandError(f"{name}: {error.strerror or error}")


@contextlib.contextmanager
def while_read(stream: IO[str]) -> Iterator[None]:
    """Raise OutputClosed in the block as soon as the reader of a pipe is gone, even while the next row is awaited.

    Without this, only the next write would fail. Does nothing without a pipe, or outside the main thread, where signals
    cannot be handled.
    """
    from kshell.render.reader import watched

    with watched(stream, OutputClosed):
        yield


# --- a file ---------------------------------------------------------------------------------------------------------


def _to_file(chunks: Iterator[str], target: str, *, append: bool, forbidden: Iterable[str], live: bool) -> None:
    path = local_path(target)
    require_outside(target, path, forbidden, "choose a file in another directory")
    # The file is opened after the first chunk, so that a command that fails at once leaves it unchanged.
    first = list(itertools.islice(chunks, 1))
    try:
        # The file's mode is 0666 without the bits of the umask, as for the redirection of a shell.
        stream = open(path, "a" if append else "w", encoding="utf-8", newline="")  # noqa: SIM115  # closed below
    except OSError as error:
        raise _failed(target, error) from None
    try:
        _write(first, chunks, stream, target, live=live)
    except BrokenPipeError as error:
        raise _failed(target, error) from None
    finally:
        # An error of flushing was reported already; closing must still free the descriptor.
        with contextlib.suppress(OSError):
            stream.close()


# --- a program ------------------------------------------------------------------------------------------------------


def _to_program(chunks: Iterator[str], program: str, out: TextIO, *, live: bool) -> int:
    """Pipe the chunks into a program and return 0, or 2 if it failed, whatever its own code: 1 means a predicate's no.

    The program itself says on standard error why it failed, as in any shell.
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
                # A program may close its input when it has read enough (head); that is no error.
                with contextlib.suppress(BrokenPipeError, OutputClosed):
                    with while_read(process.stdin) if live else contextlib.nullcontext():
                        _write([], chunks, process.stdin, program, live=live)
                    process.stdin.close()
                    process.wait()
            except (DeadlineError, KeyboardInterrupt):
                # A deadline or Ctrl-C ends the program, too: leaving the block would wait for it. But at a terminal
                # a pager goes on reading the keyboard, and nobody else may do so before it ends.
                is_waiting = out.isatty()
                _end(process, patience=_LAST_ANSWER if live or is_waiting else 0, is_waiting=is_waiting)
                raise
            finally:
                with contextlib.suppress(OSError):
                    process.stdin.close()
    return EXIT_OK if process.returncode == 0 else EXIT_USAGE


def _end(process: subprocess.Popen[str], *, patience: float, is_waiting: bool = False) -> None:
    """End a program; before that, give it ``patience`` seconds to print its result (an endless input was cut).

    ``is_waiting``: wait until it ends by itself, whatever Ctrl-C and the deadline say.
    """
    import subprocess

    assert process.stdin is not None
    if patience:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, KeyboardInterrupt, DeadlineError):
            process.stdin.close()
            process.wait(patience)
    while is_waiting and process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt, DeadlineError):
            process.wait()
    process.terminate()


@contextlib.contextmanager
def _inheritable(out: TextIO) -> Iterator[IO[bytes] | TextIO]:
    """Give a file that a child process can write to; at the end it is copied to ``out`` if that is no real file."""
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
    """Escape a sentence for standard error and break it to the terminal's width. There is no newline at the end.

    Args:
        text: the sentence.
        width: columns of the terminal; ``None`` without a terminal: the sentence stays one line.
        style: a style of :data:`kshell.render.color.CODES`, or ``""``.
        color: whether to use colours.
        name: a prefix of the first line that does not get the style.
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
    """Format an error for standard error: the message, the line with a caret below the fault, the hint.

    ``line`` is the typed line, shown only if the error has a column; if it goes on over several lines, that of the
    fault is shown. An error within an expression has that as its ``text``, which is shown instead. ``width`` and
    ``name`` are those of :func:`message_lines`. There is no newline at the end.
    """
    line = getattr(error, "text", line)
    lines = [message_lines(error.message, width=width, style="error", color=color, name=name)]
    column = error.column if isinstance(error, UsageError) else None
    if line is not None and line.strip() and column is not None:
        start, end = line.rfind("\n", 0, column) + 1, line.find("\n", column)
        line = line[start:] if end < 0 else line[start:end]
        before, visible = escape.terminal(line[: column - start]), escape.terminal(line)
        if width is not None and len(visible) > width - len(_HANGING):
            before, visible = _around(before, visible, width - len(_HANGING))
        lines += [f"  {visible}", f"  {' ' * cells(before)}{paint('^', 'error', color)}"]
    if error.hint:
        lines.append(message_lines(error.hint, width=width, style="hint", color=color))
    return "\n".join(lines)


def _around(before: str, line: str, room: int) -> tuple[str, str]:
    """Cut a line to ``room`` around the fault, with ``…`` at each cut; return the part before the fault, and all."""
    start = max(0, min(len(before) - room // 2, len(line) - room))
    visible = line[start : start + room]
    if start:
        visible = ELLIPSIS + visible[1:]
    if start + room < len(line):
        visible = visible[:-1] + ELLIPSIS
    return before[start:], visible
