"""The commands there are: the modules of :mod:`kshell.commands`. Names are listed without importing any of them."""

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
    """Every command's name, sorted. A module ``as_of`` is the command ``as-of``."""
    package = importlib.import_module(_PACKAGE)
    return tuple(name.replace("_", "-") for name in module_names(package.__path__))


def get(name: str) -> Command:
    """The command, imported now. Raises UsageError, which proposes names that exist."""
    if name not in names():
        from kshell.engine.habits import command_hint  # late: only mistakes need it

        hint = command_hint(name) or did_you_mean(name, names(), "`help` lists the commands by task")
        raise UsageError(f"{name}: no such command", hint=hint)
    command: Command = importlib.import_module(f"{_PACKAGE}.{name.replace('-', '_')}").COMMAND
    return command


def complete_name(session: Session, typed: str) -> list[str]:
    """The commands that begin like what was typed; aliases are no commands."""
    return [name for name in names() if name.startswith(typed)]


def commands() -> list[Command]:
    """All of them, by name."""
    return [get(name) for name in names()]
