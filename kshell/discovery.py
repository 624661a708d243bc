"""Which modules a package has: how commands and record families are found."""

from __future__ import annotations

import os
from collections.abc import Iterable

_ENDING = ".py"


def module_names(path: Iterable[str]) -> list[str]:
    """The names of the plain modules in a package's ``__path__``, sorted.

    ``pkgutil`` says the same but imports ``inspect`` for it, so it is left to what is not a directory (a zip).
    """
    names: set[str] = set()
    for folder in path:
        if os.path.isdir(folder):
            files = os.listdir(folder)
            names |= {file[: -len(_ENDING)] for file in files if file.endswith(_ENDING) and not file.startswith("__")}
        else:
            import pkgutil

            names |= {module.name for module in pkgutil.iter_modules([folder]) if not module.ispkg}
    return sorted(names)
