"""Break sentences and data into lines for a narrow terminal, but never inside a command that the user may paste."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kshell.render.cells import cells

NARROWEST = 20
"""The fewest columns of a line. On a narrower terminal the lines are longer, and the terminal breaks them itself."""

_TOKEN = re.compile(
    r"""
    [^\s`]*`[^`]*`\S*                                       # what stands in backticks, also behind a bracket
    | (?: echo \s '[^']*' \s \| \s )?
      kafka-[\w-]+\.sh (?: \s+ [a-z]+-[a-z-]+ | \s+ (?:unregister|upgrade|downgrade|describe|add|remove)\b )?
      (?: \s+ --(?:execute|verify|cancel|list|alter|add|remove|all-topic-partitions)(?![\w-])
        | \s+ --[\w-]+ (?: [ ] (?!--) (?: "[^"]*" | '[^']*' | \S+ ) )? )*   # one of Kafka's tools and its options
    | \S+ \s --[\w-]+ \s (?: '[^']*' | "[^"]*" ) \S* (?: \s --?[\w-]+ \s \S+ )*   # kshell's, with a quoted condition
    | \S+
    """,
    re.VERBOSE,
)


_DATA = re.compile(
    r"""
    (?: [A-Za-z][\w.]{0,19}[ ] )? (?: \[[-\d,]{0,10}\] | [^\s,"]{1,12} ) [ ]->[ ]
      (?: \[[-\d,]{0,10}\] | [^\s,"]{1,12} ) (?: , | (?=\s|$) )             # leader 3 -> 1
    | set[ ]to[ ] [^\s,"]{1,12} (?=\s|$)
    | (?: "(?:[^"\\]|\\.)*" | \[[-\d,]{0,30}\] | [^\s,"] )+ ,?
    | [,"]
    """,
    re.VERBOSE,
)
"""A piece of data that is not broken: a word, a member of JSON with its comma (strings stay whole, so that pasted text
is the same JSON), a short list of numbers, a short change (``leader 3 -> 1``)."""


def wrapped(text: str, room: int, *, hanging: str = "", data: bool = False) -> Iterator[str]:
    """Break an escaped text into lines.

    Args:
        text: one paragraph.
        room: the columns of a line; a longer word or command gets a line of its own.
        hanging: the text with which every line but the first begins; it counts as part of ``room``.
        data: whether the text holds JSON or lists, which may also be broken after commas.
    """
    room = max(room, NARROWEST)
    line, used, end = "", 0, 0
    for match in (_DATA if data else _TOKEN).finditer(text):
        blanks, size = match.start() - end, cells(match[0])
        if end and used > cells(hanging) and used + blanks + size > room:
            yield line
            line, used, blanks = hanging, cells(hanging), 0
        line += " " * blanks + match[0]
        used += blanks + size
        end = match.end()
    yield line
