"""Times of logs whose clocks step back, and of snapshots that hold more than the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.errors import IncompleteLogError
from kshell.protocol.batches import write_batch
from kshell.sources.directory.files import scan
from kshell.sources.points import offset_at
from tests.builders import snapshot, value, write_log, write_snapshot


def written(directory: Path, *times: int, base_offset: int = 0) -> None:
    """A segment of batches of one record."""
    made = [
        write_batch([(None, value("NO_OP"))], base_offset=offset, epoch=1, timestamp=ms)
        for offset, ms in enumerate(times, base_offset)
    ]
    write_log(directory, *made, base_offset=base_offset)


def test_what_comes_after_a_later_record_does_not_count(tmp_path: Path) -> None:
    written(tmp_path, 500, 1000, 900)
    assert [offset_at(scan(str(tmp_path)), at) for at in (500, 950, 999, 1000)] == [0, 0, 0, 2]
    write_snapshot(tmp_path, snapshot([], timestamp=900), 3)
    assert offset_at(scan(str(tmp_path)), 950) == 0


def test_snapshots_count_where_the_log_lacks_what_they_hold(tmp_path: Path) -> None:
    written(tmp_path, 100, 200)
    written(tmp_path, 700, base_offset=20)
    for end, at in ((5, 400), (10, 300), (15, 600), (21, 250)):
        write_snapshot(tmp_path, snapshot([], timestamp=at), end)
    found = scan(str(tmp_path))
    assert [offset_at(found, at) for at in (200, 300, 600, 700)] == [1, 9, 14, 20]
    for at in (299, 350, 599, 699):
        with pytest.raises(IncompleteLogError):
            offset_at(found, at)
