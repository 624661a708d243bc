"""A client in a process of its own, with a limit on its memory; what it answered, how long it took, how much it held.

``python -m tests.server.guarded quorum|brokers HOST:PORT,… KEY=VALUE …`` loads the image once and prints a JSON object.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from kshell.client.settings import Settings
from kshell.errors import KshellError
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource

MOST_MEMORY = 256 << 20
"""Bytes of resident memory that a client may take, whatever its peer sends."""
_ADDRESS_SPACE = 2 << 30
"""A guard for the machine: threads and libraries reserve some of it without use."""
_ROOT = Path(__file__).parents[2]


class Outcome(NamedTuple):
    """``error`` is the class of the KshellError (``None``: an image), ``memory`` in bytes, ``seconds`` of the load."""

    error: str | None
    message: str
    hint: str
    seconds: float
    memory: int


def load(kind: str, bootstrap: str, **properties: str) -> Outcome:
    """Loads from a server in this process. ``_`` in the name of a property stands for ``.``."""
    pairs = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
    command = [sys.executable, "-m", "tests.server.guarded", kind, bootstrap, *pairs]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Outcome(**json.loads(done.stdout))


def _main(kind: str, bootstrap: str, pairs: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    settings = Settings.of(dict(pair.split("=", 1) for pair in pairs))
    source = QuorumSource(bootstrap, settings) if kind == "quorum" else BrokerSource(bootstrap, settings)
    begin = time.monotonic()
    error, message, hint = None, "", ""
    try:
        source.load()
    except KshellError as failure:
        error, message, hint = type(failure).__name__, failure.message, failure.hint or ""
    seconds = time.monotonic() - begin
    print(json.dumps(Outcome(error, message, hint, seconds, peak_memory())._asdict()))


def peak_memory() -> int:
    """The most memory that this process has had, in bytes; getrusage counts what it was forked from as well."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
