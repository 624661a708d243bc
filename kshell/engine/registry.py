"""Find commands by name: the modules of :mod:`kshell.commands`. Listing the names imports none of them."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from kshell.discovery import module_names
from kshell.engine.declaration import Command
from kshell.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.engine.session import Session

_PACKAGE = "kshell.commands"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all commands, sorted. The module ``as_of`` is the command ``as-of``."""
    package = importlib.import_module(_PACKAGE)
    return tuple(name.replace("_", "-") for name in module_names(package.__path__))


def get(name: str) -> Command:
    """Import and return the command of that name. Raises UsageError with a hint of similar commands."""
    if name not in names():
        from kshell.engine.habits import command_hint  # late: only mistakes need it

        hint = command_hint(name) or did_you_mean(name, names(), "`help` lists the commands by task")
        raise UsageError(f"{name}: no such command", hint=hint)
    command: Command = importlib.import_module(f"{_PACKAGE}.{name.replace('-', '_')}").COMMAND
    return command


def complete_name(session: Session, typed: str) -> list[str]:
    """Return the names of commands that begin with the typed text, without aliases."""
    return [name for name in names() if name.startswith(typed)]


def commands() -> list[Command]:
    """Import and return all commands, sorted by name."""
    return [get(name) for name in names()]
