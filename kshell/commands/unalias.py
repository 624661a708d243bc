"""``unalias``: remove aliases."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.engine.declaration import Arg, Arguments, Command, Example
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import CommandError


class UnaliasArguments(Arguments):
    """Arguments and options of ``unalias``."""

    name: list[str]


def run(session: Session, args: UnaliasArguments) -> Result:
    """Remove all given aliases, or none if one of them does not exist."""
    missing = [name for name in args.name if name not in session.aliases]
    if missing:
        raise CommandError(f"{missing[0]}: no such alias", hint="`alias` lists them")
    for name in args.name:
        session.aliases.pop(name, None)
    return Nothing()


def _complete(session: Session, typed: str) -> Iterable[str]:
    return [name for name in sorted(session.aliases) if name.startswith(typed)]


COMMAND = Command(
    name="unalias",
    summary="take aliases back",
    run=run,
    arguments=UnaliasArguments,
    args=(Arg("name", "aliases", arity="+", complete=_complete),),
    examples=(
        Example("unalias ll", "forget ll"),
        Example("unalias names nothing", "where one does not exist, none is forgotten", 2),
    ),
    needs_source=False,
)
