"""grep: what it finds, and what it must not be able to find out."""

from __future__ import annotations

import pytest

from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from tests.commands.shell import lines, rows, run


def test_fields_and_whole_values(sample: Session) -> None:
    assert lines(sample, "grep rack-b /image/cluster") == ["/image/cluster/brokers/1: rack=rack-b"]
    assert lines(sample, "grep ^4.3 /image/features") == ["/image/features/metadataVersion: 4.3-IV0"]
    assert lines(sample, "grep kafka-3.shop /image/cluster") == [
        "/image/cluster/brokers/3: listeners.0.host=kafka-3.shop.example"
    ]
    assert lines(sample, "grep -l ^8192$ /image/scram") == [
        f"/image/scram/SCRAM-SHA-512/{user}" for user in ("alice", "svc-orders", "svc-payments")
    ]


def test_flags(sample: Session) -> None:
    assert rows(sample, "grep COMPACT /image/configs") == []
    assert len(rows(sample, "grep -i COMPACT /image/configs")) == 3
    assert rows(sample, "grep -F 4.3.IV0 /image/features") == []
    assert [row["value"] for row in rows(sample, "grep -v ^1$ /image/features")] == [2, "4.3-IV0"]


def test_exit_code(sample: Session) -> None:
    for pattern, code in (("rack-b", 0), ("rack-z", 1)):
        result = run(sample, f"grep {pattern} /image/cluster")
        assert isinstance(result, Rows)
        list(result)
        assert result.exit_code == code


def test_redacted_values_cannot_be_guessed(sample: Session) -> None:
    shown = rows(sample, "grep . /image/scram/SCRAM-SHA-256/alice --show-secrets")
    salt = next(row["value"] for row in shown if row["field"] == "salt")
    assert rows(sample, f"grep {salt[:4]} /image/scram") == []
    assert rows(sample, "grep '^[0-9a-f]+$' /image/scram/SCRAM-SHA-256/alice")[0]["field"] == "iterations"
    assert len(rows(sample, r"grep '^\[redacted\]$' /image/scram/SCRAM-SHA-256/alice")) == 3


def test_a_pattern_that_is_none(sample: Session) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        run(sample, "grep '[' /image")


@pytest.mark.parametrize("line", ["grep '^((.)+.)+#$' /image", "find /image --regex '((.)+.)+#'"])
def test_a_pattern_that_takes_for_ever_on_a_text_is_given_up(sample: Session, line: str) -> None:
    with pytest.raises(CommandError, match="takes more than 1 s on a text of"):
        rows(sample, line)
