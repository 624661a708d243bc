"""How long to wait before a retry: exponentially longer each time, with jitter (Kafka's ``ExponentialBackoff``)."""

from __future__ import annotations

import random
import time

_FACTOR = 2.0
_JITTER = 0.2


class Backoff:
    """Waits between retries: :meth:`wait` (or :meth:`next`) before each retry, :meth:`reset` after a success.

    ``first`` and ``most`` are the seconds of the first and of the longest wait, before jitter; ``deadline`` is a value
    of ``time.monotonic()`` that no wait goes past.
    """

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
        """Seconds until the deadline, at least 0."""
        return max(self._deadline - time.monotonic(), 0.0)

    def next(self) -> float:
        """Return the seconds to wait now, and double the next wait."""
        wait = min(self._most, self._first * _FACTOR**self._times)
        self._times = min(self._times + 1, 30)
        wait *= random.uniform(1 - _JITTER, 1 + _JITTER)
        return max(0.0, min(wait, self._deadline - time.monotonic()))

    def wait(self) -> None:
        """Sleep for the seconds that :meth:`next` returns."""
        time.sleep(self.next())

    def reset(self) -> None:
        """Start again with the first wait, after a success."""
        self._times = 0
