"""The commands there are: the modules of :mod:`kshell.commands`. Names are listed without importing any of them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from kshell.commands.base.spec import Command
from kshell.errors import UsageError

_PACKAGE = "kshell.commands"


@cache
def names() -> tuple[str, ...]:
    """Every command's name, sorted. A module ``as_of`` is the command ``as-of``."""
    package = importlib.import_module(_PACKAGE)
    modules = pkgutil.iter_modules(package.__path__)
    return tuple(sorted(m.name.strip("_").replace("_", "-") for m in modules if not m.ispkg))


def get(name: str) -> Command:
    """The command, imported now. Raises UsageError, which proposes names that exist."""
    if name not in names():
        import difflib  # late: only mistakes need it

        close = difflib.get_close_matches(name, names(), n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else "`help` lists the commands"
        raise UsageError(f"{name}: no such command", hint=hint)
    plain = name.replace("-", "_")
    package = importlib.import_module(_PACKAGE)
    module = next(m.name for m in pkgutil.iter_modules(package.__path__) if m.name.strip("_") == plain)
    command: Command = importlib.import_module(f"{_PACKAGE}.{module}").COMMAND
    return command


def commands() -> list[Command]:
    """All of them, by name."""
    return [get(name) for name in names()]
