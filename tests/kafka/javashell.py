"""Kafka's own metadata shell, run once: the rival of the one-shot path."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.kafka import jars


class Run(NamedTuple):
    """One run: how long it took by the wall, its exit code and what it printed."""

    seconds: float
    code: int
    output: str


def run(file: Path, *command: str, version: str = jars.LATEST_SHELL, timeout: float = 60) -> Run:
    """Run ``MetadataShell --snapshot FILE COMMAND`` as its start script would (its one-shot answers may be empty)."""
    main = "org.apache.kafka.shell.MetadataShell"
    line = [jars.program("java"), "-cp", f"{jars.libs(version)}/*", main, "--snapshot", str(file), *command]
    start = time.perf_counter()
    done = subprocess.run(line, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False)
    return Run(time.perf_counter() - start, done.returncode, done.stdout.decode("utf-8", "replace"))
