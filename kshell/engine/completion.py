"""What the word under the cursor may become. Pure: a session and the text before the cursor in, candidates out.

It never waits for data: while the image is not loaded, paths below ``/`` have no candidates.
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
"""More candidates than this help nobody."""


@dataclass(frozen=True)
class Candidate:
    """``text`` is what the line gets, quoted as need be; ``display`` what a menu shows; ``meta`` a word about it.

    Neither is escaped for a terminal.
    """

    text: str
    display: str
    meta: str = ""


@dataclass(frozen=True)
class Completions:
    """The candidates replace the line from ``start`` to the cursor. ``total`` counts those beyond the limit, too."""

    start: int
    candidates: tuple[Candidate, ...] = ()
    total: int = 0


def complete(session: Session, before: str, more: Mapping[str, Command] = MappingProxyType({})) -> Completions:
    """The candidates for the word that ends at the end of ``before``; ``more`` are commands of a front end's own."""
    last = parts(before)[-1]
    if last.start:
        completions = complete(session, last.text, more)
        return replace(completions, start=last.start + completions.start)
    word, earlier, kind = _under_cursor(before)
    if kind is TokenKind.TARGET:
        return _files(word)
    if kind is not TokenKind.WORD:
        return Completions(len(before))
    if not earlier:
        return _offer(word, 0, _commands(session, word.text, more))
    command = resolve(session, earlier, more)
    while command is not None and (line := _line_in(*command)):
        command = resolve(session, [Token(TokenKind.WORD, 0, 0, text) for text in line])
    if command is None:
        return Completions(len(before))
    return _arguments(session, command[0], command[1], word)


def _line_in(command: Command, words: list[str]) -> list[str]:
    """The words that belong to a line which is an argument of the command (``watch``)."""
    state = State(command, [])
    for number, word in enumerate(words):
        state.take(word)
        if state.in_line:
            return words[number:]
    return []


def _under_cursor(before: str) -> tuple[Token, list[Token], TokenKind]:
    """The word that is being typed (perhaps empty), the words before it, and what kind of word it is."""
    tokens = scan(before)
    words = [token for token in tokens if token.kind is TokenKind.WORD]
    last = tokens[-1] if tokens else None
    empty = Token(TokenKind.WORD, len(before), len(before))
    if last is None:
        return empty, [], TokenKind.WORD
    if last.kind is TokenKind.WORD:
        return (last, words[:-1], TokenKind.WORD) if last.end == len(before) else (empty, words, TokenKind.WORD)
    if last.kind is TokenKind.REDIRECTION:
        return empty, words, TokenKind.TARGET
    if last.kind is TokenKind.TARGET and last.end == len(before):
        return last, words, TokenKind.TARGET
    return empty, words, TokenKind.COMMENT


def resolve(
    session: Session, words: list[Token], more: Mapping[str, Command] = MappingProxyType({})
) -> tuple[Command, list[str]] | None:
    """The command that the line's words name, through aliases, and the words after its name."""
    name, rest, seen = words[0].text, [token.text for token in words[1:]], set[str]()
    while not words[0].quoted and name in session.aliases and name not in seen:
        seen.add(name)
        try:
            meaning = [word.text for word in parse_line(session.aliases[name]).words]
        except KshellError:
            return None
        if not meaning:
            return None
        name, rest = meaning[0], [*meaning[1:], *rest]
    if name in more:
        return more[name], rest
    return (registry.get(name), rest) if name in registry.names() else None


# --- candidates ------------------------------------------------------------------------------------------------------


def _offer(word: Token, cut: int, found: Iterable[Candidate]) -> Completions:
    """Candidates for the literal text of ``word`` from ``cut`` on, each a whole word."""
    place = Insertion(word, cut)
    offered = [Candidate(place.written(one.text, whole=True), one.display, one.meta) for one in found]
    return Completions(place.start, tuple(offered[:LIMIT]), len(offered))


def _commands(session: Session, typed: str, more: Mapping[str, Command] = MappingProxyType({})) -> list[Candidate]:
    found = {name: f"alias: {meaning}" for name, meaning in session.aliases.items()}
    found |= {name: command.summary for name, command in more.items()}
    for name in registry.names():
        if name.startswith(typed) and name not in found:
            found[name] = registry.get(name).summary
    return [Candidate(name, name, found[name]) for name in sorted(found) if name.startswith(typed)]


def _arguments(session: Session, command: Command, words: list[str], word: Token) -> Completions:
    state = State(command, words)
    ready = session.is_loaded or not command.needs_source
    if state.pending is not None:
        return _offer(word, 0, _values(session, state.pending, words, word.text, ready))
    if word.text.startswith("-") and not state.ended:
        name, equals, typed = word.text.partition("=")
        flag = state.flags.get(name)
        if equals and flag is not None and flag.metavar is not None:
            return _offer(word, len(name) + 1, _values(session, flag, words, typed, ready))
        return _offer(word, 0, [] if equals else _flags(state, word.text))
    arg = state.arg()
    if arg is None:
        return _offer(word, 0, [] if word.text or state.ended else _flags(state, ""))
    if arg.after is not None:
        return _offer(word, 0, [Candidate(one, one) for one in arg.after(words) if one.startswith(word.text)])
    if arg.complete is not None:
        return _offer(word, 0, _asked(session, arg.complete, word.text, ready))
    if arg.kind == "path":
        return _paths(session, word)
    return _offer(word, 0, _commands(session, word.text) if arg.kind in ("command", "line") else [])


class State:
    """What the words before the cursor mean: flags that were given, one that waits for its value, arguments so far."""

    def __init__(self, command: Command, words: list[str]) -> None:
        self.command = command
        self.flags = {name: flag for flag in flags_of(command) for name in flag.names}
        self.used: set[str] = set()
        self.pending: Flag | None = None
        self.ended = False
        self.in_line = False
        """Whether the words are those of a line which is the command's last argument."""
        self._arguments = 0
        for word in words:
            self.take(word)

    def take(self, word: str) -> None:
        """The next word."""
        if self.pending is not None:
            self.pending = None
        elif self.ended or not word.startswith("-") or word == "-" or is_negative(word):
            arg = self.arg()
            self._arguments += 1
            if arg is not None and arg.kind == "line":
                self.in_line = self.ended = True
        elif word == "--":
            self.ended = True
        elif word.partition("=")[0] in self.flags:
            name, equals, _ = word.partition("=")
            self._use(name, has_value=bool(equals))
        elif not word.startswith("--"):
            self._bundle(word)

    def _bundle(self, word: str) -> None:
        """``-lR``, ``-ojson``."""
        for at, char in enumerate(word[1:], 1):
            flag = self.flags.get(f"-{char}")
            if flag is None:
                return
            self._use(f"-{char}", has_value=at + 1 < len(word))
            if flag.metavar is not None:
                return

    def _use(self, name: str, *, has_value: bool) -> None:
        flag = self.flags[name]
        if not flag.repeat:
            self.used |= set(flag.names)
        if flag.metavar is not None and not has_value:
            self.pending = flag

    def arg(self) -> Arg | None:
        """The argument that a word here would be."""
        left = self._arguments
        for arg in self.command.args:
            if left == 0 or arg.arity in "*+":
                return arg
            left -= 1
        return None


def _flags(state: State, typed: str) -> list[Candidate]:
    found = []
    for flag in {flag.names: flag for flag in state.flags.values()}.values():
        names = [name for name in flag.names if name.startswith(typed) and name not in state.used]
        if names:
            display = ", ".join(flag.names) + (f" {flag.metavar}" if flag.metavar else "")
            found.append(Candidate(max(names, key=lambda name: name.startswith("--")), display, flag.help))
    return found


def _values(session: Session, flag: Flag, words: list[str], typed: str, ready: bool) -> list[Candidate]:
    if flag.choices:
        return [Candidate(choice, choice) for choice in flag.choices if choice.startswith(typed)]
    if flag.after is not None:
        return [Candidate(one, one) for one in flag.after(words, typed) if one.startswith(typed)]
    return _asked(session, flag.complete, typed, ready) if flag.complete else []


def _asked(session: Session, ask: Complete, typed: str, ready: bool) -> list[Candidate]:
    """What a command's own completion says; it may look at the image, so not before there is one."""
    if not ready:
        return []
    try:
        words = list(ask(session, typed))
    except KshellError:
        return []
    return [Candidate(word, word) for word in words if word.startswith(typed)]


# --- paths and files -------------------------------------------------------------------------------------------------


def _paths(session: Session, word: Token) -> Completions:
    """The names at the level of the tree that the cursor is in."""
    cut = word.text.rfind("/") + 1
    head, tail = word.text[:cut], word.text[cut:]
    place = Insertion(word, cut)
    if is_glob(word.pattern):
        return Completions(place.start)
    if tail == ".." or word.text == "~":
        return Completions(place.start, (Candidate(place.written(f"{tail}/", whole=False), f"{tail}/"),), 1)
    segments = split(head, session.cwd)
    level = level_at(session, segments)
    if level is None:
        known = [] if segments or session.is_loaded else top_names(session)
        return _named(place, [(name, "/", "") for name in known if name.startswith(tail)])
    names, total = level.starting(tail, LIMIT)
    found = []
    for name in names:
        node = level.child(name)
        mark = "/" if isinstance(node, Directory) else ""
        found.append((name if head else _guarded(name), mark, node.type if isinstance(node, Leaf) else ""))
    return _named(place, found, total)


def _guarded(name: str) -> str:
    """A relative name that would read as a flag, or as home."""
    return f"./{name}" if name.startswith("-") or name == "~" else name


def _named(place: Insertion, found: list[tuple[str, str, str]], total: int | None = None) -> Completions:
    offered = tuple(
        Candidate(place.written(name + mark, whole=not mark), name + mark, meta) for name, mark, meta in found
    )
    return Completions(place.start, offered, len(offered) if total is None else total)


def _files(word: Token) -> Completions:
    """Names in a directory of this machine."""
    cut = word.text.rfind("/") + 1
    head, tail = word.text[:cut], word.text[cut:]
    try:
        with os.scandir(os.path.expanduser(head) or ".") as entries:
            found = [
                (entry.name, "/" if entry.is_dir() else "", "")
                for entry in entries
                if entry.name.startswith(tail) and (tail or not entry.name.startswith("."))
            ]
    except (OSError, ValueError):
        found = []
    return _named(Insertion(word, cut), sorted(found)[:LIMIT], len(found))
