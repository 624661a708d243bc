"""How long to wait before asking again: longer each time, never quite the same (Kafka's ``ExponentialBackoff``)."""

from __future__ import annotations

import random
import time

_FACTOR = 2.0
_JITTER = 0.2


class Backoff:
    """``first`` and ``most`` are seconds; ``deadline`` is a value of ``time.monotonic()`` that no wait passes."""

    def __init__(self, first: float, most: float, deadline: float = float("inf")) -> None:
        self._first = first
        self._most = most
        self._deadline = deadline
        self._times = 0

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._deadline

    @property
    def seconds_left(self) -> float:
        """The seconds to the deadline."""
        return max(self._deadline - time.monotonic(), 0.0)

    def next(self) -> float:
        """The seconds to wait now."""
        wait = min(self._most, self._first * _FACTOR**self._times)
        self._times = min(self._times + 1, 30)
        wait *= random.uniform(1 - _JITTER, 1 + _JITTER)
        return max(0.0, min(wait, self._deadline - time.monotonic()))

    def wait(self) -> None:
        """Waits."""
        time.sleep(self.next())

    def reset(self) -> None:
        """After a success: the next wait is the first again."""
        self._times = 0
