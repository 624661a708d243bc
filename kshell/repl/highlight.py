"""Colour the line while it is typed: known and unknown commands and options, and paths that exist."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer

from kshell.engine import registry
from kshell.engine.completion import State, resolve
from kshell.engine.execution import is_query, logical_lines
from kshell.engine.language import Token, TokenKind, parts, scan
from kshell.engine.levels import node_at
from kshell.engine.session import Session
from kshell.repl.terminal import masked
from kshell.tree.globs import is_glob
from kshell.tree.paths import split

_PLAIN = {
    TokenKind.PIPE: "class:operator",
    TokenKind.PROGRAM: "class:program",
    TokenKind.REDIRECTION: "class:operator",
    TokenKind.TARGET: "class:file",
    TokenKind.EXCESS: "class:wrong",
    TokenKind.COMMENT: "class:comment",
}


class LineLexer(Lexer):
    """prompt_toolkit's lexer for the line. It runs at every key press, so it uses only fast lookups."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = [part for _, text in logical_lines(document.lines) for part in split_lines(self.colored(text))]

        def line(number: int) -> StyleAndTextTuples:
            return lines[number] if number < len(lines) else []

        return line

    def invalidation_hash(self) -> Hashable:
        """Return a value that changes when the same line may get other colours: after loading, ``cd`` or ``alias``."""
        return self._session.is_loaded, self._session.cwd, len(self._session.aliases)

    def colored(self, line: str) -> StyleAndTextTuples:
        """Return the line as styled fragments of the same total length, with control characters replaced.

        Only newlines stay: a line has some where its quotes go on.
        """
        if is_query(line):
            return [("", masked(line))]
        out: StyleAndTextTuples = []
        at = 0
        for part in parts(line):
            for token, style in self._styles(scan(part.text)):
                start, end = part.start + token.start, part.start + token.end
                out.append(("", masked(line[at:start])))
                out.append((style, masked(line[start:end])))
                at = end
        out.append(("", masked(line[at:])))
        return [fragment for fragment in out if fragment[1]]

    def _styles(self, tokens: list[Token]) -> list[tuple[Token, str]]:
        word_tokens = [token for token in tokens if token.kind is TokenKind.WORD]
        styles = dict(zip(map(id, word_tokens), self._word_styles(word_tokens), strict=True))
        return [(token, styles.get(id(token)) or _PLAIN.get(token.kind, "")) for token in tokens]

    def _word_styles(self, tokens: list[Token]) -> list[str]:
        if not tokens:
            return []
        resolved = resolve(self._session, tokens)
        if resolved is None:
            if tokens[0].text.startswith("/"):  # a path alone is listed or printed
                return ["", *map(_quoted, tokens[1:])]
            typing = len(tokens) == 1 and any(name.startswith(tokens[0].text) for name in self._names())
            return ["" if typing else "class:command.unknown", *map(_quoted, tokens[1:])]
        command, texts = resolved
        before = len(texts) - (len(tokens) - 1)
        state = State(command, texts[:before])
        styles = ["class:command"]
        for token in tokens[1:]:
            styles.append(self._argument(state, token, is_last=token is tokens[-1]))
            state.take(token.text)
        return styles

    def _names(self) -> list[str]:
        return [*registry.names(), *self._session.aliases]

    def _argument(self, state: State, token: Token, *, is_last: bool) -> str:
        if state.pending is not None:
            return _quoted(token)
        if token.text.startswith("-") and not state.ended and token.text != "-":
            return "class:flag" if is_last or _is_flag(state, token.text) else "class:flag.unknown"
        arg = state.arg()
        if arg is None and not is_last:
            return "class:wrong"
        if arg is not None and arg.kind == "path" and self._exists(token):
            return "class:path"
        return _quoted(token)

    def _exists(self, token: Token) -> bool:
        if is_glob(token.pattern) or not self._session.is_loaded:
            return False
        try:
            return node_at(self._session, split(token.text, self._session.cwd)) is not None
        except Exception:  # the command itself will report what is wrong with the data
            return False


def _quoted(token: Token) -> str:
    if token.open:
        return "class:string.open"
    return "class:string" if token.quoted else "class:argument"


def _is_flag(state: State, text: str) -> bool:
    name = text.partition("=")[0]
    return text == "--" or name in state.flags or (not text.startswith("--") and f"-{text[1]}" in state.flags)
