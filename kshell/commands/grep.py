"""``grep``: search the values of leaves below paths of the tree for a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kshell.engine.arguments import regex
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.predicates import answers_by_rows
from kshell.engine.result import Column, Result, Row, Rows, typed
from kshell.engine.session import Session
from kshell.engine.walk import one_line, walk
from kshell.errors import EXIT_FINDING, EXIT_OK
from kshell.tables.where_checks import Search, bounded
from kshell.tree.node import Leaf, Node
from kshell.tree.paths import Segments, join


class GrepArguments(Arguments):
    """Arguments and options of ``grep``."""

    pattern: str
    path: list[str]
    ignore_case: bool
    invert_match: bool
    fixed_strings: bool
    files_with_matches: bool


def run(session: Session, args: GrepArguments) -> Result:
    """Return one row per field whose text matches. Redacted values are searched as the text ``[redacted]``."""
    pattern = re.escape(args.pattern) if args.fixed_strings else args.pattern
    search = bounded(regex(f"(?i:{pattern})" if args.ignore_case else pattern))
    starts = [hit for where in args.path or ["."] for hit in session.find(where)]
    leaves = (
        (segments, node) for start in starts for segments, node in walk(*start, values=True) if isinstance(node, Leaf)
    )
    if args.files_with_matches:
        columns = typed("path:string", wide="type:string")
        rows = _paths(leaves, search, invert=args.invert_match)
        return _answered(Rows(columns, rows, "lines", line_column="path"))
    columns = (
        Column("path", type="string"),
        Column("type", wide=True, type="string"),
        Column("field", type="string"),
        Column("value", type="json"),
    )
    rows = _matches(leaves, search, invert=args.invert_match)
    return _answered(Rows(columns, rows, "lines", line=_line, hanging=4))


def _answered(result: Rows) -> Rows:
    answers_by_rows(result, some=EXIT_OK, none=EXIT_FINDING)
    return result


def _paths(leaves: Iterator[tuple[Segments, Node]], search: Search, *, invert: bool) -> Iterator[Row]:
    for segments, node in leaves:
        if isinstance(node, Leaf) and any(bool(search(text)) != invert for _, text, _ in _parts(node.value())):
            yield {"path": join(segments), "type": node.type}


def _matches(leaves: Iterator[tuple[Segments, Node]], search: Search, *, invert: bool) -> Iterator[Row]:
    for segments, node in leaves:
        if not isinstance(node, Leaf):
            continue
        for name, text, value in _parts(node.value()):
            if bool(search(text)) != invert:
                yield {"path": join(segments), "type": node.type, "field": name or None, "value": value}


def _parts(value: object, name: str = "") -> Iterator[tuple[str, str, object]]:
    """(dotted name, text, value) of each innermost field, such as ``listeners.0.host``; a list of scalars is one."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _parts(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _parts(item, f"{name}.{number}" if name else str(number))
    else:
        yield name, one_line(value), value


def _line(row: Row) -> str:
    field = f"{row['field']}=" if row["field"] else ""
    return f"{row['path']}: {field}{one_line(row['value'])}"


COMMAND = Command(
    name="grep",
    task=Task.TREE,
    summary="leaves whose values match a pattern",
    run=run,
    arguments=GrepArguments,
    args=(
        Arg("pattern", "a regular expression (Python's)"),
        Arg("path", "where to search; the working directory when absent", kind="path", arity="*"),
    ),
    flags=(
        Flag(("-i", "--ignore-case"), "ignore upper and lower case"),
        Flag(("-v", "--invert-match"), "leaves that do not match"),
        Flag(("-F", "--fixed-strings"), "the pattern is plain text"),
        Flag(("-l", "--files-with-matches"), "only the paths of the leaves"),
    ),
    examples=(
        Example("grep -i compact /image/configs", "where compaction is set"),
        Example("grep RECOVERING /image/topics/byName", "partitions in recovery: none on the sample", 1),
        Example("grep -l User:alice /image/acls", "the ACLs of a principal"),
        Example("grep -F rack-a /image/cluster -o json", "brokers of a rack"),
    ),
    description=(
        "Searches the values as they are shown: strings as they are, numbers, lists and the like as compact JSON, each"
        " field of an object by itself. Redacted values are the text [redacted] to grep as well."
    ),
    needs_records=True,
    exit_1_when="nothing is found",
)
