"""Completion of the word before the cursor: a session and the text before the cursor come in, candidates go out.

Completion never waits for data: while the image is not loaded, paths below ``/`` have no candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kshell.engine import registry
from kshell.engine.arguments import flags_of, is_negative
from kshell.engine.declaration import Arg, Command, Complete, Flag
from kshell.engine.language import Insertion, Token, TokenKind, parse_line, parts, scan
from kshell.engine.levels import level_at, top_names
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.tree.globs import is_glob
from kshell.tree.node import Directory, Leaf
from kshell.tree.paths import split

LIMIT = 500
"""The most candidates of one completion; a longer menu would not help."""


@dataclass(frozen=True)
class Candidate:
    """A candidate: ``text`` is inserted, quoted if necessary; a menu shows ``display`` and the description ``meta``.

    The latter two are not escaped for a terminal.
    """

    text: str
    display: str
    meta: str = ""


@dataclass(frozen=True)
class Completions:
    """The candidates for the text from column ``start`` to the cursor; ``total`` also counts those beyond the limit."""

    start: int
    candidates: tuple[Candidate, ...] = ()
    total: int = 0


def complete(session: Session, before: str, more: Mapping[str, Command] = MappingProxyType({})) -> Completions:
    """Return the candidates for the word at the end of ``before``; ``more`` are commands of this front end alone."""
    last = parts(before)[-1]
    if last.start:
        completions = complete(session, last.text, more)
        return replace(completions, start=last.start + completions.start)
    token, earlier, kind = _under_cursor(before)
    if kind is TokenKind.TARGET:
        return _files(token)
    if kind is not TokenKind.WORD:
        return Completions(len(before))
    if not earlier:
        if token.text.startswith("/"):  # a path alone is listed or printed
            return _paths(session, token)
        return _offer(token, 0, _commands(session, token.text, more))
    command = resolve(session, earlier, more)
    while command is not None and (line := _line_in(*command)):
        command = resolve(session, [Token(TokenKind.WORD, 0, 0, text) for text in line])
    if command is None:
        return Completions(len(before))
    return _arguments(session, command[0], command[1], token)


def complete_query(session: Session, before: str) -> Completions:
    """Return the candidates for a query that is typed as a line of its own: those of ``sql``, without its quotes."""
    start = len(before) - len(before.lstrip())
    propose = registry.get("sql").args[0].complete
    candidates = [] if propose is None else _proposals(session, propose, before[start:], session.is_loaded)
    return Completions(start, tuple(candidates[:LIMIT]), len(candidates))


def _line_in(command: Command, tokens: list[str]) -> list[str]:
    """Return the words of the command line that is the last argument of the command (``watch``); else an empty list."""
    state = State(command, [])
    for number, token in enumerate(tokens):
        state.take(token)
        if state.in_line:
            return tokens[number:]
    return []


def _under_cursor(before: str) -> tuple[Token, list[Token], TokenKind]:
    """Return the word that is being typed (perhaps empty), the words before it, and the kind of the typed word."""
    tokens = scan(before)
    word_tokens = [token for token in tokens if token.kind is TokenKind.WORD]
    last = tokens[-1] if tokens else None
    empty = Token(TokenKind.WORD, len(before), len(before))
    if last is None:
        return empty, [], TokenKind.WORD
    if last.kind is TokenKind.WORD:
        return (
            (last, word_tokens[:-1], TokenKind.WORD)
            if last.end == len(before)
            else (empty, word_tokens, TokenKind.WORD)
        )
    if last.kind is TokenKind.REDIRECTION:
        return empty, word_tokens, TokenKind.TARGET
    if last.kind is TokenKind.TARGET and last.end == len(before):
        return last, word_tokens, TokenKind.TARGET
    return empty, word_tokens, TokenKind.COMMENT


def resolve(
    session: Session, tokens: list[Token], more: Mapping[str, Command] = MappingProxyType({})
) -> tuple[Command, list[str]] | None:
    """Return the command that the first word names, after aliases, and the texts after its name; else ``None``."""
    name, rest, expanded = tokens[0].text, [token.text for token in tokens[1:]], set[str]()
    while not tokens[0].quoted and name in session.aliases and name not in expanded:
        expanded.add(name)
        try:
            meaning = [token.text for token in parse_line(session.aliases[name]).words]
        except KshellError:
            return None
        if not meaning:
            return None
        name, rest = meaning[0], [*meaning[1:], *rest]
    if name in more:
        return more[name], rest
    return (registry.get(name), rest) if name in registry.names() else None


# --- candidates ------------------------------------------------------------------------------------------------------


def _offer(token: Token, cut: int, candidates: Iterable[Candidate]) -> Completions:
    """Quote candidates that complete the word ``token``; they replace its text from index ``cut`` on."""
    place = Insertion(token, cut)
    offered = [
        Candidate(place.written(candidate.text, ends_word=True), candidate.display, candidate.meta)
        for candidate in candidates
    ]
    return Completions(place.start, tuple(offered[:LIMIT]), len(offered))


def _commands(session: Session, typed: str, more: Mapping[str, Command] = MappingProxyType({})) -> list[Candidate]:
    summaries = {name: f"alias: {meaning}" for name, meaning in session.aliases.items()}
    summaries |= {name: command.summary for name, command in more.items()}
    for name in registry.names():
        if name.startswith(typed) and name not in summaries:
            summaries[name] = registry.get(name).summary
    return [Candidate(name, name, summaries[name]) for name in sorted(summaries) if name.startswith(typed)]


def _arguments(session: Session, command: Command, earlier: list[str], token: Token) -> Completions:
    state = State(command, earlier)
    ready = session.is_loaded or not command.needs_source
    if state.pending is not None:
        return _offer(token, 0, _values(session, state.pending, earlier, token.text, ready))
    if token.text.startswith("-") and not state.ended:
        name, equals, typed = token.text.partition("=")
        flag = state.flags.get(name)
        if equals and flag is not None and flag.metavar is not None:
            return _offer(token, len(name) + 1, _values(session, flag, earlier, typed, ready))
        return _offer(token, 0, [] if equals else _flags(state, token.text))
    arg = state.arg()
    if arg is None:
        return _offer(token, 0, [] if token.text or state.ended else _flags(state, ""))
    if arg.after is not None:
        return _offer(token, 0, _matching(arg.after(earlier), token.text))
    if arg.kind == "text or path" and token.text.startswith("/"):
        return _paths(session, token)
    if arg.complete is not None:
        return _offer(token, 0, _proposals(session, arg.complete, token.text, ready))
    if arg.kind == "path":
        return _paths(session, token)
    return _offer(token, 0, _commands(session, token.text) if arg.kind in ("command", "line") else [])


class State:
    """How far a command's words are typed; :meth:`take` takes them one by one, and does not raise for wrong words.

    ``used`` are the options that were given and may not be repeated, ``pending`` is the option whose value comes next,
    and ``ended`` is set after ``--``, when no more options follow. Completion and highlighting use it.
    """

    def __init__(self, command: Command, tokens: list[str]) -> None:
        self.command = command
        self.flags = {name: flag for flag in flags_of(command) for name in flag.names}
        self.used: set[str] = set()
        self.pending: Flag | None = None
        self.ended = False
        self.in_line = False
        """Whether the words now belong to another command's line, which is this command's last argument."""
        self._arguments = 0
        for token in tokens:
            self.take(token)

    def take(self, token: str) -> None:
        """Process the next word."""
        if self.pending is not None:
            self.pending = None
        elif self.ended or not token.startswith("-") or token == "-" or is_negative(token):
            arg = self.arg()
            self._arguments += 1
            if arg is not None and arg.kind == "line":
                self.in_line = self.ended = True
        elif token == "--":
            self.ended = True
        elif token.partition("=")[0] in self.flags:
            name, equals, _ = token.partition("=")
            self._use(name, has_value=bool(equals))
        elif not token.startswith("--"):
            self._bundle(token)

    def _bundle(self, token: str) -> None:
        """Process short options that share a word: ``-lR``, ``-ojson``."""
        for at, char in enumerate(token[1:], 1):
            flag = self.flags.get(f"-{char}")
            if flag is None:
                return
            self._use(f"-{char}", has_value=at + 1 < len(token))
            if flag.metavar is not None:
                return

    def _use(self, name: str, *, has_value: bool) -> None:
        flag = self.flags[name]
        if not flag.repeat:
            self.used |= set(flag.names)
        if flag.metavar is not None and not has_value:
            self.pending = flag

    def arg(self) -> Arg | None:
        """Return the positional argument that the next word would be; ``None`` if the command takes no more."""
        remaining = self._arguments
        for arg in self.command.args:
            if remaining == 0 or arg.arity in "*+":
                return arg
            remaining -= 1
        return None


def _flags(state: State, typed: str) -> list[Candidate]:
    candidates = []
    for flag in {flag.names: flag for flag in state.flags.values()}.values():
        names = [name for name in flag.names if name.startswith(typed) and name not in state.used]
        if names:
            display = ", ".join(flag.names) + (f" {flag.metavar}" if flag.metavar else "")
            candidates.append(Candidate(max(names, key=lambda name: name.startswith("--")), display, flag.help))
    return candidates


def _values(session: Session, flag: Flag, earlier: list[str], typed: str, ready: bool) -> list[Candidate]:
    if flag.choices:
        return _matching(flag.choices, typed)
    if flag.after is not None:
        return _matching(flag.after(earlier, typed), typed)
    return _proposals(session, flag.complete, typed, ready) if flag.complete else []


def _proposals(session: Session, ask: Complete, typed: str, ready: bool) -> list[Candidate]:
    """Return the candidates of a command's own completion; none until ``ready``, because it may need the image."""
    if not ready:
        return []
    try:
        proposals = list(ask(session, typed))
    except KshellError:
        return []
    return _matching(proposals, typed)


def _matching(proposals: Iterable[str], typed: str) -> list[Candidate]:
    return [Candidate(proposal, proposal) for proposal in proposals if proposal.startswith(typed)]


# --- paths and files -------------------------------------------------------------------------------------------------


def _paths(session: Session, token: Token) -> Completions:
    """Return the names in the directory of the tree in which the typed path ends."""
    cut = token.text.rfind("/") + 1
    head, tail = token.text[:cut], token.text[cut:]
    place = Insertion(token, cut)
    if is_glob(token.pattern):
        return Completions(place.start)
    if tail == ".." or token.text == "~":
        return Completions(place.start, (Candidate(place.written(f"{tail}/", ends_word=False), f"{tail}/"),), 1)
    segments = split(head, session.cwd)
    level = level_at(session, segments)
    if level is None:
        top_level = [] if segments or session.is_loaded else top_names(session)
        return _named(place, [(name, "/", "") for name in top_level if name.startswith(tail)])
    names, total = level.starting(tail, LIMIT)
    listing = []
    for name in names:
        node = level.child(name)
        mark = "/" if isinstance(node, Directory) else ""
        listing.append((name if head else _guarded(name), mark, node.type if isinstance(node, Leaf) else ""))
    return _named(place, listing, total)


def _guarded(name: str) -> str:
    """Put ``./`` before a relative name that would be read as an option or as the home directory ``~``."""
    return f"./{name}" if name.startswith("-") or name == "~" else name


def _named(place: Insertion, listing: list[tuple[str, str, str]], total: int | None = None) -> Completions:
    offered = tuple(
        Candidate(place.written(name + mark, ends_word=not mark), name + mark, meta) for name, mark, meta in listing
    )
    return Completions(place.start, offered, len(offered) if total is None else total)


def _files(token: Token) -> Completions:
    """Return the names in the local directory in which the typed path ends, for a redirection."""
    cut = token.text.rfind("/") + 1
    head, tail = token.text[:cut], token.text[cut:]
    try:
        with os.scandir(os.path.expanduser(head) or ".") as entries:
            listing = [
                (entry.name, "/" if entry.is_dir() else "", "")
                for entry in entries
                if entry.name.startswith(tail) and (tail or not entry.name.startswith("."))
            ]
    except (OSError, ValueError):
        listing = []
    return _named(Insertion(token, cut), sorted(listing)[:LIMIT], len(listing))
