"""What the extras bring: imported where it is needed, and named with the command that installs it where it is not."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from typing import Any

from kshell.errors import UsageError

DISTRIBUTION = "kraft-shell"


def require(purpose: str, extra: str, *packages: str) -> tuple[Any, ...]:
    """The packages, imported. Raises UsageError for the first that is not there; ``purpose`` needs it."""
    modules = []
    for package in packages:
        try:
            modules.append(importlib.import_module(package))
        except ModuleNotFoundError as error:
            if error.name != package.partition(".")[0]:
                raise
            raise missing(purpose, extra, package.partition(".")[0]) from None
        except ImportError as error:  # a library without room for it (`ulimit -v`), or for another machine
            raise UsageError(
                f"{purpose} needs the package {package}, which cannot be loaded: {error}", hint=install_command(extra)
            ) from None
    return tuple(modules)


def missing(purpose: str, extra: str, package: str) -> UsageError:
    """The error of a package that is not installed."""
    return UsageError(f"{purpose} needs the package {package}, which is not installed", hint=install_command(extra))


def install_command(extra: str) -> str:
    """The command that installs an extra.

    Where kshell is installed, pip has that distribution already and adds what the extra needs. Where it runs from a
    checkout, its name would make pip ask the package index, where it is not published: the checkout is named, and the
    Python that kshell runs on, whose pip need not be the one on the PATH. In ``kshell.pyz`` there is nothing to add to.
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
