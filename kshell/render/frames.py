"""Show the results of ``watch``: on a terminal each run replaces the last one, with changed words in reverse video.

In a file, a pipe or on a dumb terminal, only results that differ from the last one are written.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from typing import TextIO

from kshell import escape
from kshell.engine.execution import Call
from kshell.engine.formats import FORMATS
from kshell.engine.result import Frames, LineResult
from kshell.errors import KshellError
from kshell.render import render
from kshell.render.answer import localized, localized_text, stop_paging, terminal_width
from kshell.render.cells import ELLIPSIS, cells, clip
from kshell.render.color import paint, use_color
from kshell.render.output import describe_error, pour
from kshell.tree.image import iso

Complain = Callable[[KshellError], None]

_COUNTED = 10_000
"""The most lines below the screen that are counted."""
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def show(call: Call, frames: Frames, complain: Complain, out: TextIO) -> int:
    """Show all runs; return the exit code. Raises what ends them: KeyboardInterrupt, KshellError, OutputClosed."""
    stop_paging(out)
    line = call.line
    if line.target is None and line.program is None and out.isatty() and os.environ.get("TERM") != "dumb":
        _draw(call, frames, out)
    else:
        pour(
            _changes(call, frames, complain, terminal_width(out)),
            stdout=out,
            target=line.target,
            append=line.append,
            program=line.program,
            forbidden=call.session.protected,
            live=True,
        )
    return max(frames.exit_code, call.session.exit_code())


def _rendered(call: Call, part: LineResult, *, header: bool, width: int | None, color: bool) -> Iterator[str]:
    """Render a run. The options of the watched command win over those of ``watch`` itself."""
    if part.call is None or part.result is None:
        return iter(())
    own = part.call.shape
    fmt = own.output or call.shape.output or "text"
    header = header and not (own.no_header or call.shape.no_header)
    result = localized(part.result, fmt, own.timezone or call.shape.timezone)
    return render(result, fmt, header=header, width=width, color=color)


# --- a stream -------------------------------------------------------------------------------------------------------


def _changes(call: Call, frames: Frames, complain: Complain, width: int | None) -> Iterator[str]:
    """Yield every answer that differs from the last one; pass every such error to ``complain``."""
    last: list[str] | None = None
    last_message = ""
    for part in frames.parts:
        if part.error is not None:
            if part.error.message != last_message:
                complain(part.error)
            last_message = part.error.message
            continue
        last_message = ""
        fmt = (part.call.shape.output if part.call else None) or call.shape.output or "text"
        chunks = list(_rendered(call, part, header=True, width=width, color=False))
        if chunks == last:
            continue
        if last is None:
            yield from chunks
        else:
            yield FORMATS[fmt].between
            yield from _rendered(call, part, header=not FORMATS[fmt].one_header, width=width, color=False)
        last = chunks


# --- a terminal -----------------------------------------------------------------------------------------------------


def _draw(call: Call, frames: Frames, out: TextIO) -> None:
    """Draw each run on the terminal with one write, so that nothing flickers; the last one stays on the screen."""
    stop = getattr(call.session.progress, "stop", None)
    color = use_color(call.shape.color or "auto", out)
    last: list[str] | None = None
    row = 0
    try:
        for part in frames.parts:
            if stop is not None:
                stop()
            columns, rows = shutil.get_terminal_size()
            columns = call.shape.width or columns
            body, left_out = _body(call, part, columns, max(rows - 3, 1), color)
            marked = [set[int]() for _ in body] if last is None else changed_words(last, [plain for plain, _ in body])
            painted = [
                fitted(text, places if color else set(), columns)
                for (_, text), places in zip(body, marked, strict=True)
            ]
            more = [paint(clip(left_out, columns), "dim", color)] if left_out else []
            lines = [_header(call, frames, part, columns, color), "", *painted, *more]
            # The first run scrolls the previous content of the screen up, so that it is not lost.
            begin = _HIDE + ("\n" * (rows - 1) if last is None else "") + _HOME
            out.write(begin + "".join(f"{line}{_CLEAR_LINE}\r\n" for line in lines[: rows - 1]) + _CLEAR_BELOW)
            out.flush()
            last, row = [plain for plain, _ in body], 1
    finally:
        if row:
            out.write(_SHOW)
            out.flush()


def _body(call: Call, part: LineResult, columns: int, most: int, color: bool) -> tuple[list[tuple[str, str]], str]:
    """Return the lines that fit on the screen, as (line without colours, line), and a note about the rest."""
    if part.error is not None:
        text = describe_error(part.error, color=color, width=columns).split("\n")
        return [(uncolored(line), line) for line in text[:most]], ""
    lines: list[str] = []
    more = 0
    for line in _lines(_rendered(call, part, header=True, width=columns, color=color)):
        if len(lines) < most:
            lines.append(line)
            continue
        more += 1
        if more > _COUNTED:
            break
    if more:
        # The note needs a line of the screen, too.
        lines.pop()
        more += 1
    rest_note = f"… {'more than ' if more > _COUNTED else ''}{min(more, _COUNTED)} more lines" if more else ""
    return [(uncolored(line), line) for line in lines], rest_note


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    for chunk in chunks:
        yield from chunk.removesuffix("\n").split("\n")


def _header(call: Call, frames: Frames, part: LineResult, columns: int, color: bool) -> str:
    """Return the header: the command on the left, cut if necessary; its time and the image's offset on the right."""
    session = part.call.session if part.call is not None else None
    offset = f" · offset {session.image.provenance.offset}" if session is not None and session.is_loaded else ""
    now = localized_text(iso(int(time.time()) * 1000) or "", call.shape.timezone).replace(".000", "")
    right = f"{now}{offset}"
    left = escape.terminal(f"every {frames.every:g} s: {frames.title}")
    room = columns - cells(right) - 2
    if room < 10:
        return paint(clip(left, columns), "bold", color)
    left = clip(left, room)
    return paint(left, "bold", color) + " " * (columns - cells(left) - cells(right)) + paint(right, "dim", color)


# --- what changed between two screens ---------------------------------------------------------------------------------


_WORD_PATTERN = re.compile(r"\S+")
_PIECE = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)
_REVERSE, _FORWARD = "\x1b[7m", "\x1b[27m"


def changed_words(before: list[str], now: list[str]) -> list[set[int]]:
    """Return for every line of ``now`` the indexes of the characters of new words.

    Lines that only moved up or down have none. A line that replaces others is compared, word by word, with the replaced
    line that has the most words in common with it.
    """
    changed: list[set[int]] = [set() for _ in now]
    for tag, a, b, c, d in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            for at in range(c, d):
                changed[at] = _new(_partner(before[a:b], now[at], at - c), now[at])
    return changed


def _partner(before: list[str], line: str, place: int) -> str:
    """Return the line of ``before`` that shares the most words with ``line``; of several, the nearest one."""
    line_words = set(line.split())

    def likeness(at: int) -> tuple[int, int]:
        return len(line_words.intersection(before[at].split())), -abs(at - place)

    return before[max(range(len(before)), key=likeness)] if before else ""


def _new(before: str, now: str) -> set[int]:
    old = _WORD_PATTERN.findall(before)
    word_matches = list(_WORD_PATTERN.finditer(now))
    places: set[int] = set()
    for tag, _, _, c, d in SequenceMatcher(
        None, old, [match[0] for match in word_matches], autojunk=False
    ).get_opcodes():
        if tag in ("insert", "replace"):
            for match in word_matches[c:d]:
                places.update(range(*match.span()))
    return places


def fitted(line: str, places: set[int], columns: int) -> str:
    """Cut a line, perhaps with colours, to ``columns``, and show the characters at ``places`` in reverse video."""
    fits = not places and cells(uncolored(line)) <= columns
    return line if fits else "".join(_pieces(line, places, columns))


def uncolored(line: str) -> str:
    """Remove the colours of a line."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line) if "\x1b" in line else line


def _pieces(line: str, places: set[int], columns: int) -> Iterator[str]:
    cut = cells(uncolored(line)) > columns
    room = columns - cut
    at, used, reverse = 0, 0, False
    for piece in _PIECE.findall(line):
        if len(piece) > 1:
            # The escape sequence of a colour also ends the reverse video, so it is switched on again.
            yield piece + (_REVERSE if reverse else "")
            continue
        used += cells(piece)
        if used > room:
            break
        if (at in places) != reverse:
            reverse = not reverse
            yield _REVERSE if reverse else _FORWARD
        yield piece
        at += 1
    if reverse:
        yield _FORWARD
    if cut:
        yield ("\x1b[0m" if "\x1b" in line else "") + ELLIPSIS
