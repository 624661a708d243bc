"""Show answers without an end (``follow``, ``watch``) below a cell, updated in place until Ctrl-C or ``--timeout``."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kshell import escape
from kshell.engine.execution import Call
from kshell.engine.result import Column, Frames, LineResult, Nothing, Row, Rows
from kshell.engine.result import Result as Answer
from kshell.engine.walk import one_line
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, DeadlineError, KshellError
from kshell.magic.display import Forms, LiveOutput
from kshell.render.answer import show_answer
from kshell.result import Result
from kshell.result.shown import bundle
from kshell.tree.image import iso

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LAST = 20
"""The number of newest rows of ``follow`` that are displayed."""
_MOST_ROWS = 100_000
"""The number of newest rows of ``follow`` that its result retains."""
_EVERY = 0.1
"""Seconds between two drawings."""
_COLUMNS = tuple(map(Column, ("time", "offset", "type", "path", "data")))


def show_live(ip: InteractiveShell, call: Call, answer: Frames | Rows) -> Result:
    """Show an answer while it comes, and return what came until its end as the result.

    If Ctrl-C ends it, the exit code is 130. Raises KshellError, after the last state was drawn.
    """
    if not hasattr(ip, "kernel"):
        return _printed(call, answer)
    return _watched(call, answer) if isinstance(answer, Frames) else _followed(call, answer)


class _Paced:
    """A display that is redrawn at a limited rate (:meth:`draw`); :meth:`finish` always draws the last state."""

    def __init__(self) -> None:
        self._place = LiveOutput()
        self._drawn = 0.0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def draw(self, make: Callable[[], Forms]) -> None:
        """Draw now or a little later; ``make`` is called at that time, perhaps in another thread."""
        with self._lock:
            if self._timer is not None:
                return  # the pending drawing will include this change
            wait = self._drawn + _EVERY - time.monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._late, (make,))
                self._timer.daemon = True
                self._timer.start()
                return
            self._put(make())

    def _late(self, make: Callable[[], Forms]) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer = None
                self._put(make())

    def finish(self, forms: Forms) -> None:
        """Draw the last state."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._put(forms)

    def _put(self, forms: Forms) -> None:
        self._drawn = time.monotonic()
        self._place.draw(forms)


# --- follow ----------------------------------------------------------------------------------------------------------


def _followed(call: Call, answer: Rows) -> Result:
    place, newest = _Paced(), _NewestRows(call, answer)
    place.draw(lambda: newest.forms("following"))
    session = call.session
    before, session.announce = session.announce, lambda: place.draw(lambda: newest.forms("following"))
    end, code = "ended", EXIT_OK
    try:
        for _ in newest:
            place.draw(lambda: newest.forms("following"))
    except (KeyboardInterrupt, DeadlineError) as stop:
        end, code = _ended_by(stop)
    except KshellError as error:
        end = error.message
        raise
    finally:
        session.announce = before
        place.finish(newest.forms(end))
    return newest.result(code)


def _ended_by(stop: BaseException) -> tuple[str, int]:
    """Return how the answer ended, as words, and the exit code. Ctrl-C and ``--timeout`` are no errors here."""
    if isinstance(stop, DeadlineError):
        return "ended by --timeout", DeadlineError.exit_code
    return "interrupted", EXIT_INTERRUPTED


class _NewestRows:
    """Iterates over the rows for users of a live answer, and counts them; retains the newest of these, and of all."""

    def __init__(self, call: Call, answer: Rows) -> None:
        self._call = call
        people = answer if call.shape.output or answer.readable is None else answer.readable
        assert isinstance(people, Rows)
        self.answer = people
        self._every = answer
        self._rows: deque[Row] = deque(maxlen=_MOST_ROWS)
        self._shown: deque[Row] = deque(maxlen=_MOST_ROWS)
        self._count = 0
        answer.rows = self._retained(answer.rows)  # those for users are read from these

    def _retained(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._rows.append(row)
            yield row

    def __iter__(self) -> Iterator[Row]:
        for row in self.answer.rows:
            self._shown.append(row)
            self._count += 1
            yield row

    @property
    def line(self) -> Callable[[Row], str] | None:
        """The function that makes a line of text out of a row."""
        return self.answer.line

    def result(self, exit_code: int) -> Result:
        """Return a result with all retained rows, those of the exact formats; a cell shows those for users."""
        rows = _ended(self._every, self._rows)
        if self.answer is not self._every:
            rows.readable = _ended(self.answer, self._shown)
        return Result(rows, output=self._call.shape.output or "", secret=self._is_secret, exit_code=exit_code)

    def forms(self, state: str) -> Forms:
        """Return the display of the newest rows, with their number and ``state`` (``following``, ``ended``) below."""
        first = max(len(self._shown) - _LAST, 0)
        newest = [self._shown[at] for at in range(first, len(self._shown))]
        table = Rows(_COLUMNS, [_short(row) for row in newest])
        summary = f"{self._count} record{'' if self._count == 1 else 's'}, {state}"
        if self._count > _LAST:
            retained = "them all" if self._count <= _MOST_ROWS else f"the last {_MOST_ROWS}"
            summary += f"; the last {_LAST} are shown, .rows has {retained}"
        if self._is_secret:
            table = Rows(_COLUMNS[:-1], table.rows)
        output = self._call.shape.output or ""
        if output and not self._is_secret:
            table = _ended(self.answer, newest)
        forms = bundle(Result(table, notes=[summary, *self._call.session.source.notes()], output=output))
        if output:
            forms["text/plain"] = "\n".join(filter(None, (forms.get("text/plain"), summary)))
        return forms

    @property
    def _is_secret(self) -> bool:
        """Whether values are not redacted; then the contents of records are in the result, but not displayed."""
        return self._call.session.redaction.show_secrets


def _ended(answer: Rows, rows: Iterable[Row]) -> Rows:
    """Return rows of a live answer that come no more."""
    return Rows(answer.columns, list(rows), answer.style, answer.line_column, answer.line)


def _short(row: Row) -> Row:
    when = iso(row["timestampMs"]) or row["timestampMs"]
    return {**row, "time": when, "path": row.get("path"), "data": one_line(row["data"])}


# --- watch -----------------------------------------------------------------------------------------------------------


def _watched(call: Call, frames: Frames) -> Result:
    place, last = _Paced(), Result(Nothing())
    code = EXIT_OK
    forms: Forms = {}
    try:
        for part in frames.parts:
            if part.error is None:
                last = _frame(call, part)
            forms = _forms(frames, last, part.error)
            # The forms are complete here, so a delayed drawing shows this run or a newer one.
            place.draw(partial(dict, forms))
        code = frames.exit_code
    except (KeyboardInterrupt, DeadlineError) as stop:
        end, code = _ended_by(stop)
        forms = _forms(frames, last, None, f", {end}")
    finally:
        if forms:
            place.finish(forms)
    last.exit_code = code if code != EXIT_OK else last.exit_code
    return last


def _frame(call: Call, part: LineResult) -> Result:
    assert part.call is not None and part.result is not None
    output = part.call.shape.output or call.shape.output or ""
    return Result(part.result, output=output, secret=part.call.session.redaction.show_secrets)


def _forms(frames: Frames, last: Result, error: KshellError | None, end: str = "") -> Forms:
    """Return the display of a run, below a line with the command, the interval, and an error of the last run."""
    now = (iso(int(time.time()) * 1000) or "").replace(".000", "")
    head = f"every {frames.every:g} s: {frames.title} · {now}{end}"
    if error is not None:
        head += f" · {error.message}"
    forms = bundle(last)
    forms_shown = {"text/plain": f"{escape.terminal(head)}\n\n{forms.get('text/plain', '')}"}
    if "text/html" in forms or not forms:
        forms_shown["text/html"] = f"<p><strong>{escape.html(head)}</strong></p>\n{forms.get('text/html', '')}"
    return forms_shown


# --- a terminal ------------------------------------------------------------------------------------------------------


def _printed(call: Call, answer: Answer) -> Result:
    """Print the answer as the interactive shell does, because IPython in a terminal cannot update a display."""
    newest = _NewestRows(call, answer) if isinstance(answer, Rows) else None
    runs: deque[Result] = deque(maxlen=1)
    if newest is not None and isinstance(answer, Rows):
        answer = Rows(answer.columns, newest, answer.style, answer.line_column, newest.line, live=True)
    elif isinstance(answer, Frames):
        answer.parts = _retained(call, answer.parts, runs)
    try:
        code = show_answer(call, answer, _complain, sys.stdout)
    except (KeyboardInterrupt, DeadlineError) as stop:
        _, code = _ended_by(stop)
    if newest is not None:
        return newest.result(code)
    last = runs[-1] if runs else Result(Nothing())
    last.exit_code = code if code != EXIT_OK else last.exit_code
    return last


def _retained(call: Call, parts: Iterable[LineResult], runs: deque[Result]) -> Iterator[LineResult]:
    """Yield the runs of ``watch``; add the result of each that succeeds to ``runs``."""
    for part in parts:
        if part.error is None:
            runs.append(_frame(call, part))
        yield part


def _complain(error: KshellError) -> None:
    sys.stderr.write(f"kshell: {escape.terminal(error.message)}\n")
