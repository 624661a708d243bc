"""Large metadata files made by Kafka's own writers, kept in the cache, and the speed of Kafka's own replay of them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.kafka import jars

SNAPSHOT = "00000000000000999999-0000000001.checkpoint"
SEGMENT = "00000000000000000000.log"


class Replayed(NamedTuple):
    """One cold replay by Kafka: the whole process by the wall, the replay alone, and what was in the file."""

    wall: float
    seconds: float
    records: int
    partitions: int


def snapshot(topics: int, partitions: int, *, brokers: int = 60, mixed: bool = True) -> Path:
    """Return a snapshot with that many topics of that many partitions each, in a directory of its own."""
    return _made(SNAPSHOT, "snapshot", topics, partitions, brokers, mixed)


def log(topics: int, partitions: int, changes: int, *, brokers: int = 60, mixed: bool = True) -> Path:
    """Return a log segment from offset 0: the topics, then random partition changes."""
    return _made(SEGMENT, "log", topics, partitions, brokers, mixed, changes)


def replay_command(file: Path, heap: str = "4g") -> list[str]:
    """Return the command that replays a file with Kafka's own classes, with Java's own defaults."""
    class_path = jars.classes(jars.LATEST, "Replay")
    return [jars.program("java"), f"-Xmx{heap}", "-cp", class_path, "Replay", str(file)]


def replay(file: Path, heap: str = "4g") -> Replayed:
    """Replay a file with Kafka's own classes in a fresh process."""
    line = replay_command(file, heap)
    start = time.perf_counter()
    output = subprocess.run(line, capture_output=True, stdin=subprocess.DEVNULL, check=True).stdout
    wall = time.perf_counter() - start
    told = json.loads(output)
    return Replayed(wall, told["seconds"], told["records"], told["partitions"])


def _made(name: str, *args: str | int | bool) -> Path:
    kind, topics, partitions, brokers, mixed, *more = args
    words = [topics, partitions, brokers, "mixed" if mixed else "uniform", *more]
    source = hashlib.sha256((jars.JAVA_SOURCES / "Gen.java").read_bytes()).hexdigest()[:12]
    target = jars.cache() / "generated" / "-".join(map(str, [kind, *words, source])) / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        class_path = jars.classes(jars.LATEST, "Gen")
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            part = Path(work, "part")
            jars.run(class_path, "Gen", str(kind), str(part), *map(str, words), heap="4g")
            part.replace(target)
    return target
