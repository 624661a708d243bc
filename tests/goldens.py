"""Recorded answers: files with what was shown, written anew on demand."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "KSHELL_UPDATE_GOLDEN"


def are_written() -> bool:
    """Whether this run writes them anew; what changed is read in ``git diff`` before it is kept."""
    return os.environ.get(VARIABLE) == "1"


def differs(path: Path) -> str:
    """What to do where an answer is not the recorded one."""
    return f"{path} differs: {VARIABLE}=1 writes it anew; read git diff"
