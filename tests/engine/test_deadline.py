"""A command's deadline ends it, wherever Python is when the alarm comes."""

from __future__ import annotations

import sys
import time

import pytest

from kshell.engine.execution import deadline
from kshell.errors import DeadlineError


class _Slow:
    """Something whose finalizer is running when the alarm comes: Python drops what is raised there."""

    def __del__(self) -> None:
        time.sleep(0.3)


def test_a_deadline_that_python_dropped_in_a_finalizer_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda seen: dropped.append(seen.exc_type))
    with pytest.raises(DeadlineError, match=r"gave up after 0\.1 s"), deadline(0.1):
        slow = _Slow()
        del slow
        assert dropped == [DeadlineError]
        time.sleep(5)


def test_a_deadline_that_is_being_handled_does_not_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.engine.execution._ALARM_INTERVAL", 0.05)
    with deadline(0.05):
        try:
            time.sleep(5)
        except DeadlineError as error:
            time.sleep(0.3)
            assert "gave up" in error.message
