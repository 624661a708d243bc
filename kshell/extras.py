"""Imports the packages of kshell's extras; if one is missing, the error names the command that installs it."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from typing import TYPE_CHECKING

from kshell.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

DISTRIBUTION = "kraft-shell"


def require(purpose: str, extra: str, *packages: str) -> tuple[ModuleType, ...]:
    """Import packages and return the modules. Raises UsageError for the first that is missing; ``purpose`` needs it."""
    modules = []
    for package in packages:
        try:
            modules.append(importlib.import_module(package))
        except ModuleNotFoundError as error:
            if error.name != package.partition(".")[0]:
                raise
            raise missing(purpose, extra, package.partition(".")[0]) from None
        except ImportError as error:  # no memory for the library (`ulimit -v`), or one for another machine
            raise UsageError(
                f"{purpose} needs the package {package}, which cannot be loaded: {error}", hint=install_command(extra)
            ) from None
    return tuple(modules)


def missing(purpose: str, extra: str, package: str) -> UsageError:
    """Return the error for a package that is not installed."""
    return UsageError(f"{purpose} needs the package {package}, which is not installed", hint=install_command(extra))


def install_command(extra: str) -> str:
    """Return the command that installs an extra.

    If kshell is installed with pip, its name is enough. From a checkout, pip would look for that name in the package
    index, where it is not published: so the command names the checkout, and the Python that runs kshell, since the pip
    on the PATH may be another's. To ``kshell.pyz`` nothing can be added.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        if os.path.isfile(root):
            return f"{os.path.basename(root)} comes without extras: install kshell from its wheel, with [{extra}]"
        if os.path.isfile(os.path.join(root, "pyproject.toml")):
            return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(f'{root}[{extra}]')}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"
