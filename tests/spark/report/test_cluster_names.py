"""What a report calls clusters."""

from __future__ import annotations

from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.spark.report.collect import cluster_names, renamed

IDS = ("4L6g3nShT-eMCtK--X86sw", "4L6g3nShX-eMCtK--X86sw", "short")


def test_ids_are_cut_where_no_two_begin_alike() -> None:
    assert cluster_names(IDS[:1]) == {IDS[0]: "4L6g3nSh"}
    assert cluster_names(IDS) == {IDS[0]: "4L6g3nShT", IDS[1]: "4L6g3nShX", "short": "short"}
    assert cluster_names(IDS, [(IDS[0], "orders")]) == {IDS[0]: "orders", IDS[1]: "4L6g3nSh", "short": "short"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([("nobody", "x")], "no such cluster"),
        ([(IDS[0], "x"), (IDS[1], "x")], "x would be the name of two clusters"),
        ([(IDS[0], "short")], "short would be the name of two clusters"),
    ],
)
def test_names_that_mislead_are_refused(given: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        cluster_names(IDS, given)


def test_answers_have_the_names_and_nothing_else_changes() -> None:
    rows: list[dict[str, Any]] = [
        {"clusterId": IDS[0], "topic": IDS[0], "count": 3},
        {"scope": "cluster", "name": IDS[0]},
        {"scope": "topic", "name": IDS[0]},
    ]
    found = renamed({"section": {"asked": rows}}, {IDS[0]: "orders"})
    assert found["section"]["asked"] == [
        {"clusterId": "orders", "topic": IDS[0], "count": 3},
        {"scope": "cluster", "name": "orders"},
        {"scope": "topic", "name": IDS[0]},
    ]
    assert rows[0]["clusterId"] == IDS[0]
