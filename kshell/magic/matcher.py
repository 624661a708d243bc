"""Completion of ``%kafka`` lines in cells, as a matcher of IPython, so that it works in every notebook front end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from kshell.client import contexts
from kshell.engine.arguments import SHAPING
from kshell.engine.completion import Candidate, Completions, complete
from kshell.engine.declaration import Command, Flag
from kshell.engine.language import Token, TokenKind, words_in
from kshell.engine.result import Nothing
from kshell.engine.session import Session
from kshell.magic.lines import CONNECT_FLAGS, OPTIONS
from kshell.sources.choose import NoSource

if TYPE_CHECKING:
    from kshell.magic.notebook import Notebook

_LINE = re.compile(r"^\s*(?:[^\W\d]\w*\s*=\s*)?%kafka(?=\s|$)")
_CELL = re.compile(r"^\s*%%kafka(?=\s|$)")
_NONE: SimpleMatcherResult = {"completions": [], "matched_fragment": ""}
_OWN = {name: flag for flag in (*OPTIONS, *SHAPING) for name in flag.names}
_ANYWHERE = [flag for flag in OPTIONS if flag.metavar is not None or flag.dest in ("no_interp", "widget")]
"""The options of the magic that may stand after the command."""
Match = Callable[[CompletionContext], SimpleMatcherResult]


def matcher(notebook: Notebook) -> Match:
    """Return the matcher that IPython calls for the candidates in a cell. It never waits for data, nor raises."""
    connect = {"connect": _connect()}

    @context_matcher(identifier="kshell.kafka")  # type: ignore[untyped-decorator]  # IPython's, as is what it gives
    def match(context: CompletionContext) -> SimpleMatcherResult:
        text = _line_of(context)
        if text is None or text.rfind("{{") > text.rfind("}}"):
            return _NONE  # inside {{…}}, the completion of Python applies
        try:
            completions = _complete(notebook, text, connect, in_header=_is_header(context))
        except Exception:
            return _NONE  # errors of the data must not disturb typing; the command will report them
        is_command = not _own_of(words_in(text[: completions.start])).has_command
        return {
            "completions": [
                SimpleCompletion(candidate.text, type=_kind(candidate, is_command))
                for candidate in completions.candidates
                if _is_text(candidate)
            ],
            "matched_fragment": text[completions.start :],
            "suppress": True,
            "ordered": True,
        }

    typed_match: Match = match
    return typed_match


def _is_text(candidate: Candidate) -> bool:
    """Whether the candidate stays plain text when the line runs.

    Inside double quotes, a name of the cluster with ``{{…}}`` would be run as Python. Elsewhere braces are escaped.
    """
    return "{{" not in candidate.text


def _kind(candidate: Candidate, is_command: bool) -> str:
    """Return the kind of a candidate for the menu: one word, because JupyterLab cannot show longer ones."""
    if candidate.text.startswith("-"):
        return "option"
    if candidate.text.endswith("/"):
        return "directory"
    return "command" if is_command else "value"


def _line_of(context: CompletionContext) -> str | None:
    """Return the text before the cursor, without ``%kafka``, in a line of the magic; ``None`` in any other line."""
    line = context.line_with_cursor[: context.cursor_position]
    magic = _CELL.match(line) if _is_header(context) else _LINE.match(line)
    if magic is not None:
        return line[magic.end() :]
    is_body = context.cursor_line > 0 and _CELL.match(context.full_text.lstrip()) is not None
    return line if is_body and not _is_header(context) else None


def _is_header(context: CompletionContext) -> bool:
    return _CELL.match(context.line_with_cursor) is not None


def _complete(notebook: Notebook, text: str, more: dict[str, Command], *, in_header: bool) -> Completions:
    tokens = words_in(text)
    typed = tokens[-1] if tokens and tokens[-1].end == len(text) else Token(TokenKind.WORD, len(text), len(text))
    own = _own_of([token for token in tokens if token is not typed])
    session = notebook.sessions.opened(own.session) or Session(NoSource())
    if own.pending is not None:
        return _offered(typed, _values(notebook, own.pending))
    if not own.has_command:
        if own.closes:
            return _offered(typed, notebook.sessions)
        if typed.text.startswith("-") or in_header:
            return _offered(typed, _names((*OPTIONS, *SHAPING)))
    # The engine completes the line with the magic's own parts replaced by blanks, so that columns stay the same.
    rest = "".join(" " if any(part.start <= at < part.end for part in own.parts) else c for at, c in enumerate(text))
    completions = complete(session, rest, more)
    if own.has_command and typed.text.startswith("--"):
        ours = _offered(typed, _names(_ANYWHERE))
        return Completions(typed.start, (*completions.candidates, *ours.candidates), completions.total + ours.total)
    return completions


class _Own:
    """The magic's part of a line up to the cursor: its tokens (``parts``), the option whose value comes next
    (``pending``), and the value of ``--context`` (``session``).
    """

    def __init__(self) -> None:
        self.parts: list[Token] = []
        self.pending: Flag | None = None
        self.session: str | None = None
        self.closes = False
        self.has_command = False


def _own_of(tokens: list[Token]) -> _Own:
    own = _Own()
    for token in tokens:
        flag = _OWN.get(token.text.partition("=")[0])
        if own.pending is not None:
            own.session = token.text if own.pending.dest == "context" else own.session
            own.pending = None
        elif flag is None or (own.has_command and flag not in _ANYWHERE):
            # After the command's name, the options of every command (-o) belong to the command.
            own.has_command = True
            continue
        elif flag.metavar is not None and "=" not in token.text:
            own.pending = flag
        elif flag.dest == "context":
            own.session = token.text.partition("=")[2]
        own.closes = own.closes or (flag is not None and flag.dest == "close")
        own.parts.append(token)
    return own


def _values(notebook: Notebook, flag: Flag) -> Iterable[str]:
    if flag.dest != "context":
        return flag.choices

    return dict.fromkeys((*notebook.sessions, *contexts.load(os.environ).named))


def _names(flags: Iterable[Flag]) -> list[str]:
    return [flag.names[-1] for flag in flags]


def _offered(typed: Token, texts: Iterable[str]) -> Completions:
    candidates = tuple(Candidate(text, text) for text in texts if text.startswith(typed.text))
    return Completions(typed.start, candidates, len(candidates))


def _connect() -> Command:
    """Return a declaration of ``connect`` for completion. It belongs to the magic, and is no command of the engine."""
    return Command("connect", "open a source", lambda session, args: Nothing(), flags=CONNECT_FLAGS, needs_source=False)
