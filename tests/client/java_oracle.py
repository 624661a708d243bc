"""What Java and Kafka's own classes make of properties and JAAS texts (``tests/client/java/ClientProperties.java``)."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.kafka import jars

_PROGRAM = Path(__file__).parent / "java" / "ClientProperties.java"


def judge(kind: str, texts: Iterable[bytes]) -> list[dict[str, str] | None]:
    """For each text what Java reads in it, ``None`` where it refuses. ``kind``: ``properties`` or ``jaas``."""
    asked = "".join(f"{kind} {base64.b64encode(text).decode()}\n" for text in texts)
    command = [jars.program("java"), "-cp", f"{jars.libs(jars.LATEST)}/*", str(_PROGRAM)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=120)
    return [None if line == "error" else dict(map(_pair, line.split())) for line in done.stdout.splitlines()]


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return _text(key), _text(value)


def _text(word: str) -> str:
    data = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    return data.decode("utf-16-be", "surrogatepass")
