"""``unalias``: takes aliases back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kshell.engine.declaration import Arg, Command, Example
from kshell.engine.result import Nothing, Result
from kshell.engine.session import Session
from kshell.errors import CommandError


def run(session: Session, args: Any) -> Result:
    """All of them, or none when one does not exist."""
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
    args=(Arg("name", "aliases", arity="+", complete=_complete),),
    examples=(
        Example("unalias ll", "forget ll"),
        Example("unalias names nothing", "where one does not exist, none is forgotten", 2),
    ),
    needs_source=False,
)
