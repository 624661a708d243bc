"""``cd``: change the working directory in the tree."""

from __future__ import annotations

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import CommandError, NotADirectoryNodeError
from kshell.tree.globs import escape
from kshell.tree.node import Directory
from kshell.tree.paths import join


class CdArguments(Arguments):
    """Arguments and options of ``cd``."""

    path: str | None


def run(session: Session, args: CdArguments) -> Result:
    """Change the working directory. ``-`` is the previous one; without a path it is ``~``, which is ``/image``."""
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
    arguments=CdArguments,
    args=(Arg("path", "where to go: a directory, - for the one before, .. for the one above", kind="path", arity="?"),),
    examples=(
        Example("cd /image/topics/byName", "go to the topics"),
        Example("cd ..", "go up"),
        Example("cd -", "go back to where you were"),
        Example("cd", "go to ~, which is /image"),
    ),
    description="Paths that do not begin with / or ~ start at the working directory. The shell starts in /.",
)
