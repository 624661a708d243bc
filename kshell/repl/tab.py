"""The Tab key: what can be completed at once is in the line before the next key is read.

Completion runs in a thread, so that it never holds up typing. But a person who types on after Tab means the completed
word; so Tab waits for the answer for as long as nobody notices, and leaves slower answers to the menu.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, TimeoutError

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyPressEvent

from kshell.engine.completion import Completions
from kshell.engine.session import Session
from kshell.repl.completer import quietly

_PATIENCE = 0.08
"""Seconds; a key press that takes longer feels slow."""


class Tab:
    """A key binding's handler."""

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
            found = self._thread.submit(quietly, self._session, before).result(_PATIENCE)
        except TimeoutError:
            found = None
        if found is None or not _insert(buffer, before, found):
            buffer.start_completion(insert_common_part=True)


def _insert(buffer: Buffer, before: str, found: Completions) -> bool:
    """Types the part that all candidates share; whether that leaves nothing to choose."""
    shared = _shared([candidate.text for candidate in found.candidates])
    typed = before[found.start :]
    complete = found.total == 1
    if found.total == len(found.candidates) and (complete or (shared.startswith(typed) and shared != typed)):
        buffer.delete_before_cursor(len(typed))
        buffer.insert_text(shared)
        return complete
    return False


def _shared(words: list[str]) -> str:
    """The longest beginning of all words: that of the two that are farthest apart in their order."""
    if not words:
        return ""
    first, last = min(words), max(words)
    same = next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    return first[:same]
