"""Files of this machine, as words of a line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kshell.engine.session import Session


def complete_file(session: Session, typed: str) -> Iterable[str]:
    """The files and directories whose paths may be meant; directories end with a slash."""
    folder = typed[: typed.rfind("/") + 1]
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            return sorted(folder + entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    except OSError:
        return []
