"""Several attempts at once: the first that goes well counts, a slow one keeps nobody waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kshell.client import concurrency
from kshell.client.nodes import unreachable
from kshell.errors import ConnectError, NodeError, SourceTimeoutError, WrongEndpointError


def after(seconds: float, result: str | NodeError) -> Callable[[], str]:
    def attempt() -> str:
        time.sleep(seconds)
        if isinstance(result, NodeError):
            raise result
        return result

    return attempt


def test_a_silent_one_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "STAGGER", 0.05)
    begun = time.monotonic()
    assert concurrency.first_success([after(1.0, "slow"), after(0.0, "quick")], unreachable) == "quick"
    assert time.monotonic() - begun < 0.8


def test_no_second_attempt_while_the_first_is_quick_enough() -> None:
    called = threading.Event()

    def second() -> str:
        called.set()
        return "second"

    assert concurrency.first_success([after(0.01, "first"), second], unreachable) == "first"
    assert not called.is_set()


def test_a_failure_starts_the_next_at_once() -> None:
    begun = time.monotonic()
    attempts = [after(0, ConnectError("a", "no")), after(0, SourceTimeoutError("b", "late")), after(0, "third")]
    assert concurrency.first_success(attempts, unreachable) == "third"
    assert time.monotonic() - begun < concurrency.STAGGER


def test_what_no_other_node_mends_is_raised_at_once() -> None:
    with pytest.raises(WrongEndpointError):
        concurrency.first_success([after(0, WrongEndpointError("a", "a broker")), after(0, "second")], unreachable)


def test_when_all_fail_each_is_named() -> None:
    with pytest.raises(ConnectError, match="a, b: none can be reached") as raised:
        concurrency.first_success(
            [after(0, ConnectError("a", "no")), after(0, ConnectError("b", "never"))], unreachable
        )
    assert "a: no; b: never" in raised.value.message
