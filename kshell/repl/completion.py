"""Completion at the prompt: the menu, the Tab key, and suggestions after the cursor. Candidates come from the engine.

Completion may read the image, which can be slow, so it runs in separate threads, and typing never waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, TimeoutError

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyPressEvent

from kshell.engine.completion import Completions, complete, complete_query
from kshell.engine.execution import is_query
from kshell.engine.session import Session
from kshell.repl.terminal import clean


class ShellCompleter(Completer):
    """Makes the menu. prompt_toolkit runs it in a thread of its own (``complete_in_thread``)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.left_out = 0
        """The number of candidates that the last menu left out."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        completions = quietly(self._session, document.text_before_cursor)
        self.left_out = completions.total - len(completions.candidates)
        length = len(document.text_before_cursor)
        for candidate in completions.candidates:
            yield Completion(
                candidate.text,
                start_position=completions.start - length,
                display=clean(candidate.display),
                display_meta=clean(candidate.meta),
            )


def quietly(session: Session, before: str) -> Completions:
    """Return the completions; none after any error, so that the prompt stays usable. The command will report it."""
    try:
        return complete_query(session, before) if is_query(before) else complete(session, before)
    except Exception:
        return Completions(len(before))


_PATIENCE = 0.08
"""Seconds that the Tab key waits for candidates; a key press that takes longer feels slow."""


class Tab:
    """The handler of the Tab key: inserts the prefix that all candidates share; opens the menu if there are several."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tab")

    def __call__(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
            return
        before = buffer.document.text_before_cursor
        try:
            completions = self._thread.submit(quietly, self._session, before).result(_PATIENCE)
        except TimeoutError:
            completions = None
        if completions is None or not _insert(buffer, before, completions):
            buffer.start_completion(insert_common_part=True)


def _insert(buffer: Buffer, before: str, completions: Completions) -> bool:
    """Insert the prefix that all candidates share; return whether it was the only candidate, so no menu is needed."""
    shared = _shared([candidate.text for candidate in completions.candidates])
    typed = before[completions.start :]
    complete = completions.total == 1
    if completions.total == len(completions.candidates) and (
        complete or (shared.startswith(typed) and shared != typed)
    ):
        buffer.delete_before_cursor(len(typed))
        buffer.insert_text(shared)
        return complete
    return False


def _shared(texts: list[str]) -> str:
    """Return the longest common prefix: that of the first and the last text in alphabetical order."""
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    same = next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    return first[:same]


class Ghost(AutoSuggest):
    """Suggests the rest of the line, from history or the only candidate; wrap it in ThreadedAutoSuggest, as it may be
    slow.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        text = document.text
        if not text.strip() or "\n" in text or not document.is_cursor_at_the_end:
            return None
        ghost = from_history(buffer.history.get_strings(), text) or self._only_completion(text)
        # A suggestion with control characters cannot be shown unchanged, so it is not offered.
        return Suggestion(ghost) if ghost and clean(ghost) == ghost else None

    def _only_completion(self, text: str) -> str:
        if text[-1].isspace():
            return ""
        completions = quietly(self._session, text)
        typed = text[completions.start :]
        if completions.total != 1 or not completions.candidates[0].text.startswith(typed):
            return ""
        return completions.candidates[0].text[len(typed) :]


def from_history(lines: list[str], text: str) -> str:
    """Return the rest of the newest entry that starts with ``text`` and is one line; ``lines`` has the oldest first."""
    fitting = (line for line in reversed(lines) if line.startswith(text) and line != text and "\n" not in line)
    return next((line[len(text) :] for line in fitting), "")
