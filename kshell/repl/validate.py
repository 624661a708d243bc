"""Enter on a line that cannot be understood: the cursor goes to the fault, and the line stays to be mended.

Nothing is checked while typing; colours already tell (:mod:`kshell.repl.highlight`).
"""

from __future__ import annotations

from prompt_toolkit.document import Document
from prompt_toolkit.validation import ValidationError, Validator

from kshell.commands.base import registry
from kshell.commands.base.language import parse_line
from kshell.errors import UsageError
from kshell.repl.terminal import clean
from kshell.session import Session


class LineValidator(Validator):
    """Quotes, pipes and redirections, and the command's name. Arguments are the command's own business."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def validate(self, document: Document) -> None:
        begin = 0
        for line in document.text.split("\n"):
            fault = self.fault(line)
            if fault is not None:
                raise ValidationError(begin + fault[0], clean(fault[1]))
            begin += len(line) + 1

    def fault(self, line: str) -> tuple[int, str] | None:
        """The place and the message of what is wrong with a line; ``None`` when it can be run."""
        try:
            words = parse_line(line).words
        except UsageError as error:
            return error.column or 0, said(error)
        if not words or (words[0].text in self._session.aliases and not words[0].quoted):
            return None
        if words[0].text in registry.names():
            return None
        try:
            registry.get(words[0].text)
        except UsageError as error:
            return words[0].column + len(words[0].text), said(error)
        return None


def said(error: UsageError) -> str:
    """The message and its hint in one line."""
    return f"{error.message}; {error.hint}" if error.hint else error.message
