"""Questions about the past before damage: they are answered as if the log were whole, whatever comes after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kshell.engine import plain
from kshell.engine.execution import prepare
from kshell.errors import EXIT_DATA, EXIT_OK
from kshell.sources import past
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import FIXTURES, LOG, batches, copy_of, flip
from tests.commands.shell import opened, rows, run

NODE = FIXTURES / "4.3.1/controller-3001"
QUESTIONS = (
    "timeline orders-s10-0",
    "timeline orders-s10",
    "why orders-s10-0",
    "when topics --where 'partitions > 0'",
    "blame /image/features",
    "log /image/topics/byName/orders-s10",
    "sql 'SELECT * FROM history_topics ORDER BY ALL'",
    "sql 'SELECT * FROM history_partitions ORDER BY ALL'",
    "sql 'SELECT * FROM config_changes ORDER BY ALL'",
)


def damaged(folder: Path, *offsets: int) -> Path:
    """A copy of the recorded directory in which the batches at these offsets are damaged."""
    metadata = copy_of(NODE, folder)
    log = metadata / LOG
    for batch in batches(log.read_bytes()):
        if any(batch.base_offset <= offset <= batch.last_offset for offset in offsets):
            flip(log, batch.position + 61)
    return metadata


@pytest.mark.parametrize("line", QUESTIONS)
@pytest.mark.parametrize("point", [100, 200, 330])
def test_as_of_a_point_before_damage(tmp_path: Path, line: str, point: int) -> None:
    whole, copy = opened(NODE / METADATA_DIRECTORY), opened(damaged(tmp_path, 340))
    calls = [prepare(session, f"{line} --as-of {point}") for session in (whole, copy)]
    expected, found = [plain.value(call.run()) for call in calls if call is not None]
    assert found == expected
    assert all(call is not None and call.session.exit_code() == EXIT_OK for call in calls)


@pytest.mark.parametrize("line", QUESTIONS)
def test_between_two_damaged_batches(tmp_path: Path, line: str) -> None:
    """Both times the history begins with a snapshot: 202 follows the first damage, 432 the second."""
    first = opened(damaged(tmp_path / "first", 150))
    both = opened(damaged(tmp_path / "both", 150, 340))
    assert plain.value(run(both, f"{line} --as-of 300")) == plain.value(run(first, f"{line} --as-of 300"))


def test_within_the_damage_nothing_of_later_snapshots_is_said(tmp_path: Path) -> None:
    call = prepare(opened(damaged(tmp_path, 340)), "timeline orders-s10-0 --as-of 400")
    assert call is not None
    found = plain.value(call.run())
    assert found and all(row["fromOffset"] < 340 for row in found)
    assert call.session.exit_code() == EXIT_DATA


def test_the_log_before_damage_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(damaged(tmp_path, 340))
    session.travels()
    made: list[int] = []
    begin = past._Recorded.__init__

    def counted(self: past._Recorded, *args: Any) -> None:
        made.append(1)
        begin(self, *args)

    monkeypatch.setattr(past._Recorded, "__init__", counted)
    for point in (300, 301, 312):
        rows(session, f"timeline orders-s10-0 --as-of {point}")
    assert len(made) == 2, "the log as a whole, and the part before the damage"


def test_tables_of_the_past_say_that_they_begin_after_damage(tmp_path: Path) -> None:
    session = opened(damaged(tmp_path, 340))
    rows(session, "sql 'SELECT * FROM history_topics, history_brokers'")
    said = [note for note in session.notes() if "damaged or incomplete" in note]
    assert len(said) == 1 and "before offset 432" in said[0]
