"""Answers without end, drawn in their place."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kshell.errors import EXIT_INTERRUPTED, SourceError
from kshell.result import Result
from kshell.sources.directory.source import DirectorySource
from tests.builders import FIXTURES
from tests.magic.shell import Cells


def test_follow_draws_one_table(cells: Cells) -> None:
    result = cells.run("%kafka follow --since 0 --count 30")
    assert isinstance(result, Result) and len(result) == 30
    assert [row["offset"] for row in result][:2] == [0, 1]
    assert len(cells.shown) == 1
    assert "30 records, ended; the last 20 are shown" in cells.text()
    assert cells.shown[0]["text/html"].count("<tr") == 21


def test_follow_has_the_rows_of_the_exact_formats_and_shows_those_for_users(cells: Cells) -> None:
    cells.run(f"%kafka connect -d {FIXTURES / '4.3.1/controller-3001'};")
    cells.run("x = %kafka follow --since 0 --count 60")
    assert "60 records, ended" in cells.text()
    cells.run("y = %kafka follow --since 0 --count 60 -o json")
    whole, exact = cells.ip.user_ns["x"], cells.ip.user_ns["y"]
    assert list(whole) == list(exact)
    assert "NO_OP_RECORD" in {row["type"] for row in whole}
    cells.shown.clear()
    cells.run("x")
    assert "NO_OP" not in str(cells.shown) and "TOPIC_RECORD" in str(cells.shown)


def test_follow_that_is_interrupted_keeps_what_came(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DirectorySource.follow

    def some(self: DirectorySource, start: int | None = None) -> Iterator[Any]:
        yield from itertools.islice(whole(self, start), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(DirectorySource, "follow", some)
    result = cells.run("x = %kafka follow --since 0") or cells.ip.user_ns["x"]
    assert result.exit_code == EXIT_INTERRUPTED
    assert 0 < len(result) < 100
    assert f"{len(result)} records, interrupted" in cells.text()
    cells.run("%kafka pwd")
    assert cells.text() == "/"


@pytest.mark.parametrize("line", ["follow --since 0 --timeout 0.5", "watch --timeout 0.5 pwd"])
def test_a_deadline_is_an_end_and_no_error(cells: Cells, line: str) -> None:
    result = cells.run(f"%kafka {line}")
    assert result.exit_code == 3 and len(result) > 0
    assert "ended by --timeout" in cells.text()


def test_an_interrupted_follow_ends_its_cell(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: DirectorySource, start: int | None = None) -> Iterator[Any]:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(DirectorySource, "follow", none)
    cells.run("%%kafka\nfollow\npwd\n")
    assert len(cells.shown) == 1


def test_an_error_stands_below_the_last_state(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DirectorySource.follow

    def some(self: DirectorySource, start: int | None = None) -> Iterator[Any]:
        yield from itertools.islice(whole(self, start), 1)
        raise SourceError("the disk is gone")

    monkeypatch.setattr(DirectorySource, "follow", some)
    error = cells.fails("%kafka follow --since 0")
    assert "the disk is gone" in error.message
    assert "the disk is gone" in cells.text()


def test_follow_in_a_format_shows_that_format(cells: Cells) -> None:
    result = cells.run("%kafka follow --since 0 --count 2 -o jsonl")
    assert result.output == "jsonl" and len(result) == 2
    lines = cells.text().splitlines()
    assert [json.loads(line)["offset"] for line in lines[:2]] == [0, 1] and lines[2] == "2 records, ended"


def test_follow_shows_no_secret(cells: Cells) -> None:
    result = cells.run("%kafka follow --since 0 --type USER_SCRAM_CREDENTIAL_RECORD --count 1 --show-secrets")
    salt = result[0]["data"]["salt"]
    assert salt != "[redacted]"
    cells.ip.user_ns["x"] = result
    cells.run("x")
    assert "USER_SCRAM" in str(cells.shown) and salt not in str(cells.shown)


def test_watch_replaces_its_frames(cells: Cells) -> None:
    result = cells.run("%kafka watch --times 3 --interval 0.2 topics --columns name --limit 2")
    assert [row["name"] for row in result] == ["__transaction_state", "audit-log"]
    assert len(cells.shown) == 1
    assert cells.text().startswith("every 0.2 s: topics --columns name --limit 2 · ")


def test_watch_that_is_interrupted_leaves_the_last_frame(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kshell.commands.watch._wait", stop)
    result = cells.run("%kafka watch pwd")
    assert result.exit_code == EXIT_INTERRUPTED
    assert "interrupted" in cells.text() and cells.text().endswith("/")


def test_what_has_no_end_goes_nowhere_else(cells: Cells) -> None:
    for line in ("follow | head -1", "follow > x", "watch pwd | cat"):
        assert "cannot be redirected or piped" in cells.fails(f"%kafka {line}").message


def test_in_a_terminal_it_looks_as_in_the_shell(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(cells.ip), "kernel")
    result = cells.run("%kafka follow --since 0 --count 2")
    assert len(result) == 2 and cells.shown == []
    assert len(cells.printed.splitlines()) == 2


def test_watch_in_a_terminal_has_the_rows_of_its_last_run(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(cells.ip), "kernel")
    result = cells.run("%kafka watch --times 2 --interval 0.1 topics --columns name --limit 2")
    assert [row["name"] for row in result] == ["__transaction_state", "audit-log"]
    assert "audit-log" in cells.printed and cells.shown == []
