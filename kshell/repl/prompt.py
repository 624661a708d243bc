"""Read a line from the user: with completion, colours and toolbar, or plainly on a dumb terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import ThreadedAutoSuggest
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.search import accept_search

from kshell.engine.execution import logical_lines
from kshell.engine.session import Session
from kshell.repl.completion import Ghost, ShellCompleter, Tab
from kshell.repl.highlight import LineLexer
from kshell.repl.history import ShellHistory
from kshell.repl.terminal import STYLE, clean, shortened, width_of
from kshell.repl.toolbar import Toolbar

_MENU_ROWS = 7
"""Rows below the line that are reserved for the completion menu."""
_CONTINUATION_PROMPT = "> "


class PlainPrompt:
    """The prompt for ``TERM=dumb``: no menu, no colours, no cursor movements."""

    def __init__(self, session: Session, history: ShellHistory) -> None:
        self._session = session
        self._history = history

    def ask(self, status: int) -> str:
        """Read a line, and those below it while a quote is open. ``status``: the last exit code.

        Raises EOFError, KeyboardInterrupt.
        """
        prompt = "".join(fragment[1] for fragment in prompt_text(self._session, status, 80))
        try:
            _, text = next(logical_lines(self._typed(prompt)))
        except (EOFError, KeyboardInterrupt):
            sys.stdout.write("\n")
            raise
        self._history.append_string(text)
        return text

    def _typed(self, prompt: str) -> Iterator[str]:
        """Read lines. The end of the input ends those below the first, so that the open quote is reported."""
        yield input(prompt)
        try:
            while True:
                yield input(_CONTINUATION_PROMPT)
        except EOFError:
            sys.stdout.write("\n")

    def refresh(self) -> None:
        """Do nothing, because this prompt does not show the state of the data."""


class RichPrompt:
    """The prompt of prompt_toolkit, for every terminal that is not dumb."""

    def __init__(
        self,
        session: Session,
        history: ShellHistory,
        toolbar: Toolbar,
        *,
        color: Callable[[], bool],
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session = session
        self._toolbar = toolbar
        self._completer = ShellCompleter(session)
        self._status = 0
        self._color = color
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            lexer=LineLexer(session),
            completer=self._completer,
            complete_in_thread=True,
            complete_while_typing=False,
            auto_suggest=ThreadedAutoSuggest(Ghost(session)),
            history=history,
            enable_history_search=True,
            enable_suspend=True,
            bottom_toolbar=self._bottom_toolbar,
            reserve_space_for_menu=_MENU_ROWS,
            key_bindings=_keys(session),
            style=STYLE,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )

    def ask(self, status: int) -> str:
        """Read a line, or several pasted ones. ``status``: the last exit code. Raises EOFError, KeyboardInterrupt."""
        self._status = status
        self._prompt.color_depth = None if self._color() else ColorDepth.DEPTH_1_BIT
        vi = self._session.settings.get("editing-mode") == "vi"
        self._prompt.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        return self._prompt.prompt()

    def refresh(self) -> None:
        """Redraw the prompt and toolbar after the data changed. May be called from any thread."""
        self._prompt.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        return prompt_text(self._session, self._status, _columns())

    def _bottom_toolbar(self) -> StyleAndTextTuples:
        columns = _columns()
        out = self._toolbar.render(columns)
        if get_app().current_buffer.complete_state is not None and self._completer.left_out > 0:
            more = f" {self._completer.left_out} more are not in the menu: type on".ljust(columns)
            out += [("", "\n"), ("class:bar.note", more[:columns])]
        return out


def _columns() -> int:
    return get_app().output.get_size().columns


def _keys(session: Session) -> KeyBindings:
    keys = KeyBindings()
    keys.add("tab", filter=~is_searching)(Tab(session))

    @keys.add("enter", filter=is_searching)
    def _(event: KeyPressEvent) -> None:
        """Run the line that Ctrl-R found, as Enter does in other shells."""
        accept_search()
        event.app.current_buffer.validate_and_handle()

    return keys


def prompt_text(session: Session, status: int, columns: int) -> StyleAndTextTuples:
    """Return the prompt, ``kshell:/image/topics> ``, with the offset if the session shows the past (``as-of``).

    It is red after a failed command.
    """
    point = [] if session.until is None else [("class:prompt.point", f"@{session.until}")]
    path = short_path(clean(session.cwd_path), columns // 2)
    end = "class:prompt.failed" if status else "class:prompt.name"
    return [("class:prompt.name", "kshell"), *point, ("", ":"), ("class:prompt.path", path), (end, "> ")]


def short_path(path: str, columns: int) -> str:
    """Shorten a path to about ``columns`` columns: its first and last segments, with ``…`` for those between."""
    if width_of(path) <= columns:
        return path
    first, *rest = path.removeprefix("/").split("/")
    while len(rest) > 1 and width_of(f"/{first}/…/{'/'.join(rest)}") > columns:
        rest.pop(0)
    short = f"/{first}/…/{'/'.join(rest)}"
    return short if width_of(short) <= columns else shortened(path, columns)
