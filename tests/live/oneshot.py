"""kshell as a user runs it: one process a question."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIND = ("find", "/image", "--values", "-o", "jsonl", "--show-secrets")
WELL = ("whole", "torn", "not-checked", "slip")
"""What ``verify`` says of files that are well. A slip is Kafka's own: a node that was held up, as on a busy machine,
replays what it missed at once, and may leave configs of topics that were created and removed meanwhile in a snapshot.
"""


Source = Path | tuple[str, ...]
"""A directory or file, or the flags that name another source, such as ``("-q", "localhost:9093")``."""


def command(source: Source, *words: str) -> list[str]:
    """Return the command line that asks one question of a source."""
    flags = source if isinstance(source, tuple) else ("-d", str(source))
    return [sys.executable, "-m", "kshell", *flags, *words]


def run(source: Source, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask one question, with a home directory of its own."""
    with tempfile.TemporaryDirectory(prefix="kshell-home-") as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("KSHELL_", "XDG_"))}
        return subprocess.run(
            command(source, *words), cwd=ROOT, env={**env, "HOME": home}, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip


def lines(source: Source, *words: str) -> list[str]:
    """Ask one question that must be answered with exit code 0 and without a complaint; return the lines."""
    done = run(source, *words)
    assert done.returncode == 0, (
        f"{words} on {source} ended with {done.returncode}: {done.stderr}\n{done.stdout[-2000:]}"
    )
    return done.stdout.split("\n")[:-1]
