"""``cd``: another working directory."""

from __future__ import annotations

from typing import Any

from kshell.engine.declaration import Arg, Command, Example, Task
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import CommandError, NotADirectoryNodeError
from kshell.tree.globs import escape
from kshell.tree.node import Directory
from kshell.tree.paths import join


def run(session: Session, args: Any) -> Result:
    """``-`` is the directory before this one; without a word it is ``~``, ``/image``."""
    pattern = escape(join(session.previous)) if args.path == "-" else args.path or "~"
    matches = session.find(pattern)
    if len(matches) > 1:
        raise CommandError(f"cd: {args.path} stands for {len(matches)} paths, and one is needed")
    segments, node = matches[0]
    if not isinstance(node, Directory):
        raise NotADirectoryNodeError(f"{join(segments)}: not a directory", hint=f"cat {join(segments)} shows its value")
    session.change_directory(segments)
    return Nothing()


COMMAND = Command(
    name="cd",
    task=Task.TREE,
    summary="go to another directory of the tree",
    run=run,
    args=(Arg("path", "where to go: a directory, - for the one before, .. for the one above", kind="path", arity="?"),),
    examples=(
        Example("cd /image/topics/byName", "go to the topics"),
        Example("cd ..", "go up"),
        Example("cd -", "go back to where you were"),
        Example("cd", "go to ~, which is /image"),
    ),
    description="Paths that do not begin with / or ~ start at the working directory. The shell starts in /.",
)
