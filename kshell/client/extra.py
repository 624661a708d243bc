"""What the extra ``live`` brings: a connection in the clear does without, and names the extra where it cannot."""

from __future__ import annotations

import importlib.util

from kshell.errors import UsageError


def require(package: str, purpose: str) -> None:
    """Raises UsageError with the command that installs it when ``package`` is not there; ``purpose`` needs it."""
    if importlib.util.find_spec(package) is None:
        raise UsageError(
            f"{purpose} needs the package {package}, which is not installed", hint="pip install 'kraft-shell[live]'"
        )
