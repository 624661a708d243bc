"""Streams as Spark drives them, without Spark: every record of a directory that grows once, whatever the triggers."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import SourceNotFoundError
from kshell.sources.directory import source
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.files.plan import Headers
from kshell.spark.options import UNLIMITED, parse
from kshell.spark.stream import directory_walk as stream_walk
from kshell.spark.stream import resume as stream_resume
from kshell.spark.stream.growth import growth_rows
from kshell.spark.stream.plan import bounds, latest, slices
from tests.builders import (
    FIXTURES,
    batch,
    control_batch,
    copy_of,
    leader_change,
    node_name,
    recorded,
    snapshot,
    value,
    write_epochs,
    write_log,
    write_snapshot,
)
from tests.spark.damaging import damaged_copy
from tests.spark.reading import COLUMNS, dumped, needs_arrow, rows
from tests.spark.stream.growing import Stream, growing

pytestmark = needs_arrow
ROLLED = FIXTURES / "4.2.1-rolled/controller-3002" / METADATA_DIRECTORY
LIMITS = (1, 500, 5000, UNLIMITED)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that looks damaged is looked at again at once."""
    monkeypatch.setattr(source, "PAUSE", 0)


def test_small_slices_are_for_streams_too(tmp_path: Path) -> None:
    write_log(tmp_path, control_batch([leader_change()]), *(no_ops(1, offset) for offset in range(1, 400)))
    options = parse({"path": str(tmp_path), "sliceBytes": "20000"})
    sizes = [sum(piece.cost() for piece in part) for part in slices(options, {}, latest(options, {}))]
    assert len(sizes) > 1
    assert max(sizes) < 1.25 * 20_000 + (1 << 14)


def no_ops(count: int, offset: int, epoch: int = 1) -> bytes:
    """A batch."""
    return batch([value("NO_OP")] * count, offset, epoch)


def offsets(made: list[dict[str, Any]]) -> list[int]:
    """Of rows of the log."""
    return [row["offset"] for row in made if not row["isSnapshot"]]


def found(made: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Kind and words of findings."""
    return [(row["kind"], row["reason"]) for row in made]


def grow(stream: Stream, pieces: Iterator[Path], rng: random.Random, share: float = 0.3) -> list[tuple[Any, ...]]:
    """Triggers now and then while a directory grows, then until nothing is new."""
    made = []
    for _ in pieces:
        if rng.random() < share:
            made += stream.records(rng.choice(LIMITS))
    count = -1
    while count != len(stream.batches):
        count = len(stream.batches)
        made += stream.records(3000)
    return made


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_every_recorded_directory_as_it_grew(node: Path, tmp_path: Path) -> None:
    rng, target = random.Random(str(node.parent.name)), tmp_path / "c" / METADATA_DIRECTORY
    stream, findings = Stream(tmp_path / "*"), Stream(tmp_path / "*", view="quarantine")
    made = grow(stream, growing(node / METADATA_DIRECTORY, target, rng), rng)
    assert made == dumped(node)[0]
    assert len(stream.batches) > 1
    assert findings.trigger() == []
    again = [tuple(row[name] for name in COLUMNS) for pair in stream.batches for row in stream.rows(*pair)]
    assert again == made, "a micro-batch that comes again has the same rows"


@pytest.mark.parametrize("seed", range(40))
def test_every_kind_of_damage(seed: int, tmp_path: Path) -> None:
    rng, place = random.Random(seed), tmp_path / "c" / METADATA_DIRECTORY
    source = damaged_copy(rng.choice([node for node in recorded() if _has_log(node)]), tmp_path / "source", rng)
    if not list(source.glob("*.log")):  # one of the copies that have lost them
        source = copy_of(recorded()[0], tmp_path / "whole")
    place.mkdir(parents=True)
    stream, quarantine = Stream(tmp_path / "c*"), Stream(tmp_path / "c*", view="quarantine")
    told: list[dict[str, Any]] = []

    def pieces() -> Iterator[Path]:
        for one in growing(source, place, rng):
            if rng.random() < 0.3:
                told.extend(quarantine.trigger())
            yield one

    made = grow(stream, pieces(), rng)
    told += quarantine.trigger()
    assert made == dumped(place)[0]
    wanted = {_place(row) for row in rows(place, view="quarantine") if row["kind"] != "torn"}
    places = [_place(row) for row in told]
    assert len(places) == len(set(places)), "nothing is told twice"
    # Damage after damage may be another one, when the second was not yet there while the first was looked at.
    assert set(places) >= wanted or {file for file, _, _ in places} == {file for file, _, _ in wanted}


@pytest.mark.soak
def test_damage_again_and_again(tmp_path: Path, soak_count: int) -> None:
    for seed in range(1000, 1000 + 200 * soak_count):
        test_every_kind_of_damage(seed, tmp_path / str(seed))


def _has_log(node: Path) -> bool:
    return bool(list((node / METADATA_DIRECTORY).glob("*.log")))


def _place(row: dict[str, Any]) -> tuple[str, int | None, int | None]:
    return Path(row["file"]).name, row["position"], row["offset"]


def test_a_limit_bounds_every_micro_batch_and_none_starves(tmp_path: Path) -> None:
    for name, count in (("a", 40), ("b", 3)):
        write_log(tmp_path / name, *(no_ops(5, 5 * number) for number in range(count)))
    size = len(no_ops(5, 0))
    stream = Stream(tmp_path / "*")
    first = stream.trigger(6 * size)
    assert {Path(row["file"]).parent.name for row in first} == {"a", "b"}
    count = len(first)
    while more := stream.trigger(6 * size):
        assert len(more) <= 7 * 5
        count += len(more)
    assert count == 43 * 5


def test_nothing_is_opened_where_nothing_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = copy_of(ROLLED.parent, tmp_path)
    stream = Stream(directory)
    assert stream.trigger()

    def opened(path: str) -> Any:
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr(stream_walk, "open_file", opened)
    monkeypatch.setattr(stream_resume, "open_file", opened)
    assert stream.trigger() == []


def test_headers_are_read_only_from_the_last_place_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = write_log(tmp_path / "c", *(no_ops(1, number) for number in range(2000)))
    stream = Stream(tmp_path / "c")
    assert len(stream.trigger()) == 2000
    asked: list[int] = []
    window = Headers.window

    def counting(self: Headers, position: int) -> bytes:
        asked.append(position)
        return window(self, position)

    monkeypatch.setattr(Headers, "window", counting)
    before = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(no_ops(1, 2000))
    assert offsets(stream.trigger()) == [2000]
    assert asked and min(asked) >= before


def test_a_torn_tail_waits(tmp_path: Path) -> None:
    whole, torn = no_ops(3, 0), no_ops(2, 3)
    segment = write_log(tmp_path / "c", whole, torn[:-1])
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert offsets(stream.trigger()) == [0, 1, 2]
    assert stream.trigger() == [] and findings.trigger() == []
    segment.write_bytes(whole + torn)
    assert offsets(stream.trigger()) == [3, 4] and findings.trigger() == []


def test_new_directories_are_found_and_gone_ones_keep_their_place(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "*" / "*")
    assert stream.trigger() == []
    one, two = tmp_path / "x" / "1", tmp_path / "x" / "2"
    write_log(one, no_ops(2, 0))
    assert offsets(stream.trigger()) == [0, 1]
    write_log(two, no_ops(1, 0))
    one.rename(tmp_path / "away")
    assert offsets(stream.trigger()) == [0]
    (tmp_path / "away").rename(one)
    assert stream.trigger() == []
    write_log(one, no_ops(2, 0), no_ops(1, 2))
    assert offsets(stream.trigger()) == [2]


def test_a_path_that_is_not_there_is_an_error_at_the_start_only(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "c")
    with pytest.raises(SourceNotFoundError):
        stream.trigger()
    write_log(tmp_path / "c", no_ops(1, 0))
    assert len(stream.trigger()) == 1
    shutil.rmtree(tmp_path / "c")
    assert stream.trigger() == []


# --- what is deleted before it is read -------------------------------------------------------------------------------


def vanished(tmp_path: Path) -> Path:
    """A log of which offsets 4 to 9 are deleted after 0 to 3 were read; two snapshots cover that."""
    directory = tmp_path / "c"
    for segment in directory.glob("*.log"):
        segment.unlink()
    write_log(directory, no_ops(2, 10), base_offset=10)
    write_log(directory, no_ops(2, 12), base_offset=12)
    write_snapshot(directory, snapshot([value("NO_OP")] * 3), 10)
    write_snapshot(directory, snapshot([value("NO_OP")] * 4), 12)
    return directory


@pytest.mark.parametrize(("snapshots", "given"), [("auto", [5]), ("all", [5, 6]), ("none", [])])
def test_a_vanished_stretch_is_a_finding_and_its_snapshot(tmp_path: Path, snapshots: str, given: list[int]) -> None:
    write_log(tmp_path / "c", no_ops(4, 0))
    stream = Stream(tmp_path / "c", snapshots=snapshots)
    findings = Stream(tmp_path / "c", view="quarantine", snapshots=snapshots)
    assert offsets(stream.trigger()) == [0, 1, 2, 3] and findings.trigger() == []
    vanished(tmp_path)
    made = stream.trigger()
    assert offsets(made) == [10, 11, 12, 13]
    of_snapshots = [row["file"] for row in made if row["isSnapshot"]]
    assert [of_snapshots.count(file) for file in sorted(set(of_snapshots))] == given
    assert found(findings.trigger()) == [("gap", "the segment starts at offset 10, 4 was expected")]
    assert stream.trigger() == [] and findings.trigger() == []


def test_a_micro_batch_whose_files_are_gone_says_so_when_it_comes_again(tmp_path: Path) -> None:
    write_log(tmp_path / "c", no_ops(4, 0))
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert stream.trigger() and findings.trigger() == []
    vanished(tmp_path)
    again = stream.rows({}, stream.places)
    assert offsets(again) == [] and len(again) == 5, "the oldest snapshot that covers them"
    assert found(findings.rows({}, findings.places)) == [
        ("gap", "offsets 0 to 3 were deleted before being read"),
    ]
    assert offsets(stream.trigger()) == [10, 11, 12, 13]
    shutil.rmtree(tmp_path / "c")
    assert found(findings.rows({}, findings.places)) == [("file", "all of it was deleted before being read")]


def test_segments_that_are_deleted_after_they_were_read_are_no_loss(tmp_path: Path) -> None:
    rng, target = random.Random(5), tmp_path / "c" / METADATA_DIRECTORY
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    made = []
    for _ in growing(ROLLED, target, rng):
        made += stream.records()
        assert findings.trigger() == []
        for segment in sorted(target.glob("*.log"))[:-1]:
            segment.unlink()
    assert len(list(target.glob("*.log"))) == 1
    assert made == dumped(ROLLED.parent)[0]


def test_a_snapshot_that_uses_up_the_limit_comes_alone(tmp_path: Path) -> None:
    write_log(tmp_path / "c", no_ops(4, 0))
    stream = Stream(tmp_path / "c")
    assert offsets(stream.trigger(1)) == [0, 1, 2, 3]
    vanished(tmp_path)
    assert len(stream.trigger(1)) == 5
    assert offsets(stream.trigger(1) + stream.trigger(1)) == [10, 11, 12, 13]
    assert stream.trigger(1) == []


# --- what is taken back ----------------------------------------------------------------------------------------------


def test_an_end_that_was_taken_back_is_a_finding_and_what_replaces_it_is_read(tmp_path: Path) -> None:
    kept = [control_batch([leader_change()], 0, 1), no_ops(2, 1), no_ops(2, 3)]
    write_log(tmp_path / "c", *kept, no_ops(2, 5), no_ops(2, 7))
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert len(stream.trigger()) == 9 and findings.trigger() == []
    write_log(tmp_path / "c", *kept, control_batch([leader_change(2)], 5, 2), no_ops(6, 6, 2))
    assert [(row["offset"], row["epoch"]) for row in stream.trigger()] == [(offset, 2) for offset in range(5, 12)]
    assert found(findings.trigger()) == [("truncated", "offsets 5 to 8 were taken back after being read")]
    write_epochs(tmp_path / "c", (1, 0), (2, 5))
    assert stream.trigger() == [] and findings.trigger() == []


def test_an_end_that_was_taken_back_over_several_segments(tmp_path: Path) -> None:
    write_log(tmp_path / "c", control_batch([leader_change()], 0, 1), no_ops(2, 1))
    write_log(tmp_path / "c", no_ops(2, 3), base_offset=3)
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert len(stream.trigger()) == 5 and findings.trigger() == []
    for segment in (tmp_path / "c").glob("*.log"):
        segment.unlink()
    write_log(tmp_path / "c", control_batch([leader_change()], 0, 1))
    write_log(tmp_path / "c", control_batch([leader_change(2)], 1, 2), no_ops(1, 2, 2), base_offset=1)
    assert [(row["offset"], row["epoch"]) for row in stream.trigger()] == [(1, 2), (2, 2)]
    assert found(findings.trigger()) == [("truncated", "offsets 1 to 4 were taken back after being read")]


def test_a_shorter_file_is_an_end_that_was_taken_back(tmp_path: Path) -> None:
    write_log(tmp_path / "c", no_ops(2, 0), no_ops(1, 2))
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert len(stream.trigger()) == 3 and findings.trigger() == []
    write_log(tmp_path / "c", no_ops(2, 0))
    assert stream.trigger() == []
    assert found(findings.trigger()) == [("truncated", "offset 2 was taken back after being read")]
    write_log(tmp_path / "c", no_ops(2, 0), no_ops(2, 2))
    assert offsets(stream.trigger()) == [2, 3]


def test_the_same_log_in_other_segments_goes_on(tmp_path: Path) -> None:
    write_log(tmp_path / "c", no_ops(2, 0), no_ops(2, 2))
    stream = Stream(tmp_path / "c")
    assert len(stream.trigger()) == 4
    write_log(tmp_path / "c", no_ops(2, 0))
    write_log(tmp_path / "c", no_ops(2, 2), no_ops(2, 4), base_offset=2)
    assert offsets(stream.trigger()) == [4, 5]


def test_another_log_in_its_place_is_read_as_a_whole(tmp_path: Path) -> None:
    write_log(tmp_path / "c", no_ops(2, 0))
    stream, findings = Stream(tmp_path / "c"), Stream(tmp_path / "c", view="quarantine")
    assert len(stream.trigger()) == 2 and findings.trigger() == []
    write_log(tmp_path / "c", batch([value("TOPIC", name="t")] * 2, 0), no_ops(1, 2))
    assert offsets(stream.trigger()) == [0, 1, 2]
    assert [kind for kind, _ in found(findings.trigger())] == ["truncated"]


# --- snapshots, bounds, beginnings -----------------------------------------------------------------------------------


def test_snapshots_are_given_once_and_when_they_are_whole(tmp_path: Path) -> None:
    directory, raw = tmp_path / "c", snapshot([value("NO_OP")] * 3)
    write_snapshot(directory, raw[:-5], 4)
    stream = Stream(directory)
    assert stream.trigger() == []
    write_snapshot(directory, raw, 4)
    assert len(stream.trigger()) == 5 and stream.trigger() == []
    write_snapshot(directory, snapshot([value("NO_OP")]), 6)
    assert {Path(row["file"]).name[:20] for row in stream.trigger()} == {f"{6:020}"}
    cut = write_snapshot(directory, raw[:-5], 8)
    os.utime(cut, (0, 0))
    assert len(stream.trigger()) == 4, "nobody is copying it any more"


def test_available_now_ends_where_files_ended_when_it_began(tmp_path: Path) -> None:
    first = write_log(tmp_path / "a", no_ops(2, 0), no_ops(2, 2))
    stream = Stream(tmp_path / "*")
    within = bounds(stream.options)
    with first.open("ab") as file:
        file.write(no_ops(2, 4))
    write_log(tmp_path / "a", no_ops(2, 6), base_offset=6)
    write_log(tmp_path / "b", no_ops(2, 0))
    made = []
    while more := stream.trigger(1, within):
        made += more
    assert offsets(made) == [0, 1, 2, 3] and len(stream.batches) == 2
    assert len(stream.trigger()) == 6


def test_a_torn_tail_is_not_behind(tmp_path: Path) -> None:
    """It is the usual end of a log that a server writes."""
    directory, size = tmp_path / METADATA_DIRECTORY, len(no_ops(2, 0))
    stream = Stream(tmp_path)
    write_log(directory, no_ops(2, 0), no_ops(2, 2)[:40])
    stream.trigger()
    assert [row[1:] for row in growth_rows(stream.options, {}, stream.places)] == [(2, size, 0, True)]
    write_log(directory, no_ops(2, 0), no_ops(2, 2), no_ops(2, 4)[:40])
    assert [row[1:] for row in growth_rows(stream.options, stream.places, stream.places)] == [(2, 0, size + 40, False)]


def test_growth_has_a_row_for_each_directory(tmp_path: Path) -> None:
    one, two = (write_log(tmp_path / name, no_ops(2, 0), no_ops(2, 2)) for name in "ab")
    stream = Stream(tmp_path / "*")
    size = len(no_ops(2, 0))
    stream.trigger(2 * size)
    made = list(growth_rows(stream.options, {}, stream.places))
    assert made == [(str(path.parent), 2, size, size, True) for path in (one, two)]
    before = stream.places
    stream.trigger()
    with two.open("ab") as file:
        file.write(no_ops(1, 4))
    assert list(growth_rows(stream.options, before, stream.places)) == [
        (str(one.parent), 4, size, 0, True),
        (str(two.parent), 4, size, len(no_ops(1, 4)), True),
    ]
    write_snapshot(tmp_path / "c", snapshot([]), 77)
    before = stream.places
    stream.trigger()
    assert [(row[1], row[2], row[4]) for row in growth_rows(stream.options, before, stream.places)] == [
        (4, 0, False), (5, len(no_ops(1, 4)), True), (77, 0, True)
    ]  # fmt: skip
