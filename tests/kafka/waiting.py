"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], complaint: str, seconds: float = 60) -> None:
    """Poll until a condition holds; raise TimeoutError with the complaint if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{complaint} (waited {seconds:g} s)")
        time.sleep(0.1)
