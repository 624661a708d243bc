"""Lists the modules of a package: how commands, record families and tables are found."""

from __future__ import annotations

import os
from collections.abc import Iterable

_ENDING = ".py"


def module_names(path: Iterable[str]) -> list[str]:
    """Return the names of the modules directly in a package, given its ``__path__``, sorted; no packages.

    ``pkgutil`` does the same but imports ``inspect``, so it is used only for what is no directory (a zip file).
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
