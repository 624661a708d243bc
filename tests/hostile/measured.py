"""A process of kshell with what it took: seconds, memory, and what it said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
MEMORY = 256
"""MiB that a process may have in memory at the most, whatever it reads."""


class Measured(NamedTuple):
    """What a process took. ``memory``: the most that it had at once, in MiB; ``text``: both of its streams."""

    code: int
    seconds: float
    memory: float
    text: str


def measured(*words: str) -> Measured:
    """Run one command line."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KSHELL_")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", _BETWEEN, sys.executable, "-P", "-m", "kshell", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull, "XDG_STATE_HOME": os.devnull},
        errors="backslashreplace",
        timeout=300,
        check=True,
    )
    *lines, last = done.stdout.splitlines()
    code, seconds, memory = last.split()
    return Measured(
        int(code), float(seconds), float(memory) / (1024 if sys.platform == "linux" else 1 << 20), "\n".join(lines)
    )


_BETWEEN = """
import os, resource, sys, time
started = time.monotonic()
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print()
print(os.waitstatus_to_exitcode(status), time.monotonic() - started, usage.ru_maxrss)
"""
"""Runs in a small process of its own: what a process had in memory counts for the one that it was forked from, too, and
the tests' is large. The bound of addresses is a guard for the machine that runs the tests.
"""


def check(took: Measured, *codes: int) -> None:
    """Fail unless it ended with one of these codes, without a traceback, in little memory."""
    assert "Traceback" not in took.text, took.text
    assert took.code in codes, took
    assert took.memory < MEMORY, took
