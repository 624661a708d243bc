"""Globs over the tree: ``*``, ``?``, ``[...]``, ``{a,b}``, ``**``; a backslash makes the next character literal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from kshell.errors import UsageError
from kshell.tree.node import Directory, Node
from kshell.tree.paths import Segments, split

_MAGIC = re.compile(r"(?<!\\)(?:\\\\)*[*?\[{]")
ESCAPED = re.compile(r"(?:[^\\]|\\[\\*?\[\]{},])*", re.DOTALL)
"""A pattern in which every backslash makes a character literal that would not be."""
_MAX_BRACES = 10_000


def is_glob(pattern: str) -> bool:
    """Whether the pattern has a wildcard, a character class or a brace that is not escaped."""
    return _MAGIC.search(pattern) is not None


def unescape(pattern: str) -> str:
    """The literal text of a pattern that is no glob, without its backslashes."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def escape(text: str) -> str:
    """A pattern that matches exactly ``text``."""
    return re.sub(r"([\\*?\[\]{},])", r"\\\1", text)


def expand_braces(pattern: str) -> list[str]:
    """Expand ``a{b,c}`` to ``["ab", "ac"]``; a brace without a comma or a closing brace is literal."""
    brace = _brace(pattern)
    if brace is None:
        return [pattern]
    start, options, end = brace
    out: list[str] = []
    for option in options:
        out += expand_braces(pattern[:start] + option + pattern[end:])
        if len(out) > _MAX_BRACES:
            raise UsageError(f"the braces stand for more than {_MAX_BRACES} words")
    return out


def _brace(pattern: str) -> tuple[int, list[str], int] | None:
    """The first group in braces with a comma: (its start, its options, the position after it)."""
    start = -1
    while (start := _find(pattern, "{", start + 1)) >= 0:
        depth, options, last, at = 0, [], start + 1, start
        while at < len(pattern):
            char = pattern[at]
            if char == "\\":
                at += 1
            elif char == "{":
                depth += 1
            elif char == "," and depth == 1:
                options.append(pattern[last:at])
                last = at + 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    if options:
                        return start, [*options, pattern[last:at]], at + 1
                    break
            at += 1
    return None


def _find(pattern: str, char: str, at: int) -> int:
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == char:
            return at
        at += 1
    return -1


@lru_cache(maxsize=512)
def component(pattern: str) -> re.Pattern[str]:
    """Translate the pattern of one path segment to a regular expression for the whole segment.

    Text between two stars matches at its first occurrence only (``(?>…)``, without backtracking): a name that does not
    match is refused in one pass, however many stars there are.
    """
    chunks, at = [""], 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            chunks.append("")
        elif char == "?":
            chunks[-1] += "."
        elif char == "[" and (close := _class_end(pattern, at)) > 0:
            chunks[-1] += _class(pattern[at:close])
            at = close + 1
        elif char == "\\" and at < len(pattern):
            chunks[-1] += re.escape(pattern[at])
            at += 1
        else:
            chunks[-1] += re.escape(char)
    first, *between = chunks
    last = f".*{between.pop()}" if between else ""
    middle = "".join(f"(?>.*?{chunk})" for chunk in between if chunk)
    try:
        return re.compile(f"{first}{middle}{last}", re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def _class(body: str) -> str:
    """Translate ``a-z_`` between brackets to a set of a regular expression; a hyphen at either end is literal."""
    negated = body[0] in "!^"
    chars = body[1:] if negated else body
    parts, at = [], 0
    while at < len(chars):
        if chars[at + 1 : at + 2] == "-" and at + 2 < len(chars):
            parts.append(f"{re.escape(chars[at])}-{re.escape(chars[at + 2])}")
            at += 3
        else:
            parts.append(re.escape(chars[at]))
            at += 1
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _class_end(pattern: str, at: int) -> int:
    start = at + (pattern[at : at + 1] in ("!", "^"))
    return pattern.find("]", start + 1)


def expand(root: Directory, cwd: Segments, pattern: str) -> Iterator[tuple[Segments, Node]]:
    """Yield (segments, node) of everything that a glob matches, in the tree's order, each once."""
    yielded: set[Segments] = set()
    for option in expand_braces(pattern):
        for match in _match(root, (), split(option, cwd), set()):
            if match[0] not in yielded:
                yielded.add(match[0])
                yield match


def _match(
    node: Node, above: Segments, parts: Segments, searched: set[tuple[Segments, int]]
) -> Iterator[tuple[Segments, Node]]:
    """Match the parts of a pattern below a node; ``above`` is the path of the node.

    ``searched``: the directories that a ``**`` has reached, each with the number of parts that were left there. Several
    ``**`` reach the same directory in many ways; one is enough.
    """
    if not parts:
        yield above, node
        return
    if not isinstance(node, Directory):
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        if (above, len(parts)) in searched:
            return
        searched.add((above, len(parts)))
        yield from _match(node, above, rest, searched)
        for segment in node.segments():
            below = node.child(segment)
            if isinstance(below, Directory):
                yield from _match(below, (*above, segment), parts, searched)
            elif below is not None and not rest:
                yield (*above, segment), below
        return
    if not is_glob(head):
        below = node.child(unescape(head))
        if below is not None:
            yield from _match(below, (*above, unescape(head)), rest, searched)
        return
    matches = component(head).fullmatch
    for segment in node.segments():
        if matches(segment):
            below = node.child(segment)
            if below is not None:
                yield from _match(below, (*above, segment), rest, searched)
