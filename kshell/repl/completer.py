"""Completion for prompt_toolkit; what the candidates are is decided in :mod:`kshell.engine.completion`."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kshell.engine.completion import Completions, complete
from kshell.engine.session import Session
from kshell.repl.terminal import clean


class ShellCompleter(Completer):
    """Runs in a thread of its own (``complete_in_thread``), so that typing never waits for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.left_out = 0
        """How many candidates the last answer left out."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = quietly(self._session, document.text_before_cursor)
        self.left_out = found.total - len(found.candidates)
        length = len(document.text_before_cursor)
        for one in found.candidates:
            yield Completion(
                one.text, start_position=found.start - length, display=clean(one.display), display_meta=clean(one.meta)
            )


def quietly(session: Session, before: str) -> Completions:
    """Completions, or none: whatever goes wrong with the data, the prompt stays usable. The command will say it."""
    try:
        return complete(session, before)
    except Exception:
        return Completions(len(before))
