"""Ghost text, how the line might go on: as the newest line of the history that starts like it, else the only way."""

from __future__ import annotations

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from kshell.engine.session import Session
from kshell.repl.completer import quietly
from kshell.repl.terminal import clean


class Ghost(AutoSuggest):
    """Wrap it in prompt_toolkit's ThreadedAutoSuggest: it may look into the image."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        text = document.text
        if not text.strip() or "\n" in text or not document.is_cursor_at_the_end:
            return None
        ghost = from_history(buffer.history.get_strings(), text) or self._only_completion(text)
        # What a terminal would interpret is never shown, and so never offered.
        return Suggestion(ghost) if ghost and clean(ghost) == ghost else None

    def _only_completion(self, text: str) -> str:
        if text[-1].isspace():
            return ""
        found = quietly(self._session, text)
        typed = text[found.start :]
        if found.total != 1 or not found.candidates[0].text.startswith(typed):
            return ""
        return found.candidates[0].text[len(typed) :]


def from_history(lines: list[str], text: str) -> str:
    """What followed ``text`` in the newest of the lines that start with it; ``lines`` has the oldest first."""
    return next((line[len(text) :] for line in reversed(lines) if line.startswith(text) and line != text), "")
