"""Functions for ``Column.tone``, which make values that mean trouble stand out in colour."""

from __future__ import annotations

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


def state(value: object) -> str:
    """Return the tone of a partition's state, of a verdict on a file or copy, or of a finding's level."""
    return _OF_STATES.get(value, "") if isinstance(value, str) else ""


def harm(value: object) -> str:
    """Return ``error`` for true, and for a count above 0."""
    return "error" if value else ""


def doubt(value: object) -> str:
    """Return ``warning`` for true, and for a count above 0."""
    return "warning" if value else ""
