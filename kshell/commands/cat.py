"""``cat``: the values of leaves."""

from __future__ import annotations

from collections.abc import Iterator

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.result import Result, Row, Rows, Tree, Value, typed
from kshell.engine.session import Session
from kshell.engine.walk import branch, kind, nested
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join


class CatArguments(Arguments):
    """Arguments and options of ``cat``."""

    path: list[str]


def run(session: Session, args: CatArguments) -> Result:
    """Return the value of a single leaf, a tree of values for a single directory, or one row per path for several."""
    matches = [hit for pattern in args.path for hit in session.find(pattern)]
    if len(matches) == 1:
        return _value_or_tree(*matches[0])
    columns = typed("path:string type:string value:json")
    return Rows(columns=columns, rows=_rows(matches), style="values")


def _value_or_tree(segments: Segments, node: Node) -> Result:
    if isinstance(node, Leaf):
        return Value(join(segments), node.type, node.value())
    return Tree(branch(join(segments), node, values=True), values=True)


def _rows(matches: list[tuple[Segments, Node]]) -> Iterator[Row]:
    for segments, node in matches:
        value = nested(node) if isinstance(node, Leaf | Directory) else None
        yield {"path": join(segments), "type": kind(node), "value": value}


COMMAND = Command(
    name="cat",
    task=Task.TREE,
    summary="the values of leaves",
    run=run,
    arguments=CatArguments,
    args=(Arg("path", "leaves, or directories with everything below them", kind="path", arity="+"),),
    examples=(
        Example("cat /image/topics/byName/orders/0", "one partition"),
        Example("cat /image/topics/byName/orders/0 -o json", "the same, exactly"),
        Example("cat /image/features", "a directory: every value in it"),
        Example("cat /image/cluster/brokers/{1,2} -o yaml", "several leaves"),
    ),
    description=(
        "One leaf is printed readably, and exactly with -o json. A directory is printed as a tree of values; with"
        " -o json it is a nested object. Several paths are printed below each other, each under its name; with -o json"
        " they are an array of objects with path, type and value, where a directory's value is a nested object."
    ),
)
