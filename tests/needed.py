"""What a test needs of the machine: where it is missing the test skips with the reason, and under
``KSHELL_REQUIRE_LIVE=1``, where the machine is meant to have everything, it fails.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

import pytest


def is_required() -> bool:
    """Whether this machine is meant to have everything."""
    return os.environ.get("KSHELL_REQUIRE_LIVE") == "1"


def imported(name: str, reason: str | None = None) -> Any:
    """A module that comes with an extra; where it is not installed, the test or the module of tests skips."""
    return importlib.import_module(name) if is_required() else pytest.importorskip(name, reason=reason)


def missing(reason: str) -> NoReturn:
    """Ends the test."""
    if is_required():
        pytest.fail(f"KSHELL_REQUIRE_LIVE=1, but {reason}")
    pytest.skip(reason)
