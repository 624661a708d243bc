"""The tone of a value that a column shows: what is wrong stands out (``Column.tone``)."""

from __future__ import annotations

from typing import Any

_OF_STATES = {
    "offline": "error",
    "under-min-isr": "error",
    "undecoded": "error",
    "last-in-sync": "error",
    "under-replicated": "warning",
    "damaged": "error",
    "incomplete": "error",
    "foreign": "error",
    "unreadable": "error",
    "diverged": "error",
    "not-read": "warning",
    "torn": "warning",
    "slip": "warning",
    "behind": "warning",
    "DENY": "warning",
    "fenced": "error",
    "critical": "critical",
    "error": "error",
    "warning": "warning",
    "info": "info",
}


def state(value: Any) -> str:
    """The tone of a partition's state, of a verdict on a file or a copy, of a finding's level."""
    return _OF_STATES.get(value, "") if isinstance(value, str) else ""


def harm(value: Any) -> str:
    """``error`` where something is true, or where there is any of what is counted."""
    return "error" if value else ""


def doubt(value: Any) -> str:
    """``warning`` likewise."""
    return "warning" if value else ""
