"""Every API that kshell declares, by key."""

from __future__ import annotations

import importlib
from functools import cache

from kshell.protocol.api import Api

_MODULES = ("connection", "quorum", "cluster", "configs", "access")


@cache
def apis() -> dict[int, Api]:
    """Key -> declaration as Kafka has it; dialects are in ``kshell.protocol.messages.drafts``."""
    found: dict[int, Api] = {}
    for name in _MODULES:
        module = importlib.import_module(f"kshell.protocol.messages.{name}")
        found |= {made.key: made for made in vars(module).values() if isinstance(made, Api)}
    return found
