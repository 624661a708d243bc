"""``tree``: directories with everything below them, drawn."""

from __future__ import annotations

from kshell.engine.arguments import count
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Branch, Result, Tree
from kshell.engine.session import Session
from kshell.engine.walk import branch
from kshell.tree.paths import join


class TreeArguments(Arguments):
    """Arguments and options of ``tree``."""

    path: list[str]
    level: int | None
    values: bool


def run(session: Session, args: TreeArguments) -> Result:
    """Return a tree with the path as its root; several paths become trees below one unnamed root."""
    matches = [hit for pattern in args.path or ["."] for hit in session.find(pattern)]
    trees = [branch(join(at), node, values=args.values, depth=args.level) for at, node in matches]
    root = trees[0] if len(trees) == 1 else Branch("", children=trees)
    return Tree(root, values=args.values)


COMMAND = Command(
    name="tree",
    task=Task.TREE,
    summary="directories with everything below them, drawn",
    run=run,
    arguments=TreeArguments,
    args=(Arg("path", "where to begin; the working directory when absent", kind="path", arity="*"),),
    flags=(
        Flag(("-L", "--level"), "go down N levels at most", metavar="N", convert=count),
        Flag(("--values",), "show the leaves' values, too"),
    ),
    examples=(
        Example("tree -L 2 /image", "the upper two levels of the image"),
        Example("tree --values /quorum", "the quorum with its values"),
    ),
)
