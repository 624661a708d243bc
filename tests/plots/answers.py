"""Answers to draw: of the sample cluster, and made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.execution import prepare
from kshell.engine.result import Column, Report, Result, Row, Rows, Section
from kshell.engine.session import Session
from kshell.plots.picture import Plot
from kshell.sources.directory.source import DirectorySource

pytest.importorskip("matplotlib")

DEMO = Path(__file__).parents[2] / "kshell" / "demo" / "__cluster_metadata-0"
HOSTILE = "\x1b[31m$\\frac{1$\n\u202e<img src=x onerror=alert(1)>\U0001f986 \u673a"
NOW = 1_800_000_000_000


def answer(line: str) -> Result:
    """What a command says of the sample cluster."""
    call = prepare(Session(DirectorySource(str(DEMO))), line)
    assert call is not None
    return call.run()


def rows(names: str, *values: Iterable[Any]) -> Rows:
    """Rows with these columns."""
    columns = names.split()
    return Rows(tuple(map(Column, columns)), [dict(zip(columns, one, strict=True)) for one in values])


def figure(plot: Plot) -> Any:
    """Its figure, of which matplotlib's own stubs leave out much."""
    return plot.figure


def texts(plot: Plot) -> list[str]:
    """Every word that is drawn, in the figure and in its axes."""
    found = [text.get_text() for text in figure(plot).texts]
    for axes in figure(plot).axes:
        found += [text.get_text() for text in axes.texts]
    return found


STRETCH = "topic partition fromTimeMs toTimeMs leader isrSize replicas"


def stretches(topic: str, partition: int, *held: tuple[int, int, int], replicas: int = 3) -> Iterator[list[Any]]:
    """Rows of ``timeline``: (milliseconds, leader, ISR size) one after the other; the last lasts."""
    start = NOW
    for place, (length, leader, size) in enumerate(held):
        end = None if place == len(held) - 1 else start + length
        yield [topic, partition, start, end, leader, size, list(range(replicas))]
        start += length


def replica(node: int, lag: int | None, behind: int | None = 0) -> Row:
    """One of ``quorum``; ``behind`` in milliseconds."""
    caught = None if behind is None else NOW - behind
    return {"id": node, "lag": lag, "lastFetchTimestamp": NOW, "lastCaughtUpTimestamp": caught}


def quorum(voters: list[Row], observers: list[Row] | None = None) -> Report:
    """What a running quorum says."""
    told = {"leaderId": 3000, "leaderEpoch": 7, "highWatermark": 123456, "voters": voters, "observers": observers}
    return Report([Section("", "", told)])
