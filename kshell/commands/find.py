"""``find``: all paths below starting points in the tree that meet the given tests, with ``--values`` their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kshell.engine.arguments import count, regex
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows, typed
from kshell.engine.session import Session
from kshell.engine.walk import kind, one_line, walk
from kshell.tables.leaf_types import complete_type, node_type
from kshell.tables.where_checks import bounded
from kshell.tree.globs import component, expand_braces
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join

_PATHS = typed("path:string", wide="type:string")
_VALUES = typed("path:string type:string value:json")

Test = Callable[[Segments, Node], bool]


class FindArguments(Arguments):
    """Arguments and options of ``find``."""

    path: list[str]
    name: str | None
    regex: re.Pattern[str] | None
    type: str | None
    values: bool
    maxdepth: int | None


def run(session: Session, args: FindArguments) -> Result:
    """Return one row per match. The rows are a generator: the tree is walked while they are printed."""
    starts = [hit for pattern in args.path or ["."] for hit in session.find(pattern)]
    hits = _hits(starts, _tests(args), args)
    if args.values:
        return Rows(columns=_VALUES, rows=_values(hits), style="lines", line=_line, hanging=4)
    rows = ({"path": join(segments), "type": kind(node)} for segments, node in hits)
    return Rows(columns=_PATHS, rows=rows, style="lines", line_column="path")


def _hits(
    starts: list[tuple[Segments, Node]], tests: list[Test], args: FindArguments
) -> Iterator[tuple[Segments, Node]]:
    values = args.values and not tests  # with a test, not every leaf's value is asked for
    for segments, node in starts:
        for hit in walk(segments, node, args.maxdepth, values=values):
            if all(test(*hit) for test in tests):
                yield hit


def _tests(args: FindArguments) -> list[Test]:
    tests: list[Test] = []
    if args.name is not None:
        matches = [component(option).fullmatch for option in expand_braces(args.name)]
        tests.append(lambda segments, _: any(match(segments[-1] if segments else "/") for match in matches))
    if args.regex is not None:
        matches_whole = bounded(args.regex, full_match=True)
        tests.append(lambda segments, _: matches_whole(join(segments)) is not None)
    if args.type is not None:
        tests.append(_type_test(args.type))
    return tests


def _type_test(wanted: str) -> Test:
    if wanted in ("d", "f"):
        return lambda _, node: isinstance(node, Directory) == (wanted == "d")
    return lambda _, node: kind(node) == wanted


def _values(hits: Iterator[tuple[Segments, Node]]) -> Iterator[Row]:
    for segments, node in hits:
        if isinstance(node, Leaf):
            yield {"path": join(segments), "type": node.type, "value": node.value()}


def _line(row: Row) -> str:
    return f"{row['path']}: {one_line(row['value'])}"


COMMAND = Command(
    name="find",
    task=Task.TREE,
    summary="every path below a directory, or every value",
    run=run,
    arguments=FindArguments,
    args=(Arg("path", "where to begin; the working directory when absent", kind="path", arity="*"),),
    flags=(
        Flag(("-name", "--name"), "only nodes whose own name matches", metavar="GLOB"),
        Flag(("-regex", "--regex"), "only nodes whose whole path matches", metavar="RE", convert=regex),
        Flag(
            ("-type", "--type"),
            "only directories (d), leaves (f), or leaves of one type, such as partition",
            metavar="TYPE",
            convert=node_type,
            complete=complete_type,
        ),
        Flag(("--values",), "leaves only, with their values"),
        Flag(("-maxdepth", "--maxdepth"), "go down N levels at most", metavar="N", convert=count),
    ),
    examples=(
        Example("find /image/topics/byName -maxdepth 1 -type d -name 'o*'", "topics that begin with o"),
        Example("find /image/configs --values", "every config with its value"),
        Example("find /image -type broker --values -o jsonl", "the brokers, one JSON object per line"),
        Example("find / -regex '.*/byName/[^/]*/0'", "partition 0 of every topic"),
    ),
    description=(
        "Lists depth first, directories before what is in them, names in the tree's order. With --values and -o jsonl"
        " every leaf is one object with path, type and value: the way to take everything out of an image."
    ),
)
