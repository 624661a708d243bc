"""What is to be read of a file, and what is known to be wrong with it: plain values that travel to the executors."""

from __future__ import annotations

from typing import NamedTuple

from kshell.errors import CorruptDataError

UNREAD = "unread"
ANY_TIME = (1 << 63) - 1
"""As late as a time can be, in milliseconds since 1970: where nobody has looked how late."""


class Run(NamedTuple):
    """Batches back to back in one file: bytes ``start`` to ``end``, offsets ``first`` to before ``after``."""

    start: int
    end: int
    first: int
    after: int
    repeats: bool = False
    """Its offsets were there before, in another file: checked, but not given again."""
    last_ms: int = ANY_TIME
    """No record of it was written later, by the headers. When the earliest one was they do not say: clocks step back.
    """
    last: int = -1
    """The first byte of its last batch, if that was seen: a hint, which whoever shortens a run need not keep right."""


class Finding(NamedTuple):
    """What is wrong in a file: the byte, or -1 for no certain one; ``batch``, ``torn``, ``gap``, ``file``, ``unread``.

    ``unread``: not what the file holds is wrong, but nobody could read it: it is gone, or was changed or replaced since
    it was listed, or the system refuses. Read again it may be whole.
    """

    position: int
    kind: str
    reason: str


def damaged(error: CorruptDataError) -> Finding:
    """Damage as a finding."""
    return Finding(error.position, "batch", error.reason)


class FilePlan(NamedTuple):
    """What to read of a file, and what was found to be wrong with it already."""

    path: str
    size: int
    is_snapshot: bool
    runs: tuple[Run, ...]
    findings: tuple[Finding, ...] = ()
    is_proven: bool = True
    """Of a snapshot: whether the CRCs of its batches were checked."""


class Runs:
    """Collects batches into runs of about ``cut`` bytes; ``given``: the offset after the last batch so far."""

    def __init__(self, cut: int, given: int = 0) -> None:
        self._made: list[Run] = []
        self.given = given
        self._cut = cut
        self._start = self._end = self._first = self._after = self._last_ms = self._last = -1
        self._repeats = False

    def add(self, start: int, end: int, first: int, after: int, last_ms: int = ANY_TIME) -> None:
        """One more batch."""
        repeats = after <= self.given
        if self._end != start or self._after != first or end - self._start > self._cut or repeats != self._repeats:
            self._flush()
            self._start, self._first, self._repeats, self._last_ms = start, first, repeats, last_ms
        elif last_ms > self._last_ms:
            self._last_ms = last_ms
        if not repeats:
            self.given = after
        self._end, self._after, self._last = end, after, start

    def done(self) -> tuple[Run, ...]:
        """All of them, in the order in which they came."""
        self._flush()
        return tuple(self._made)

    def _flush(self) -> None:
        if self._end >= 0:
            self._made.append(
                Run(self._start, self._end, self._first, self._after, self._repeats, self._last_ms, self._last)
            )
        self._end = -1
