"""Copies that become shorter, lose files or get them back: what is said of them is what a first look would say."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.steps.cluster_changes import change_of
from kshell.spark.steps.planning import clusters, reconcile_all
from kshell.spark.tables.steps import ClusterState, WarehouseState
from tests.builders import FIXTURES, batches, copy_of, flip, snapshot, uuid, value, write_log, write_snapshot
from tests.made_logs import log, record
from tests.spark.reading import needs_arrow
from tests.spark.reconcile.nodes import names, node, read, spoilt
from tests.spark.reconcile.tables import Tables

pytestmark = needs_arrow

TOLD = ("state", "startOffset", "endOffset", "lastEpoch", "sameFrom", "sameTo", "divergesAt", "comparedWith", "reason")


def told(tables: Tables) -> dict[str, tuple[Any, ...]]:
    """What is said of each copy."""
    assert tables.last is not None
    return {Path(row["copy"]).parent.name: tuple(row[name] for name in TOLD) for row in tables.last.copies}


def damage(tables: Tables) -> list[list[str]]:
    """The damage of each copy."""
    assert tables.last is not None
    return [sorted(row["damage"]) for row in tables.last.copies]


def as_a_first_look(tables: Tables, *paths: Path) -> dict[str, tuple[Any, ...]]:
    """One step: the rows are those of new tables, and the step after it has nothing to do."""
    tables.step(*paths)
    first = read(*paths)
    assert (told(tables), damage(tables)) == (told(first), damage(first))
    reached, said = tables.checkpoint, told(tables)
    again = tables.step(*paths)
    assert (again.slices, again.findings, again.ranges, again.restart) == ((), (), (), False)
    assert tables.checkpoint == reached and told(tables) == said
    return said


def cut(directory: Path, *, size: int) -> None:
    """An older copy of a node: its segment ends earlier, and it has no snapshot."""
    for file in directory.glob("*.checkpoint"):
        file.unlink()
    os.truncate(directory / f"{0:020d}.log", size)


def step(source: Path, state: WarehouseState) -> WarehouseState | None:
    """The state after a step; ``None``: nothing is new. Without Spark."""
    (reconciled,) = reconcile_all(clusters([f"{source}/*"]), state)
    change = change_of(reconciled, state)
    if change is None:
        return None
    return WarehouseState(1, {change.cluster_id: ClusterState(reconciled.checkpoint._asdict())})


# --- recorded clusters -----------------------------------------------------------------------------------------------


def test_a_node_whose_copy_becomes_older(tmp_path: Path) -> None:
    copies = [
        copy_of(FIXTURES / "3.9.2" / name, tmp_path) for name in ("broker-0", "controller-3000", "controller-3001")
    ]
    nodes = [copy.parent for copy in copies]
    tables = read(*nodes)
    assert told(tables)["controller-3001"][0] == "same"
    cut(copies[2], size=30000)
    said = as_a_first_look(tables, *nodes)
    peer = str(copies[0])
    assert said["controller-3001"] == ("behind", 0, 379, 3, 0, 379, None, peer, None)


def test_a_copy_that_the_reference_does_not_reach_and_nothing_new(tmp_path: Path) -> None:
    copies = [copy_of(FIXTURES / "4.2.1-rolled" / f"controller-{number}", tmp_path) for number in (3000, 3001, 3002)]
    for file in copies[1].iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) >= 416:
            file.unlink()
    said = as_a_first_look(Tables(), *[copy.parent for copy in copies])
    assert said["controller-3000"][:2] == ("reference", 453)
    assert said["controller-3001"] == ("behind", 293, 416, 4, 293, 416, None, str(copies[2]), None)
    state = step(tmp_path, WarehouseState())
    assert state is not None and step(tmp_path, state) is None, "a run would not even start Spark"


# --- one thing after another -----------------------------------------------------------------------------------------


def segments(folder: Path, number: int, parts: list[bytes], start: int, end: int, snapshots: int) -> Path:
    """A node's log between two offsets, in segments whose borders no other node has, and snapshots from its start on.

    All snapshots know one topic: so it is known that copies without an offset in common are of one cluster.
    """
    directory, per_segment = folder / f"node-{number}" / METADATA_DIRECTORY, 7 + number
    directory.mkdir(parents=True, exist_ok=True)
    for file in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]:
        file.unlink()
    (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={number}\n")
    start -= start % per_segment
    for first in range(start, end, per_segment):
        write_log(directory, *parts[first : min(end, first + per_segment)], base_offset=first)
    known = [value("TOPIC", name="known", topicId=uuid(999))]
    for offset in range(start, end, 10)[: max(snapshots, 1 if start else 0)]:
        epoch = batches(parts[offset - 1])[0].epoch if offset else 0
        write_snapshot(directory, snapshot(known, epoch), offset, epoch)
    return directory.parent


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_to_copies(seed: int, tmp_path: Path) -> None:
    """They grow, shrink, lose snapshots or their first segments and get them back, in any order; each by itself."""
    rng = random.Random(seed)
    epochs = sorted(rng.choice((1, 1, 2, 3)) for _ in range(80))
    parts, tables = log(*epochs), Tables()
    bounds = {number: (rng.choice((0, 0, 15)), rng.randrange(30, 60), 2) for number in range(3 + seed % 2)}
    for _ in range(14):
        nodes = [segments(tmp_path, number, parts, *bound) for number, bound in bounds.items()]
        as_a_first_look(tables, *nodes)
        number = rng.randrange(len(bounds))
        start, end, snapshots = bounds[number]
        edit = rng.choice(("grow", "shrink", "lose old", "back", "snapshots", "all grow"))
        if edit == "grow":
            end = rng.randrange(end, 81)
        elif edit == "shrink":
            end = rng.randrange(start + 1, end + 1)
        elif edit == "lose old":
            start = rng.randrange(start, end)
        elif edit == "back":
            start = rng.randrange(start + 1)
        elif edit == "snapshots":
            snapshots = rng.randrange(8)
        bounds[number] = (start, end, snapshots)
        if edit == "all grow":
            bounds = {number: (start, rng.randrange(end, 81), more) for number, (start, end, more) in bounds.items()}


def test_one_that_is_behind_and_grows_where_the_reference_has_nothing(tmp_path: Path) -> None:
    """Only another copy, which is not the one ahead and does not grow, has the same offsets."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts[25:], start=25), node(tmp_path, 2, parts[:30])
    three = node(tmp_path, 3, parts[:10])
    tables = read(one, two, three)
    node(tmp_path, 3, parts[:20])
    said = as_a_first_look(tables, one, two, three)
    assert said["node-3"][:6] == ("behind", 0, 20, 1, 0, 20)
    node(tmp_path, 3, [*parts[:21], record(21, 1, "other"), record(22, 1, "other")])
    said = as_a_first_look(tables, one, two, three)
    assert said["node-3"][0] == "diverged" and said["node-3"][6] == 21
    assert tables.offsets == list(range(40)) and not any(name.startswith("other") for name in names(tables))


def test_one_that_shrinks_and_grows_into_something_else(tmp_path: Path) -> None:
    parts = log(*[1] * 40)
    nodes = [node(tmp_path, number, parts) for number in (1, 2, 3)]
    tables = read(*nodes)
    node(tmp_path, 3, parts[:10])
    assert as_a_first_look(tables, *nodes)["node-3"][:6] == ("behind", 0, 10, 1, 0, 10)
    node(tmp_path, 3, [*parts[:12], *[record(at, 1, "other") for at in range(12, 39)]])
    said = as_a_first_look(tables, *nodes)
    assert said["node-3"][0] == "diverged" and said["node-3"][6] == 12


def test_a_tail_that_was_left_behind_where_the_others_lose_and_elect(tmp_path: Path) -> None:
    """What is said of it names epochs of others, and where both are the same."""
    shared = log(*[1] * 20)
    one = node(tmp_path, 1, [*shared[:15], *log(*[2] * 5, start=15)])
    two, three = node(tmp_path, 2, shared), node(tmp_path, 3, shared[:15])
    tables = read(one, two, three)
    assert told(tables)["node-2"][0] == "diverged"
    node(tmp_path, 1, [*shared[:15], *log(*[2] * 5, *[3] * 5, start=15)])
    said = as_a_first_look(tables, one, two, three)
    assert said["node-2"][0] == "diverged" and "its last epoch is 3" in said["node-2"][-1]
    for end in (17, 15, 8):
        node(tmp_path, 2, shared[:end])
        as_a_first_look(tables, one, two, three)


def test_one_that_nothing_shows_to_be_of_the_cluster_and_that_grows_until_it_does(tmp_path: Path) -> None:
    parts = log(*[1] * 40)
    one, two, three = node(tmp_path, 1, parts), node(tmp_path, 2, parts), node(tmp_path, 3, parts[:5])
    tables = read(one, two, three)
    for number in (1, 2):  # they lose what they had in common
        next((tmp_path / f"node-{number}").glob("*/*.log")).unlink()
        write_log(tmp_path / f"node-{number}" / METADATA_DIRECTORY, *parts[20:], base_offset=20)
    later = Tables()
    assert as_a_first_look(later, one, two, three)["node-3"][0] == "not-compared"
    tables.step(one, two, three)
    assert told(tables)["node-3"][0] == "not-compared"
    for end in (10, 30):
        node(tmp_path, 3, parts[:end])
        said = as_a_first_look(later, one, two, three)
    assert said["node-3"][:6] == ("behind", 0, 30, 1, 20, 30)


def test_a_batch_in_the_place_of_another(tmp_path: Path) -> None:
    """It begins at the same byte, and is one of another history."""
    one, two = node(tmp_path, 1, [*log(*[1] * 9), *log(*[2] * 20, start=9)]), node(tmp_path, 2, log(*[1] * 9))
    write_log(two / METADATA_DIRECTORY, *log(2, start=9), base_offset=9)
    tables = read(one, two)
    assert told(tables)["node-2"][:6] == ("behind", 0, 10, 2, 0, 10)
    write_log(two / METADATA_DIRECTORY, record(9, 1, "stale"), base_offset=9)
    said = as_a_first_look(tables, one, two)
    assert said["node-2"][0] == "diverged" and said["node-2"][6] == 9


def test_an_empty_log_that_grows_and_stays_behind(tmp_path: Path) -> None:
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, [])
    tables = read(one, two)
    for end in (5, 9, 0, 40):
        node(tmp_path, 2, parts[:end])
        as_a_first_look(tables, one, two)


def test_a_segment_that_is_lost_between_others(tmp_path: Path) -> None:
    """Neither the first nor the last segment shows it."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:10])
    directory = two / METADATA_DIRECTORY
    for first in (10, 20, 30):
        write_log(directory, *parts[first : first + 10], base_offset=first)
    tables = read(one, two)
    lost = directory / f"{10:020d}.log"
    raw = lost.read_bytes()
    lost.unlink()
    assert as_a_first_look(tables, one, two)["node-2"][0] == "damaged"
    assert [row["reason"] for row in tables.findings] == ["the segment starts at offset 20, 10 was expected"]
    lost.write_bytes(raw)
    assert as_a_first_look(tables, one, two)["node-2"][0] == "same"
    (directory / f"{20:020d}.log").unlink()
    (directory / f"{0:020d}.log").unlink()
    assert as_a_first_look(tables, one, two)["node-2"][:2] == ("damaged", 10)
    assert tables.restarts == 0 and tables.offsets == list(range(40))


def test_a_new_segment_without_records_gives_a_run_nothing_to_do(tmp_path: Path) -> None:
    parts = log(*[1] * 20)
    for number in (1, 2):
        write_log(node(tmp_path, number, parts[:10]) / METADATA_DIRECTORY, *parts[10:], base_offset=10)
    state = step(tmp_path, WarehouseState())
    assert state is not None
    (tmp_path / "node-2" / METADATA_DIRECTORY / f"{20:020d}.log").touch()
    assert step(tmp_path, state) is None


def test_a_lone_copy_that_loses_a_segment_between_others(tmp_path: Path) -> None:
    """Its tables keep the records."""
    parts = log(*[1] * 30)
    one = node(tmp_path, 1, parts[:10])
    for first in (10, 20):
        write_log(one / METADATA_DIRECTORY, *parts[first : first + 10], base_offset=first)
    tables = read(one)
    (one / METADATA_DIRECTORY / f"{10:020d}.log").unlink()
    tables.step(one)
    assert [row["reason"] for row in tables.findings] == ["the segment starts at offset 20, 10 was expected"]
    assert tables.restarts == 0 and tables.offsets == list(range(30))
    again = tables.step(one)
    assert (again.slices, again.findings, again.ranges, again.restart) == ((), (), (), False)


@pytest.mark.parametrize("end", [25, 20, 0])
def test_damage_that_is_cut_off(end: int, tmp_path: Path) -> None:
    """A damaged tail is removed: what is left is whole."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:15])
    tables = read(one, two)
    damaged = parts[25][:-1] + bytes([parts[25][-1] ^ 1])
    node(tmp_path, 2, [*parts[:25], damaged, *parts[26:30]])
    assert as_a_first_look(tables, one, two)["node-2"][0] == "damaged"
    node(tmp_path, 2, parts[:end])
    assert as_a_first_look(tables, one, two)["node-2"][0] == "behind"


def test_damage_that_is_cut_off_inside_its_batch(tmp_path: Path) -> None:
    """What is left of it is a torn tail."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:15])
    tables = read(one, two)
    damaged = parts[25][:-1] + bytes([parts[25][-1] ^ 1])
    node(tmp_path, 2, [*parts[:25], damaged, *parts[26:30]])
    assert as_a_first_look(tables, one, two)["node-2"][0] == "damaged"
    node(tmp_path, 2, [*parts[:25], damaged[:20]])
    assert as_a_first_look(tables, one, two)["node-2"][0] == "behind"


def test_incomplete_snapshots_are_reported_once(tmp_path: Path) -> None:
    """Each of them ends where its footer is expected, which is the byte of the finding."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:30])
    files = [write_snapshot(two / METADATA_DIRECTORY, snapshot([], 1), end, 1) for end in (10, 20)]
    raw = files[0].read_bytes()
    for file in files:
        file.write_bytes(raw[: batches(raw)[-1].position])
    tables = Tables()
    assert as_a_first_look(tables, one, two)["node-2"][0] == "damaged" and len(tables.findings) == 2
    for file in files:
        file.write_bytes(raw)
        as_a_first_look(tables, one, two)
    assert told(tables)["node-2"][0] == "behind" and len(tables.findings) == 2


@pytest.mark.parametrize("size", [0, 200, 837])
def test_a_segment_between_others_that_is_completed_later(size: int, tmp_path: Path) -> None:
    """The records after the gap were written already, and one copy may be all there is."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), segments(tmp_path, 3, parts, 0, 35, 0)
    file = two / METADATA_DIRECTORY / f"{10:020d}.log"
    raw = file.read_bytes()
    lone, both = read(two), read(one, two)
    file.write_bytes(raw[:size])
    for tables in (lone, Tables()):
        assert as_a_first_look(tables, two)["node-3"][0] == "reference" and damage(tables) != [[]]
    assert as_a_first_look(both, one, two)["node-3"][0] == "damaged"
    assert lone.restarts == 0 and lone.offsets == list(range(35)), "tables keep what a copy lost"
    short = read(two)
    file.write_bytes(raw)
    assert as_a_first_look(both, one, two)["node-3"][0] == "behind"
    as_a_first_look(short, two)
    assert short.restarts == 1 and short.offsets == list(range(35)) and damage(short) == [[]]
    assert short.last is not None and short.last.cluster["stateOffset"] == 35


@pytest.mark.parametrize("end", [30, 20])
def test_a_copy_that_is_truncated_to_the_beginning_of_a_segment(end: int, tmp_path: Path) -> None:
    """Its last segment is empty."""
    parts = log(*[1] * 40)
    one, two = node(tmp_path, 1, parts), segments(tmp_path, 3, parts, 0, 40, 0)
    tables = read(one, two)
    directory = segments(tmp_path, 3, parts, 0, end, 0) / METADATA_DIRECTORY
    (directory / f"{end:020d}.log").touch()
    assert as_a_first_look(tables, one, two)["node-3"][:6] == ("behind", 0, end, 1, 0, end)


def test_a_lone_copy_that_is_emptied_and_copied_again(tmp_path: Path) -> None:
    parts = log(*[1] * 40)
    one = node(tmp_path, 1, parts)
    tables = read(one)
    node(tmp_path, 1, [])
    assert as_a_first_look(tables, one)["node-1"][:4] == ("reference", None, None, None)
    node(tmp_path, 1, [parts[0][:30]])
    as_a_first_look(tables, one)
    node(tmp_path, 1, parts)
    assert as_a_first_look(tables, one)["node-1"][:4] == ("reference", 0, 40, 1)
    assert tables.restarts == 0 and tables.offsets == list(range(40))


def test_damage_that_is_known_fills_no_gap_when_a_lone_copy_is_read_from_its_beginning(tmp_path: Path) -> None:
    """By its header, the batch looks good; new tables would lack what Kafka has deleted since."""
    parts = log(*[1] * 40)
    one = node(tmp_path, 1, parts[:10])
    inner = one / METADATA_DIRECTORY
    for first in (10, 20, 30):
        write_log(inner, *parts[first : first + 10], base_offset=first)
    flip(inner / f"{20:020d}.log", batches(b"".join(parts[20:30]))[5].position + 70)
    tables = read(one)
    write_snapshot(inner, snapshot([value("TOPIC", name="k", topicId=uuid(9))], 1), 20, 1)
    for first in (0, 10):
        (inner / f"{first:020d}.log").unlink()
    tables.step(one)
    for tail in (parts[0][:20], b""):  # torn, as a crash leaves it, and cut off
        write_log(inner, *parts[30:40], tail, base_offset=30)
        made = tables.step(one)
        assert (made.slices, made.findings, made.restart) == ((), (), False)
        assert len(damage(tables)[0]) == 1
    assert tables.offsets == [*range(25), *range(26, 40)]


def test_damage_that_another_copy_makes_good_is_reported_once(tmp_path: Path) -> None:
    parts = log(*[1] * 30)
    one, two = (node(tmp_path, number, parts[:20]) for number in (1, 2))
    for directory in (one, two):
        write_log(directory / METADATA_DIRECTORY, *parts[20:], base_offset=20)
    spoilt(one, 5)
    tables = read(one, two)
    known = damage(tables)[0]
    for tail, present in ((parts[0][:20], [one, two]), (b"", [one]), (b"", [one, two])):
        write_log(one / METADATA_DIRECTORY, *parts[20:], tail, base_offset=20)
        made = tables.step(*present)
        assert damage(tables)[0] == known and made.findings == ()
