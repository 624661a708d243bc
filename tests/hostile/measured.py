"""A process of kshell with what it took: seconds, memory, and what it said."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
MEMORY = 256
"""MiB that a process may have in memory at the most, whatever it reads."""
_ADDRESSES = 2 << 30
"""Bytes of address space: a guard for the machine that runs the tests."""


class Measured(NamedTuple):
    """What a process took. ``memory``: the most that it had at once, in MiB; ``text``: both of its streams."""

    code: int
    seconds: float
    memory: float
    text: str


def measured(*words: str) -> Measured:
    """Run one command line."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KSHELL_")}
    with tempfile.TemporaryFile("w+") as out:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _GUARDED, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=clean | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull, "XDG_STATE_HOME": os.devnull},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        out.seek(0)
        kib = usage.ru_maxrss if sys.platform == "linux" else usage.ru_maxrss // 1024
        return Measured(process.returncode, seconds, kib / 1024, out.read())


_GUARDED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_ADDRESSES}, resource.getrlimit(resource.RLIMIT_AS)[1]))
from kshell.cli import main
sys.exit(main())
"""


def check(took: Measured, *codes: int) -> None:
    """Fail unless it ended with one of these codes, without a traceback, in little memory."""
    assert "Traceback" not in took.text, took.text
    assert took.code in codes, took
    assert took.memory < MEMORY, took
