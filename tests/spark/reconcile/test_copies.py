"""Several copies of one log: one truth, and what is wrong with any of them as data."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.reconcile import by_cluster
from tests.builders import (
    FIXTURES,
    batch,
    batches,
    copy_of,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_epochs,
    write_log,
    write_snapshot,
)
from tests.made_logs import log, record
from tests.spark.reading import dumped, needs_arrow
from tests.spark.reconcile.nodes import names, node, read, states
from tests.spark.reconcile.tables import COLUMNS, Tables, found

pytestmark = needs_arrow
CLUSTERS = sorted({node.parent for node in recorded() if len(list(node.parent.glob("*/meta.properties"))) > 1})
ROLLED = FIXTURES / "4.2.1-rolled"


def kinds(tables: Tables) -> list[tuple[str, int | None]]:
    return [(row["kind"], row["nodeId"]) for row in tables.findings]


# --- recorded clusters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_the_nodes_of_a_real_cluster(cluster: Path) -> None:
    nodes = sorted(path.parent for path in cluster.glob("*/meta.properties"))
    tables = read(*nodes)
    every = {row[0]: row for one in nodes for row in dumped(one / METADATA_DIRECTORY)[0]}
    assert tables.log == [every[offset][:6] for offset in sorted(every)]
    assert tables.findings == []
    assert set(states(tables).values()) <= {"reference", "same", "behind"}
    assert tables.restarts == 0 and tables.ranges[-1].to == max(every) + 1


def test_a_cut_copy_a_damaged_one_another_cluster_and_a_good_one(tmp_path: Path) -> None:
    good = copy_of(ROLLED / "controller-3001", tmp_path / "good").parent
    whole = dumped(good)[0]
    cut = copy_of(ROLLED / "controller-3001", tmp_path / "cut").parent.rename(tmp_path / "controller-1")
    last = sorted(cut.glob("*/*.log"))[-1]
    last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    sorted(cut.glob("*/*.checkpoint"))[-1].unlink()  # of the part that is gone
    damaged = copy_of(ROLLED / "controller-3001", tmp_path / "damaged").parent.rename(tmp_path / "controller-2")
    file = sorted(damaged.glob("*/*.log"))[-1]
    raw = bytearray(file.read_bytes())
    bad = batches(bytes(raw))[1]
    raw[bad.position + 70] ^= 1
    file.write_bytes(raw)
    other = copy_of(FIXTURES / "4.3.1/controller-3001", tmp_path / "other").parent.rename(tmp_path / "controller-4")
    shutil.copyfile(good / "meta.properties", other / "meta.properties")
    copies = [cut, damaged, other, good]
    for order in (copies, copies[::-1]):
        tables = read(*order)
        assert tables.log == [row[:6] for row in whole]
        assert states(tables) == {
            "controller-1": "behind",
            "controller-2": "damaged",
            "controller-3001": "reference",
            "controller-4": "other-cluster",
        }
        told = {Path(row["copy"]).parent.name: row for row in (tables.last.copies if tables.last else ())}
        assert told["controller-4"]["divergesAt"] is not None
        reason = told["controller-4"]["reason"]
        assert "is known to this cluster's copies" in reason and "correct meta.properties of the other" in reason
        assert len(told["controller-2"]["damage"]) == 1 and str(file) in told["controller-2"]["damage"][0]
        (finding,) = tables.findings
        assert (finding["kind"], finding["file"], finding["position"]) == ("batch", str(file), bad.position)
        assert {row["file"] for row in tables.rows}.isdisjoint(map(str, other.glob("*/*.log")))
        again = tables.step(*order)
        assert (again.slices, again.findings, again.ranges, again.restart) == ((), (), (), False)
        assert {Path(row["copy"]).parent.name: row["state"] for row in again.copies} == states(tables)


NODES = recorded()
PAIRS = [(cluster, other) for cluster in CLUSTERS for other in NODES if cluster != other.parent]
APART = {("4.3.1", "4.2.1-rolled/broker-0"), ("4.1.1", "3.6.2/broker-1"), ("3.7.2", "4.1.1/controller-3000")}
"""Of some no offset is in the others."""


@pytest.mark.parametrize(
    ("cluster", "other"),
    [
        pytest.param(
            *pair,
            marks=[] if (pair[0].name, node_name(pair[1])) in APART else pytest.mark.soak,
            id=f"{pair[0].name} and {node_name(pair[1])}",
        )
        for pair in PAIRS
    ],
)
@pytest.mark.parametrize("with_snapshots", [True, False])
def test_a_directory_of_another_cluster_under_the_same_name_gives_no_row(
    cluster: Path, other: Path, with_snapshots: bool, tmp_path: Path
) -> None:
    ours = [copy_of(one, tmp_path).parent for one in NODES if one.parent == cluster]
    liar = copy_of(other, tmp_path / "lying").parent
    shutil.copyfile(ours[0] / "meta.properties", liar / "meta.properties")
    if not with_snapshots:
        for snapshot_file in tmp_path.rglob("*.checkpoint"):
            snapshot_file.unlink()
    tables, healthy = read(*ours, liar), read(*ours)
    assert tables.rows == healthy.rows and tables.ranges == healthy.ranges
    assert tables.last is not None and healthy.last is not None
    told = {row["copy"]: row for row in tables.last.copies}
    row = told.pop(str(liar / METADATA_DIRECTORY))
    # A copy without its snapshots may show too little to be told from another history of the same cluster.
    possible = ("other-cluster", "not-compared", *(() if with_snapshots else ("diverged",)))
    assert row["state"] in possible and row["reason"]
    assert [*told.values()] == [*healthy.last.copies]


class TestAnotherCluster:
    """What shows that a copy is of another cluster, and not another history of the same one."""

    def state(self, folder: Path, *parts: bytes, ids: tuple[int, ...] = (), epochs: tuple[int, ...] = (1,) * 6) -> str:
        """The state of a copy beside two that have the topics 1001 to 1005; ``ids`` are its own topics."""
        ours = [*log(1), *(self.topic(at, 1, 1000 + at) for at in range(1, 6))]
        copies = [node(folder, number, ours) for number in (1, 2)]
        theirs = [*parts, *(self.topic(at, epochs[at], one) for at, one in enumerate(ids, len(parts)))]
        return states(read(*copies, node(folder, 3, theirs)))["node-3"]

    def topic(self, at: int, epoch: int, number: int) -> bytes:
        return batch([value("TOPIC", name=f"t-{number}", topicId=uuid(number))], at, epoch)

    def test_a_first_record_of_its_own_and_no_id_in_common(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, ids=(2001, 2002, 2003)) == "other-cluster"

    def test_a_first_record_of_its_own_and_no_ids_at_all(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, record(0, 1, "b"), record(1, 1, "b")) == "other-cluster"

    def test_an_id_in_common(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, ids=(2001, 1002, 2003)) == "diverged"

    def test_a_batch_in_common(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, *log(1), ids=(2001, 2002)) == "diverged"

    def test_no_id_in_common_where_epochs_alone_would_explain_it(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, ids=(2001, 2002), epochs=(9, 9)) == "other-cluster"

    def test_a_first_record_that_an_election_replaced(self, tmp_path: Path) -> None:
        assert self.state(tmp_path, *log(0)) == "diverged"


def test_what_the_winner_lacks_comes_from_others(tmp_path: Path) -> None:
    """The reference is damaged, and begins late: each offset is there once, whoever has it."""
    parts = log(*[1] * 10, *[2] * 10)
    one = node(tmp_path, 1, parts)
    file = next(one.glob("*/*.log"))
    raw = bytearray(file.read_bytes())
    for at in (3, 12, 13):
        raw[batches(b"".join(parts))[at].position + 70] ^= 1
    file.write_bytes(raw)
    two = node(tmp_path, 2, parts[5:16], start=5)
    three = node(tmp_path, 3, parts[:8])
    for paths in ((one, two, three), (three, two, one)):
        tables = read(*paths)
        assert tables.offsets == list(range(20))
        assert tables.ranges == [(None, 0, 20)]
        by_node = {row["offset"]: row["nodeId"] for row in tables.rows}
        assert [by_node[at] for at in (0, 3, 4, 12, 13, 14)] == [1, 3, 1, 2, 2, 1]
        assert kinds(tables) == [("batch", 1)] * 3
    late = node(tmp_path, 4, parts[8:], start=8)
    assert read(three, late).offsets == list(range(20))


def test_what_nobody_has_is_a_gap(tmp_path: Path) -> None:
    parts = log(*[1] * 20)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts)
    for directory in (one, two):
        file = next(directory.glob("*/*.log"))
        raw = bytearray(file.read_bytes())
        raw[batches(b"".join(parts))[7].position + 70] ^= 1
        file.write_bytes(raw)
    tables = read(one, two)
    assert tables.offsets == [at for at in range(20) if at != 7]
    assert tables.ranges == [(None, 0, 7)]
    (gap,) = [row for row in tables.findings if row["kind"] == "gap"]
    assert gap["clusterId"] == "one" and gap["offset"] == 7 and "offset 7 is missing" in gap["reason"]
    write_snapshot(two / METADATA_DIRECTORY, snapshot([value("TOPIC", name="s", topicId=uuid(99))]), 10)
    tables = read(one, two)
    assert [era[1:] for era in tables.ranges] == [(0, 7), (10, 20)]
    assert tables.ranges[1].base and tables.ranges[1].base.startswith(str(two))


# --- elections -----------------------------------------------------------------------------------------------------


def test_a_tail_that_an_election_left_behind_gives_no_row(tmp_path: Path) -> None:
    one = node(tmp_path, 1, [*log(*[1] * 5), *log(2, 2, start=5)])
    two = node(tmp_path, 2, log(*[1] * 12, name="a"))
    three = node(tmp_path, 3, log(*[1] * 3))
    for paths in ((one, two, three), (three, two, one)):
        tables = read(*paths)
        assert tables.offsets == list(range(7))
        assert [row["epoch"] for row in tables.rows] == [1] * 5 + [2] * 2
        assert states(tables) == {"node-1": "reference", "node-2": "diverged", "node-3": "behind"}


def test_a_stale_tail_does_not_fill_a_gap(tmp_path: Path) -> None:
    """Where the winner's batches are damaged at the place of an election, others may have what was taken back."""
    good = [*log(*[1] * 5), *log(*[2] * 6, start=5)]
    one = node(tmp_path, 1, good)
    file = next(one.glob("*/*.log"))
    raw = bytearray(file.read_bytes())
    for at in (5, 6):
        raw[batches(b"".join(good))[at].position + 70] ^= 1
    file.write_bytes(raw)
    write_epochs(one / METADATA_DIRECTORY, (1, 0), (2, 5))
    two = node(tmp_path, 2, [*log(*[1] * 5), record(5, 1, "stale"), record(6, 1, "stale")])
    tables = read(one, two)
    assert names(tables) == [f"a-{at}" for at in (*range(1, 5), *range(7, 11))]


def test_the_larger_group_wins_then_raft(tmp_path: Path) -> None:
    ours, theirs = log(1, 1, 1, 2, 2), log(1, 1, 1, 9, 9, 9, name="b")
    one, two = node(tmp_path, 1, ours), node(tmp_path, 2, ours[:4])
    other = node(tmp_path, 3, theirs)
    assert names(read(one, two, other)) == ["a-1", "a-2", "a-4"]
    assert names(read(one, other)) == ["b-1", "b-2", "b-4", "b-5"]
    empty = node(tmp_path, 4, [])  # agrees with both
    assert names(read(one, two, other, empty)) == ["a-1", "a-2", "a-4"]


def test_taken_back_after_it_was_read(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(*[1] * 9))
    tables = read(one)
    node(tmp_path, 1, log(*[1] * 7))
    assert not tables.step(one).restart  # shorter, and no later epoch: perhaps only another copy of it
    assert tables.offsets == list(range(9))
    node(tmp_path, 1, [*log(*[1] * 7), *log(2, start=7)])
    made = tables.step(one)
    assert made.restart and tables.offsets == list(range(8))
    node(tmp_path, 1, [*log(*[1] * 7), *log(2, 2, 2, start=7)])
    assert not tables.step(one).restart
    assert tables.offsets == list(range(10))
    node(tmp_path, 1, [*log(*[1] * 7), *log(2, 2, start=7), *log(3, 3, 3, start=9)])
    assert tables.step(one).restart and tables.offsets == list(range(12))


# --- more and more of it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_in_portions_as_at_once(seed: int, tmp_path: Path) -> None:
    """Copies grow each for itself, roll, lose old segments and get snapshots; one joins late, one goes."""
    rng = random.Random(seed)
    epochs = sorted(rng.choice((1, 1, 2, 3)) for _ in range(60))
    parts = log(*epochs)
    ends = [0, 0, 0]
    tables, held = Tables(), range(0)
    for _ in range(8):
        for number in range(3):
            ends[number] = rng.randrange(ends[number], 61)
            if ends[number]:
                grown(tmp_path, number, parts, ends[number], rng)
        there = [tmp_path / f"node-{number}" for number in range(3) if ends[number]]
        rng.shuffle(there)
        if there:
            until = rng.choice((None, rng.randrange(61)))
            before = len(held)
            made = tables.step(*there[: rng.randrange(1, 4)], until=until, cut=rng.choice((300, 4000)))
            assert not made.restart
            held = range(len(tables.offsets))
            assert len(held) >= before
            assert until is None or all(run.after <= until for one in made.slices for run in one.file.runs)
    tables.step(*[tmp_path / f"node-{number}" for number in range(3) if ends[number]])
    assert tables.offsets == list(range(max(ends)))
    assert tables.findings == []
    assert [row["epoch"] for row in tables.rows] == epochs[: max(ends)]
    assert tables.ranges[0].since == 0
    assert all(
        era.to == later.since and later.base is None
        for era, later in zip(tables.ranges, tables.ranges[1:], strict=False)
    )


def grown(folder: Path, number: int, parts: list[bytes], end: int, rng: random.Random) -> None:
    """A node's log up to an offset, in segments that stay as they are once they are full."""
    directory = folder / f"node-{number}" / METADATA_DIRECTORY
    per_segment = 7 + number
    for start in range(0, end, per_segment):
        write_log(directory, *parts[start : min(end, start + per_segment)], base_offset=start)
    (directory.parent / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={number}\n")


def test_one_that_was_told_apart_stays_out(tmp_path: Path) -> None:
    ours, theirs = log(*[1] * 6), log(*[1] * 6, name="b")
    one, two, other = node(tmp_path, 1, ours), node(tmp_path, 2, ours), node(tmp_path, 3, theirs)
    tables = read(one, two, other)
    more = log(*[1] * 9, *[2] * 3)
    node(tmp_path, 1, more)
    node(tmp_path, 3, [*theirs, *log(*[7] * 30, start=6, name="b")])
    made = tables.step(one, two, other)
    assert not made.restart and states(tables)["node-3"] == "diverged"
    assert tables.offsets == list(range(12)) and not any(name.startswith("b") for name in names(tables))


def test_a_new_copy_is_compared_from_the_beginning(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(*[1] * 6))
    tables = read(one)
    foreign = node(tmp_path, 2, [*log(*[1] * 6, name="b"), *log(*[5] * 3, start=6, name="b")])
    node(tmp_path, 1, log(*[1] * 8))
    third = node(tmp_path, 3, log(*[1] * 7))
    made = tables.step(one, foreign, third)
    assert not made.restart and tables.offsets == list(range(8))
    assert states(tables) == {"node-1": "reference", "node-2": "diverged", "node-3": "behind"}


def test_copies_without_an_id(tmp_path: Path) -> None:
    one, two = node(tmp_path, 1, log(1, 1)), node(tmp_path, 2, log(1, 1))
    for directory in (one, two):
        (directory / "meta.properties").unlink()
    apart = by_cluster(found(one, two))
    assert len(apart) == 2 and all(name.startswith("unknown-") and len(name) == 16 for name in apart)
    assert list(by_cluster(found(one, two), "mine")) == ["mine"]
    tables = Tables()
    tables.step(one, two, given="mine")
    assert {row["clusterId"] for row in tables.rows} == {"mine"}
    assert set(tables.rows[0]) >= set(COLUMNS)
