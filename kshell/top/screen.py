"""The screen of ``top``: tabs for the panels, the rows, the slider over the log's offsets, and the filter.

:func:`run` shows it. The app never reads the source itself; that is done in the thread of the :class:`Viewer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Final, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.events import Key, Paste
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render.cells import cell, cells, clip
from kshell.render.color import use_color
from kshell.top.panels import PANELS, Opening, PanelRows, lines
from kshell.top.rows_view import RowsView
from kshell.top.viewer import LogMoment, PanelView, Superseded, Viewer

T = TypeVar("T")

_EVERY: Final = 2.0
"""Seconds between two looks for news of the source, at the least."""
_PAUSES: Final = 10
"""How many times as long as reading a page took the screen waits before it looks for news: a large log costs its reader
little of the machine's time."""
_STEPS: Final = 100
"""The number of long steps of the slider from one end of the log to the other."""
_KEYS: Final = "1-5 panel  ←→ time  Enter open  Esc back  / filter  ? help  q quit"
_HELP: Final = """\
1 to 5, Tab, Shift-Tab   another panel
Up, Down, PgUp, PgDn     move; g and G go to the first and the last row
Enter                    open the row: a topic, its partitions, the story of one
Esc                      back, or end the filter
/                        filter: rows that hold a text, in any case
Left, Right              one record back or forward in the log
< and >                  a hundredth of the log (also Shift-Left, Shift-Right)
Home, End                the log's first record; now
r                        read the source again
q, Ctrl-C                quit

The slider shows offset and time of the last record that counts: every panel is the state as of it. \
At `now` the source is read again every two seconds (a large one less often). \
The first step back reads the whole log once."""


def _help(width: int) -> list[str]:
    """Return the lines of the help, broken between words; the keys have a column of their own if there is room."""
    width, keys = min(width, 79), 25
    paragraph = textwrap.TextWrapper(width)
    key = textwrap.TextWrapper(width, subsequent_indent=" " * (keys if width > 2 * keys else 2))
    wrapped = ((key if line[keys - 2 : keys] == "  " else paragraph).wrap(line) for line in _HELP.split("\n"))
    return [part for broken in wrapped for part in broken or [""]]


class Place:
    """An opened page: the rows that it shows, its filter, and the cursor's row (or the first line of a text).

    ``indexes`` are the rows that the filter leaves; ``None`` without a filter. They, and the listing, may be older than
    what is asked for: ``matched`` and ``point`` say which filter and which offset they belong to.
    """

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.filter = ""
        self.position = 0
        self.listing: PanelRows | None = None
        self.indexes: list[int] | None = None
        self.matched = ""
        self.point: int | None = None


class TopApp(App[None]):
    """The textual app. Each panel has a stack of places; attributes say whether something but ``q`` ended the app.

    No widget has the focus, so that all keys take one way, from the screen to the app, in the order in which they were
    typed. Those that a widget handles, and those with ``priority``, would overtake others that are typed ahead.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "kshell top"
    # Only the terminal's default colours, so that the screen also works without colours.
    CSS = """
    Screen, RowsView, Static { background: ansi_default; color: ansi_default; }
    #title, #tabs, #head, #slider, #status { height: 1; width: 1fr; }
    #title { text-style: bold; }
    #head { text-style: underline; }
    RowsView {
        height: 1fr;
        scrollbar-color: ansi_default; scrollbar-color-hover: ansi_default; scrollbar-color-active: ansi_default;
        scrollbar-background: ansi_default; scrollbar-background-hover: ansi_default;
        scrollbar-background-active: ansi_default;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "quit", show=False, priority=True),
        Binding("q", "leave", "quit", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("g", "end(False)", "first row", show=False),
        Binding("G", "end(True)", "last row", show=False),
        Binding("enter", "choose", "open", show=False),
        Binding("left", "step(-1)", "back", show=False),
        Binding("right", "step(1)", "forward", show=False),
        Binding("shift+left,less_than_sign", "long_step(-1)", "far back", show=False),
        Binding("shift+right,greater_than_sign", "long_step(1)", "far forward", show=False),
        Binding("home", "first", "first", show=False),
        Binding("end", "now", "now", show=False),
        Binding("escape", "close", "back", show=False),
        Binding("slash", "filter", "filter", show=False),
        Binding("question_mark", "help", "help", show=False),
        Binding("r", "reload", "read again", show=False),
        *(Binding(str(number), f"panel({number - 1})", show=False) for number in range(1, len(PANELS) + 1)),
    ]

    def __init__(self, viewer: Viewer, *, colored: bool) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.interrupted = False
        """Whether Ctrl-C ended the app."""
        self.is_over_time = False
        """Whether ``--timeout`` ended the app."""
        self.fault: BaseException | None = None
        """The exception of a bug in kshell that ended the app."""
        self.has_limit = False
        """Whether there is a ``--timeout``, which arrives as SIGALRM."""
        self.point: int | None = viewer.start
        """The offset whose state the panels show; ``None`` for now."""
        self.moment: LogMoment | None = None
        self.bounds: tuple[int, int] | None = None
        self._viewer = viewer
        self._colored = colored
        self._stacks = [[Place(opening)] for opening in PANELS]
        self._panel = 0
        self._message = ""
        self._trouble = ""
        """Why the last look for news failed."""
        self._last_check = 0.0
        """When the last look for news ended, by the monotonic clock."""
        self._is_reading = False
        self._waiting: list[Callable[[], None]] | None = None
        """Actions of the slider that wait until the first and last offset of the log are read; ``None`` otherwise."""
        self._displayed: tuple[Place, str, int | None] | None = None
        """The place, filter and point of the rows on the screen."""
        self._queued: list[Callable[[], None]] = []
        """Actions on rows that wait until these are on the screen."""
        self._is_typing = False
        """Whether a filter is being typed."""

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen, from the top."""
        yield Static(id="title", markup=False)
        yield Static(id="tabs", markup=False)
        yield Static(id="head", markup=False)
        yield RowsView(colored=self._colored)
        yield Static(id="slider", markup=False)
        yield Static(id="status", markup=False)

    def on_mount(self) -> None:
        """Read the first panel, and start to look for news regularly."""
        if self.has_limit:
            # The usual handler raises an error wherever Python happens to be, which could be anywhere in textual.
            asyncio.get_running_loop().add_signal_handler(signal.SIGALRM, self._give_up)
        self._read()
        self.set_interval(_EVERY, self._look)

    def on_resize(self) -> None:
        """Draw again; a text page is also read again, because it was rendered for the old width."""
        self._draw()
        if self._place.listing is not None and not self._place.listing.columns:
            self._read()

    # --- what is shown -------------------------------------------------------------------------------------------

    @property
    def _stack(self) -> list[Place]:
        return self._stacks[self._panel]

    @property
    def _place(self) -> Place:
        return self._stack[-1]

    @property
    def _rows(self) -> RowsView:
        return self.query_one(RowsView)

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._viewer.thread, function, *args)

    def _work(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        """Run work that awaits the viewer's thread; it cancels earlier work of the same group.

        ``work`` is a function, not a coroutine, because a coroutine cancelled before it starts would never be awaited.
        """
        self.run_worker(work, group=group, exclusive=True, exit_on_error=False)

    def _read(self) -> None:
        """Read and show the current page at the current point; cancels the reading of another page or point."""
        self._is_reading = True
        self._work(partial(self._show, self._place, self.point), "show")
        self._draw()

    async def _show(self, place: Place, point: int | None) -> None:
        number, width = self._viewer.request(), max(self.size.width - 1, 20)
        try:
            view: PanelView = await self._in_thread(self._viewer.show, number, place.opening, point, width)
        except Superseded:
            return
        indexes, matched = None, ""
        while matched != place.filter:  # the user may go on typing meanwhile
            matched = place.filter
            indexes = await self._in_thread(view.listing.matching, matched) if matched else None
        place.listing, place.indexes, place.matched, place.point = view.listing, indexes, matched, point
        self.moment = view.moment or self.moment
        self._is_reading = False
        self._put_up()

    def _put_up(self) -> None:
        place = self._place
        if place.listing is not None:
            if self._is_shown:
                place.position = self._rows.position  # the user may have moved while it was read again
            self._rows.show(place.listing, place.indexes, place.position)
            self._displayed = place, place.matched, place.point
        self._draw()
        self._run_queued()

    @property
    def _is_shown(self) -> bool:
        """Whether the rows on the screen are the current page's, with its filter, at the current point."""
        return self._displayed == (self._place, self._place.filter, self.point)

    def _with_rows(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the rows are on the screen that the keys before it asked for."""
        self._queued.append(then)
        self._run_queued()

    def _run_queued(self) -> None:
        while self._queued and self._waiting is None and self._is_shown:
            self._queued.pop(0)()

    def _draw(self) -> None:
        with contextlib.suppress(NoMatches):  # before the screen is made
            self._draw_lines()

    def _draw_lines(self) -> None:
        width = self.size.width
        self.query_one("#title", Static).update(Text(clip(f"kshell top: {cell(self._viewer.name)}", width)))
        self.query_one("#tabs", Static).update(self._tabs(width))
        self.query_one("#head", Static).update(Text(self._rows.head(), no_wrap=True))
        self.query_one("#slider", Static).update(Text(self._slider(width), no_wrap=True))
        status = self._typed(width) if self._is_typing else Text(clip(self._status(), width), no_wrap=True)
        self.query_one("#status", Static).update(status)

    def _tabs(self, width: int) -> Text:
        if len(self._stack) > 1:
            names = " > ".join(cell(place.opening.title) for place in self._stack)
            return Text(clip(names, width), style="bold", no_wrap=True)
        text = Text(no_wrap=True)
        for number, opening in enumerate(PANELS):
            text.append(f" {number + 1} {opening.title} ", style="reverse" if number == self._panel else "")
        return text

    def _status(self) -> str:
        if self._message or (self._trouble and self.point is None):
            return self._message or self._trouble
        place = self._place
        if self._is_reading:
            return "reading…"
        if place.listing is None:
            return _KEYS
        count = len(place.listing)
        if place.filter:
            matching = len(place.indexes or ())
            return f"{matching:,} of {count:,} with {cell(place.filter)}  Esc ends the filter"
        notes = [f"{count:,} rows"] if place.listing.columns and len(self._stack) == 1 and count != 1 else []
        notes += [place.listing.note] if place.listing.note else []
        return f"{'; '.join(notes)}  {_KEYS}" if notes and self.size.width > 110 else place.listing.note or _KEYS

    def _typed(self, width: int) -> Text:
        """Return the filter that is being typed, or its end if it is long, with a cursor."""
        text = cell(self._place.filter)
        while cells(text) > max(width - len("/ "), 0):
            text = text[1:]
        return Text("/" + text, no_wrap=True).append(" ", style="reverse")

    def _slider(self, width: int) -> str:
        moment = self.moment
        if moment is None:
            return "now" if self.point is None else f"offset {self.point}"
        # Padded to the length of "now", so that the slider always has the same length.
        position = f"{'now' if self.point is None else '':3} offset {moment.offset}  {moment.time or 'no time known'}"
        room = max(width - cells(position) - 4, 4)
        first, last = self.bounds or (0, max(moment.offset, 1))
        share = 1.0 if self.point is None else (moment.offset - first) / max(last - first, 1)
        at = round(max(0.0, min(share, 1.0)) * (room - 1))
        return f"├{'─' * at}●{'─' * (room - 1 - at)}┤ {position}"

    # --- time ----------------------------------------------------------------------------------------------------

    def action_step(self, records: int) -> None:
        """Move some records back or forward."""
        self._with_bounds(lambda: self._go_by(records))

    def action_long_step(self, hundredths: int) -> None:
        """Move some hundredths of the log back or forward."""
        self._with_bounds(lambda: self._go_by(hundredths * self._hundredth()))

    def action_first(self) -> None:
        """Go to the first record of the log."""
        self._with_bounds(lambda: self._go(0 if self.bounds is None else self.bounds[0]))

    def action_now(self) -> None:
        """Go to the newest state, whatever still waits."""
        self._queued.clear()
        if self._waiting is not None:
            self._waiting.clear()
        self._go(None)

    def _hundredth(self) -> int:
        first, last = self.bounds or (0, 0)
        return max(1, (last - first) // _STEPS)

    def _go_by(self, records: int) -> None:
        assert self.bounds is not None
        first, last = self.bounds
        current = last if self.moment is None else self.moment.offset  # the log may have grown since
        at = min(current, last) if self.point is None else self.point
        if self.point is None and records > 0:
            return
        self._go(None if at + records > last else max(first, at + records))

    def _go(self, point: int | None) -> None:
        self._remember()
        self.point = point
        if point is not None:
            self.moment = LogMoment(point, None) if self.moment is None else self.moment._replace(offset=point)
        self._read()

    def _with_bounds(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the first and last offset of the log are known, and keys before it have got their rows."""
        if self._queued:
            self._queued.append(partial(self._when_bounded, then))
        else:
            self._when_bounded(then)

    def _when_bounded(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the first and last offset are known; a live log is asked again, as it grows."""
        if self._waiting is not None:
            self._waiting.append(then)
        elif self.bounds is None or (self.point is None and self._viewer.is_live):
            self._waiting = [then]
            self._message = "reading the log…"
            self._draw()
            self._work(self._find_bounds, "bounds")
        else:
            then()

    async def _find_bounds(self) -> None:
        self._message = ""
        try:
            self.bounds = await self._in_thread(self._viewer.bounds)
        except KshellError as error:
            self._message = cell(error.message)
        waiting, self._waiting = self._waiting or [], None
        if self.bounds is None:
            self._message = self._message or "this source knows its newest state only: there is no log to go back in"
            self._draw()
        else:
            for then in waiting:
                then()
        self._run_queued()

    def _look(self) -> None:
        """Look for news, unless something is still being read or was read a short time ago."""
        rests = time.monotonic() < self._last_check + _PAUSES * self._viewer.reading_took
        if self.point is None and not rests and not self._is_reading and self._waiting is None:
            self._work(self._refresh, "look")

    async def _refresh(self) -> None:
        trouble, is_new = "", False
        try:
            is_new = await self._in_thread(self._viewer.refresh)
        except KshellError as error:
            trouble = cell(error.message)
        self._last_check = time.monotonic()
        if trouble != self._trouble:
            self._trouble = trouble
            self._draw()
        if trouble:
            return
        if is_new:
            self.bounds = None
        # The panel of the quorum changes without new records: lags, and the replicas that fetch.
        # A text page is not replaced, because the user may be reading it; an error that may be over is.
        page = self._place.listing
        has_failed = page is not None and page.is_failure
        may_have_changed = is_new or has_failed or PANELS[self._panel].title == "Quorum"
        if may_have_changed and self.point is None and page is not None and (page.columns or has_failed):
            self._remember()
            self._read()

    def action_reload(self) -> None:
        """Read the source again."""
        self._remember()
        self.bounds = None
        self._work(self._reload, "reload")

    async def _reload(self) -> None:
        await self._in_thread(self._viewer.reload)
        self._read()

    # --- places --------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        if self._is_shown:
            self._place.position = self._rows.position
        self._message = ""

    def action_panel(self, number: int) -> None:
        """Show a panel; if it is the current one, close all pages that were opened in it."""
        self._remember()
        self._queued.clear()
        self._is_typing = False
        if number == self._panel:
            del self._stack[1:]
        self._panel = number
        self._read()

    def action_turn(self, by: int) -> None:
        """Go ``by`` panels forward, or back if it is negative."""
        self.action_panel((self._panel + by) % len(PANELS))

    def action_focus_next(self) -> None:
        """Show the next panel, instead of what textual's binding of Tab does."""
        self.action_turn(1)

    def action_focus_previous(self) -> None:
        """Show the panel before, instead of what textual's binding of Shift-Tab does."""
        self.action_turn(-1)

    def action_move(self, rows: int) -> None:
        """Move the cursor, or scroll a text, by so many rows."""
        self._with_rows(partial(self._rows.move, rows))

    def action_page(self, pages: int) -> None:
        """Move a screenful up or down."""
        self._with_rows(partial(self._rows.page, pages))

    def action_end(self, last: bool) -> None:
        """Go to the first or the last row."""
        self._with_rows(partial(self._rows.end, last))

    def action_choose(self) -> None:
        """Open the page of the cursor's row, if it has one."""
        self._with_rows(self._choose)

    def _choose(self) -> None:
        opening = self._rows.opening
        if opening is not None:
            self._open(opening)

    def on_rows_view_laid_out(self) -> None:
        """Draw the head line again, because the rows get a new size, and so new widths, after the screen."""
        self._draw()

    def on_rows_view_chosen(self) -> None:
        """Open the page of the row that was clicked, unless others are to be shown by now."""
        if self._is_shown:
            self._choose()

    def _open(self, opening: Opening) -> None:
        self._remember()
        self._stack.append(Place(opening))
        self._read()

    def action_help(self) -> None:
        """Open the page that explains the keys."""
        self._queued.clear()
        if self._place.opening.title != "Help":
            self._open(Opening("Help", lambda session, width: lines(_help(width))))

    def action_close(self) -> None:
        """Forget the keys that wait for rows, or remove the filter, or else close the page."""
        if self._queued:
            self._queued.clear()
        elif self._place.filter:
            self._set_filter("")
        elif len(self._stack) > 1:
            self._stack.pop()
            self._read()

    # --- the filter ----------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Let the user type the filter, in place of the status line."""
        self._is_typing = True
        self._draw()

    def on_key(self, event: Key) -> None:
        """Edit the filter while it is typed; Tab does what it does otherwise."""
        if not self._is_typing or event.key in ("tab", "shift+tab"):
            return
        event.prevent_default()  # the bindings
        text = self._place.filter
        if event.key in ("enter", "escape"):
            self._is_typing = False
            self._set_filter(text if event.key == "enter" else "")
        elif event.key in ("backspace", "ctrl+h"):
            self._set_filter(text[:-1])
        elif event.key == "ctrl+u":
            self._set_filter("")
        elif event.is_printable and event.character is not None:
            self._set_filter(text + event.character)

    def on_paste(self, event: Paste) -> None:
        """Add the first line of what is pasted to the filter while it is typed."""
        if self._is_typing:
            self._set_filter(self._place.filter + "".join(filter(str.isprintable, event.text.split("\n")[0])))

    def _set_filter(self, text: str) -> None:
        if text != self._place.filter:
            self._queued.clear()
            self._place.filter, self._place.position = text, 0
            self._work(partial(self._filter, self._place, text), "filter")
        self._draw()

    async def _filter(self, place: Place, text: str) -> None:
        listing = place.listing
        if listing is not None:
            indexes = await self._in_thread(listing.matching, text) if text else None
            if place.listing is listing and place.filter == text:
                place.indexes, place.matched = indexes, text
        self._put_up()

    # --- the end -------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Quit."""
        self.exit()

    def _give_up(self) -> None:
        self.is_over_time = True
        self.exit()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """End the app after a bug of kshell in a worker; :func:`run` raises the exception again."""
        if event.state is WorkerState.ERROR:
            self.fault = event.worker.error
            self.exit()

    def action_interrupt(self) -> None:
        """Quit on Ctrl-C, so that :func:`run` raises KeyboardInterrupt, as in every command."""
        self.interrupted = True
        self.exit()


def run(session: Session) -> None:
    """Show the screen until the user leaves.

    Raises:
        KeyboardInterrupt: the user left with Ctrl-C.
        DeadlineError: the time of ``--timeout`` is over.
    """
    viewer = Viewer(session)
    app = TopApp(viewer, colored=use_color(session.settings.get("color") or "auto", sys.stdout))
    at_alarm = signal.getsignal(signal.SIGALRM)
    app.has_limit = callable(at_alarm)
    try:
        app.run()
    finally:
        signal.signal(signal.SIGALRM, at_alarm)
        viewer.close()
    if app.fault is not None:
        raise app.fault
    if app.interrupted:
        raise KeyboardInterrupt
    if app.is_over_time:
        signal.raise_signal(signal.SIGALRM)
