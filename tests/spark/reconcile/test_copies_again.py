"""Copies that are looked at again and again: what is said of them is what a first look would say."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import (
    batch,
    batches,
    copy_of,
    recorded,
    snapshot,
    uuid,
    value,
    write_epochs,
    write_log,
    write_snapshot,
)
from tests.made_logs import log, record
from tests.spark.damaging import damaged_copy, undecodable
from tests.spark.reading import needs_arrow
from tests.spark.reading import rows as records
from tests.spark.reconcile.nodes import names, node, read, spoilt, states
from tests.spark.reconcile.tables import Tables

pytestmark = needs_arrow


def rows(tables: Tables) -> dict[str, Any]:
    """What is said of each copy, but for reasons and with whom it was compared."""
    assert tables.last is not None
    told = ("state", "startOffset", "endOffset", "lastEpoch", "sameFrom", "sameTo", "divergesAt")
    return {
        Path(row["copy"]).parent.name: [row[name] for name in told] + [sorted(row["damage"])]
        for row in tables.last.copies
    }


def same_again(tables: Tables, *paths: Path) -> None:
    """Where nothing is new, nothing is told."""
    before, said = tables.checkpoint, rows(tables)
    made = tables.step(*paths)
    assert (made.slices, made.findings, made.ranges, made.restart) == ((), (), (), False)
    assert tables.checkpoint == before
    assert rows(tables) == said


@pytest.mark.parametrize("seed", range(15))
def test_rows_of_copies_are_those_of_a_first_look(seed: int, tmp_path: Path) -> None:
    """Each grows for itself, in segments of its own; one may stand still for long."""
    rng = random.Random(seed)
    epochs = sorted(rng.choice((1, 1, 2, 3)) for _ in range(80))
    parts, ends, tables, committed = log(*epochs), [0] * 4, Tables(), 0
    for _ in range(9):
        for number in range(4):
            if rng.random() < 0.6 or not ends[number]:
                ends[number] = rng.randrange(max(ends[number], 1), 81)
                directory, per_segment = tmp_path / f"node-{number}" / METADATA_DIRECTORY, 7 + number
                for start in range(0, ends[number], per_segment):
                    write_log(directory, *parts[start : min(ends[number], start + per_segment)], base_offset=start)
                (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={number}\n")
        there = [tmp_path / f"node-{number}" for number in range(4)]
        rng.shuffle(there)
        made = tables.step(*there, cut=rng.choice((300, 4000)))
        first = read(*there)
        assert not made.restart
        assert rows(tables) == rows(first)
        assert tables.log == first.log
        assert first.last is not None
        proven = made.cluster.pop("committedOffset") or 0, first.last.cluster.pop("committedOffset") or 0
        assert max(*proven, committed) == proven[0], "what was proven once stays so"
        committed = proven[0]
        assert made.cluster == first.last.cluster
        same_again(tables, *there)


def test_one_that_stays_behind_stays_so(tmp_path: Path) -> None:
    one, two, three = (node(tmp_path, number, log(*[1] * end)) for number, end in ((1, 9), (2, 4), (3, 9)))
    tables = read(one, two, three)
    for end in (14, 20, 26):
        node(tmp_path, 1, log(*[1] * end))
        node(tmp_path, 3, log(*[1] * end))
        made = tables.step(one, two, three)
        assert states(tables) == {"node-1": "reference", "node-2": "behind", "node-3": "same"}
        assert rows(tables)["node-2"][1:6] == [0, 4, 1, 0, 4]
        assert made.cluster["committedOffset"] == end, "two of three voters have it"
        same_again(tables, one, two, three)
    node(tmp_path, 2, log(*[1] * 7))  # it grows, and does not reach what the others were read from
    tables.step(one, two, three)
    assert rows(tables)["node-2"][:6] == ["behind", 0, 7, 1, 0, 7]
    same_again(tables, one, two, three)
    node(tmp_path, 2, [*log(*[1] * 7), *[record(at, 1, "other") for at in range(7, 9)]])
    tables.step(one, two, three)
    assert states(tables)["node-2"] == "diverged", "and then it has something else"
    assert not any(name.startswith("other") for name in names(tables))
    same_again(tables, one, two, three)


def test_one_that_goes_and_one_that_comes_back(tmp_path: Path) -> None:
    one, two, three = (node(tmp_path, number, log(*[1] * 9)) for number in (1, 2, 3))
    tables = read(one, two, three)
    node(tmp_path, 1, log(*[1] * 12))
    tables.step(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "behind"}
    made = tables.step(two, three)
    assert states(tables) == {"node-2": "reference", "node-3": "same"}
    assert made.cluster["endOffset"] == 12 and made.cluster["copies"] == 2
    node(tmp_path, 3, log(*[1] * 15))
    tables.step(one, two, three)
    assert states(tables) == {"node-1": "behind", "node-2": "behind", "node-3": "reference"}
    assert tables.offsets == list(range(15)) and tables.restarts == 0 and not tables.findings


def test_what_was_proven_to_be_committed_stays_so(tmp_path: Path) -> None:
    """Whichever copies are there later: a new one, a lone one that is behind, one without records."""
    one, two, three = (node(tmp_path, number, log(*[1] * 9)) for number in (1, 2, 3))
    tables = read(one, two, three)
    assert tables.last is not None and tables.last.cluster["committedOffset"] == 9
    late, empty = node(tmp_path, 7, log(*[1] * 5)), node(tmp_path, 8, [])
    for copies in ((one, late), (late,), (one,), (empty,), (late, empty), (one, two, late)):
        made = tables.step(*copies)
        assert (made.restart, made.cluster["committedOffset"]) == (False, 9), copies
    node(tmp_path, 1, log(*[1] * 12))
    node(tmp_path, 2, log(*[1] * 12))
    assert tables.step(one, two, late).cluster["committedOffset"] == 12


def test_a_tail_that_was_left_behind_is_the_same_each_time(tmp_path: Path) -> None:
    one = node(tmp_path, 1, [*log(*[1] * 5), *log(2, 2, start=5)])
    two = node(tmp_path, 2, log(*[1] * 12))
    tables = read(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "diverged"}
    for end in (8, 15):
        node(tmp_path, 1, [*log(*[1] * 5), *log(*[2] * (end - 5), start=5)])
        tables.step(one, two)
        assert rows(tables)["node-2"][0] == "diverged" and rows(tables)["node-2"][6] == 5
        same_again(tables, one, two)
    node(tmp_path, 2, log(*[1] * 5))
    tables.step(one, two)
    assert rows(tables)["node-2"][:6] == ["behind", 0, 5, 1, 0, 5]
    node(tmp_path, 2, [*log(*[1] * 5), *log(*[2] * 10, start=5)])
    tables.step(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "same"}
    assert tables.offsets == list(range(15)) and tables.restarts == 0


# --- damage that goes ------------------------------------------------------------------------------------------------


def test_a_copy_that_was_mended(tmp_path: Path) -> None:
    parts = log(*[1] * 12)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts)
    file = spoilt(two, 4)
    tables = read(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "damaged"} and len(tables.findings) == 1
    spoilt(two, 7)
    tables.step(one, two)
    assert len(tables.findings) == 1, "only what is new is read"
    node(tmp_path, 1, log(*[1] * 14))
    file.write_bytes(b"".join(parts))
    tables.step(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "behind"}
    assert rows(tables)["node-2"][-1] == [] and len(tables.findings) == 1
    assert tables.restarts == 0 and tables.offsets == list(range(14))
    same_again(tables, one, two)


def test_what_was_missing_and_is_mended_begins_anew(tmp_path: Path) -> None:
    parts = log(*[1] * 12)
    one = node(tmp_path, 1, parts)
    file = spoilt(one, 4)
    tables = read(one)
    assert tables.offsets == [at for at in range(12) if at != 4]
    assert rows(tables)["node-1"][-1] == [row for row in rows(tables)["node-1"][-1] if str(file) in row] != []
    assert [row["isDamaged"] for row in tables.last.files] == [True] if tables.last else False
    same_again(tables, one)
    node(tmp_path, 1, log(*[1] * 14))
    made = tables.step(one)
    assert made.restart and tables.offsets == list(range(14)) and tables.findings == []
    assert [tuple(era) for era in tables.ranges] == [(None, 0, 14)]
    same_again(tables, one)


def test_what_was_missing_and_another_copy_has_begins_anew(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(*[1] * 12))
    spoilt(one, 4)
    tables = read(one)
    two = node(tmp_path, 2, log(*[1] * 8))
    made = tables.step(one, two)
    assert made.restart and tables.offsets == list(range(12))
    assert states(tables) == {"node-1": "damaged", "node-2": "behind"} or states(tables)["node-1"] == "reference"
    same_again(tables, one, two)


def test_tables_that_are_begun_anew_have_no_less_than_before(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(*[1] * 12))
    spoilt(one, 4)
    tables = read(one)
    two = node(tmp_path, 2, log(*[1] * 8))
    made = tables.step(one, two, until=8)  # only the other one is new
    assert made.restart and tables.offsets == list(range(12))
    same_again(tables, one, two)


def test_a_lone_copy_that_moved_with_its_damage(tmp_path: Path) -> None:
    one = node(tmp_path / "before", 1, log(*[1] * 12))
    spoilt(one, 4)
    tables = read(one)
    before = tables.offsets
    moved = tmp_path / "after" / one.name
    moved.parent.mkdir()
    made = tables.step(one.rename(moved))
    assert tables.offsets == before == [at for at in range(12) if at != 4]
    assert made.restart and tables.restarts == 1, "headers alone show no damage"
    same_again(tables, moved)


def test_other_damage_at_the_same_place_is_told_again(tmp_path: Path) -> None:
    parts = log(*[1] * 12)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts)
    file = spoilt(two, 4)
    tables = read(one, two)
    file.write_bytes(b"".join(parts))
    tables.step(one, two)
    assert states(tables)["node-2"] == "same"
    spoilt(two, 4)
    node(tmp_path, 3, parts)  # all of it is read once more
    tables.step(one, two, tmp_path / "node-3")
    assert states(tables)["node-2"] == "damaged" and len(tables.findings) == 2


def test_a_snapshot_that_was_mended(tmp_path: Path) -> None:
    one, two = (node(tmp_path, number, log(*[1] * 12)) for number in (1, 2))
    raw = snapshot([value("TOPIC", name="s", topicId=uuid(99))])
    path = write_snapshot(two / METADATA_DIRECTORY, raw[:-1] + bytes([raw[-1] ^ 1]), 6)
    tables = read(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "damaged"}
    same_again(tables, one, two)
    path.write_bytes(raw)
    tables.step(one, two)
    assert states(tables) == {"node-1": "reference", "node-2": "same"} and len(tables.findings) == 1
    same_again(tables, one, two)


def test_a_damaged_segment_that_retention_deletes(tmp_path: Path) -> None:
    parts = log(*[1] * 20)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:10])
    write_log(two / METADATA_DIRECTORY, *parts[10:], base_offset=10)
    file = spoilt(two, 4)
    tables = read(one, two)
    assert states(tables)["node-2"] == "damaged"
    file.unlink()
    tables.step(one, two)
    assert states(tables)["node-2"] == "same" and rows(tables)["node-2"][1] == 10
    assert tables.restarts == 0 and tables.offsets == list(range(20))


# --- other clusters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [6, 15, 24])
def test_what_nobody_can_decode_stays_out_where_another_copy_grows_behind(behind: int, tmp_path: Path) -> None:
    parts = log(*[1] * 30)
    end = batches(b"".join(parts))[-1].last_offset + 1
    more = [undecodable(batch([value("NO_OP")] * 3, end, 1)), batch([value("NO_OP")] * 3, end + 3, 1)]
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:6])
    tables = read(one, two)
    node(tmp_path, 1, [*parts, *more])
    node(tmp_path, 2, parts[:behind])
    tables.step(one, two)
    assert tables.offsets == [*range(end), *range(end + 3, end + 6)]


def snapshotted(directory: Path, end: int, epoch: int, *topics: int) -> Path:
    """With a snapshot that knows topics by their numbers."""
    values = [value("TOPIC", name=f"t-{one}", topicId=uuid(1000 + one)) for one in topics]
    write_snapshot(directory / METADATA_DIRECTORY, snapshot(values, epoch), end, epoch)
    return directory


def test_one_without_an_offset_in_common_gives_no_row_unless_it_shows_whose_it_is(tmp_path: Path) -> None:
    ours = [node(tmp_path, number, log(*[1] * 9)) for number in (1, 2)]
    far = node(tmp_path, 3, log(*[4] * 9, start=30, name="b"), start=30)
    snapshotted(far, 30, 4, 1, 2)
    tables = read(*ours, far)
    assert states(tables) == {"node-1": "reference", "node-2": "same", "node-3": "not-compared"}
    assert tables.offsets == list(range(9)) and tables.last is not None
    assert "none of its records is read" in tables.last.copies[2]["reason"]
    same_again(tables, *ours, far)
    snapshotted(far, 30, 4, 1, 2)
    for directory in ours:
        write_log(directory / METADATA_DIRECTORY, *log(*[1] * 9), *log(*[4] * 25, start=9))
    tables.step(*ours, far)
    assert states(tables)["node-3"] == "not-compared"
    tables.step(*ours, far)
    assert states(tables)["node-3"] == "diverged", "the tables go so far that they can be compared"
    assert tables.offsets == list(range(34)) and not any(name.startswith("b") for name in names(tables))
    same_again(tables, *ours, far)


def test_one_that_is_far_ahead_and_knows_the_same_topics(tmp_path: Path) -> None:
    ours = [snapshotted(node(tmp_path, number, log(*[1] * 9)), 5, 1, 1, 2) for number in (1, 2)]
    far = snapshotted(node(tmp_path, 3, log(*[4] * 9, start=30), start=30), 30, 4, 2, 3)
    tables = read(*ours, far)
    assert states(tables)["node-3"] == "reference"
    assert tables.offsets == [*range(9), *range(30, 39)]
    assert [tuple(era)[1:] for era in tables.ranges] == [(0, 9), (30, 39)]
    same_again(tables, *ours, far)


def test_a_clone_that_went_its_own_way_after_what_was_committed(tmp_path: Path) -> None:
    """It had an election of its own; but what it does not have was held by most voters."""
    shared = log(*[1] * 5)
    ours = [node(tmp_path, number, [*shared, *log(*[2] * 5, start=5)]) for number in (1, 2)]
    clone = node(tmp_path, 3, [*shared, *log(*[3] * 9, start=5, name="b")])
    tables = read(*ours, clone)
    assert states(tables) == {"node-1": "reference", "node-2": "same", "node-3": "diverged"}
    assert tables.last is not None and "no election explains it" in tables.last.copies[2]["reason"]
    assert tables.offsets == list(range(10)) and not any(name.startswith("b") for name in names(tables))
    same_again(tables, *ours, clone)


def test_of_two_that_contradict_the_one_that_the_tables_have(tmp_path: Path) -> None:
    one, other = node(tmp_path, 1, log(*[1] * 6)), node(tmp_path, 2, log(*[1] * 9, name="b"))
    tables = read(one)
    made = tables.step(one, other)
    assert not made.restart and states(tables) == {"node-1": "reference", "node-2": "diverged"}
    assert names(read(one, other))[0] == "b-1", "without tables, Raft's rules say it"
    more = node(tmp_path, 3, log(*[1] * 9, name="b"))
    assert tables.step(one, other, more).restart, "most copies say something else"
    assert names(tables) == [f"b-{at}" for at in range(1, 9)]


def test_epochs_beside_a_log_do_not_make_a_stale_tail_good(tmp_path: Path) -> None:
    one = node(tmp_path, 1, [*log(*[1] * 5), *log(*[2] * 6, start=5)])
    write_epochs(one / METADATA_DIRECTORY, (1, 0), (2, 5))
    two = node(tmp_path, 2, log(*[1] * 9))
    tables = read(one, two)
    spoilt(one, 5)
    node(tmp_path, 3, log(*[1] * 3))  # all is read again
    tables.step(one, two, tmp_path / "node-3")
    assert tables.restarts == 0 and tables.offsets == list(range(11))
    assert names(tables) == [f"a-{at}" for at in (1, 2, 3, 4, 6, 7, 8, 9, 10)]


# --- files -----------------------------------------------------------------------------------------------------------

VERDICT = (
    "size", "nameOffset", "nameEpoch", "firstOffset", "lastOffset", "firstEpoch", "lastEpoch", "records", "goodBytes",
    "crcFailures", "isDamaged", "tornAt",
)  # fmt: skip


def verdicts(rows: Iterable[dict[str, Any]], *, of: str = "") -> dict[str, Any]:
    """File -> what its row says, without what is told of others only."""
    return {row["file"]: tuple(row[name] for name in VERDICT) for row in rows if row["file"].endswith(of)}


@pytest.mark.parametrize("seed", range(30))
def test_files_are_told_as_the_data_source_tells_them(seed: int, tmp_path: Path) -> None:
    """Of segments; at once, and from where they were left."""
    rng = random.Random(seed)
    chosen = rng.choice(recorded())
    directory = damaged_copy(chosen, tmp_path, rng) if seed % 3 else copy_of(chosen, tmp_path)
    expected = verdicts(records(directory, view="files", snapshots="all"), of=".log")
    last = max((path for path in expected), default="")
    once, grown = Tables(), Tables()
    once.step(directory)
    held: dict[str, Any] = {}
    raw = Path(last).read_bytes() if last else b""
    for end in (len(raw) // 3, len(raw) * 2 // 3, len(raw)):
        if last:
            Path(last).write_bytes(raw[:end])
        grown.step(directory)
        assert grown.last is not None
        held |= {row["file"]: row for row in grown.last.files}
    assert once.last is not None
    found = verdicts(once.last.files, of=".log")
    assert found == expected
    assert verdicts(held.values(), of=".log") == found


def test_a_damaged_snapshot_is_a_damaged_file_each_time(tmp_path: Path) -> None:
    one, two = (node(tmp_path, number, log(*[1] * 12)) for number in (1, 2))
    raw = snapshot([value("TOPIC", name="s", topicId=uuid(99))])
    path = str(write_snapshot(two / METADATA_DIRECTORY, raw[:-1] + bytes([raw[-1] ^ 1]), 6))
    tables = Tables()
    for end in (12, 14, 16):
        node(tmp_path, 1, log(*[1] * end))
        tables.step(one, two)
        assert tables.last is not None
        told = {row["file"]: row for row in tables.last.files}
        assert told[path]["isDamaged"] and told[path]["crcFailures"] == 1 and len(told[path]["findings"]) == 1


@pytest.mark.parametrize("kind", ["empty", "zeros", "garbage", "first batch damaged", "a segment more"])
def test_a_log_that_does_not_begin_as_it_is_called_is_told_the_same_again(kind: str, tmp_path: Path) -> None:
    raw = {"empty": b"", "zeros": bytes(4096), "garbage": b"hello" * 50}
    one = node(tmp_path, 1, [raw[kind]] if kind in raw else log(*[1] * 8))
    if kind not in raw:
        spoilt(one, 0)
    if kind == "a segment more":
        write_log(one / METADATA_DIRECTORY, *log(*[1] * 4, start=8), base_offset=8)
    tables = Tables()
    first = tables.step(one)
    assert first.copies[0]["startOffset"] == (None if kind in raw else 1)
    again = tables.step(one)
    assert (again.copies, again.slices, again.findings, again.ranges) == (first.copies, (), (), ())
    assert again.checkpoint == first.checkpoint


def test_much_damage_is_told_once(tmp_path: Path) -> None:
    """All that follows a later epoch is damage, and none of it is a place to go on from."""
    later, earlier = log(*[3] * 4), log(*[1] * 304)
    one = node(tmp_path, 1, [*later, *earlier[len(later) :]])
    tables = Tables()
    first = tables.step(one)
    assert len(first.findings) > 200 and len(first.copies[0]["damage"]) == 100
    again = tables.step(one)
    assert (again.copies, again.slices, again.findings, again.ranges) == (first.copies, (), (), ())
    assert again.checkpoint == first.checkpoint


@pytest.mark.parametrize("seed", range(40))
def test_a_second_look_without_news_tells_the_same(seed: int, tmp_path: Path) -> None:
    """Whatever is damaged: else each run would make a step, and more rows of ``quarantine``."""
    rng = random.Random(seed)
    cluster = rng.choice(sorted({one.parent for one in recorded()}))
    nodes = [one for one in recorded() if one.parent == cluster]
    nodes = rng.sample(nodes, rng.randint(1, len(nodes)))
    copies = [
        (damaged_copy(one, tmp_path, rng) if rng.random() < 0.7 else copy_of(one, tmp_path)).parent for one in nodes
    ]
    tables = Tables()
    first = tables.step(*copies, cut=1 << rng.randint(10, 20))
    reached = tables.checkpoint
    again = tables.step(*copies)
    assert (again.slices, again.findings, again.ranges, again.restart) == ((), (), (), False)
    assert again.copies == first.copies and tables.checkpoint == reached
