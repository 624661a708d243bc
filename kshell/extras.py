"""What the extras bring: imported where it is needed, and named with the command that installs it where it is not."""

from __future__ import annotations

import importlib
from typing import Any

from kshell.errors import UsageError


def require(purpose: str, extra: str, *packages: str) -> tuple[Any, ...]:
    """The packages, imported. Raises UsageError for the first that is not there; ``purpose`` needs it."""
    found = []
    for package in packages:
        try:
            found.append(importlib.import_module(package))
        except ModuleNotFoundError as error:
            if error.name != package.partition(".")[0]:
                raise
            raise missing(purpose, extra, package.partition(".")[0]) from None
    return tuple(found)


def missing(purpose: str, extra: str, package: str) -> UsageError:
    """The error of a package that is not installed."""
    return UsageError(
        f"{purpose} needs the package {package}, which is not installed", hint=f"pip install 'kraft-shell[{extra}]'"
    )
