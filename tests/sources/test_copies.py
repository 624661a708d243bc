"""Copies of one log: where they part, which goes before, what they prove to be committed."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from kshell.errors import CorruptDataError, SourceNotFoundError
from kshell.sources.copies.agreement import (
    BEHIND,
    DIVERGED,
    NOT_COMPARED,
    OTHER_CLUSTER,
    REFERENCE,
    SAME,
    CopyComparison,
    compare_copies,
)
from kshell.sources.copies.logs import Copy, read_together
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests import builders
from tests.builders import batch, control, control_batch, recorded, snapshot, value, write_log, write_snapshot
from tests.made_logs import leader, log, record

CLUSTERS = sorted({node.parent for node in recorded() if len(list(node.parent.glob("*/meta.properties"))) > 1})


def compared(*paths: Path) -> CopyComparison:
    copies = [Copy(str(path)) for path in paths]
    return compare_copies(copies, read_together(copies))


def states(found: CopyComparison) -> list[str]:
    return [one.state for one in found.verdicts]


def node(folder: Path, number: int, parts: list[bytes], *, cluster: str = "one", start: int = 0) -> Path:
    directory = folder / f"node-{number}"
    write_log(directory / METADATA_DIRECTORY, *parts, base_offset=start)
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={number}\n")
    return directory


def inner(directory: Path) -> Path:
    return directory / METADATA_DIRECTORY


# --- real clusters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_the_nodes_of_a_real_cluster_are_of_one_history(cluster: Path) -> None:
    nodes = sorted(path.parent for path in cluster.glob("*/meta.properties"))
    found = compared(*nodes)
    assert set(states(found)) <= {REFERENCE, SAME, BEHIND}
    assert found.committed > 0
    for one in found.verdicts:
        assert one.copy.damage == []
        assert one.copy.cluster_id and one.copy.node_id is not None
        assert one.since is not None and one.to == one.copy.log_end
        assert (one.state == BEHIND) == (one.copy.end != found.reference.end)


def test_nodes_of_two_real_clusters() -> None:
    nodes = [builders.FIXTURES / name for name in ("4.3.1/broker-0", "4.3.1-more/broker-0", "4.3.1/controller-3001")]
    found = compared(*nodes)
    assert states(found) == [REFERENCE, OTHER_CLUSTER, SAME]
    assert found.verdicts[1].uncommitted is None


def test_a_log_is_compared_with_others_where_it_reaches_further_back_than_the_reference() -> None:
    rolled = builders.FIXTURES / "4.2.1-rolled"
    found = compared(rolled / "broker-0", rolled / "controller-3001", rolled / "controller-3002")
    (broker, early, first) = found.verdicts
    assert (broker.state, broker.since) == (REFERENCE, 699)
    assert (early.peer, early.since) == (broker.copy, 699)
    assert (first.state, first.peer, first.since, first.to) == (BEHIND, broker.copy, 699, 711)


# --- where they part -------------------------------------------------------------------------------------------------


def test_every_cut_lags(tmp_path: Path) -> None:
    parts = log(1, 1, 1, 2, 2)
    whole = node(tmp_path, 1, parts)
    for length in range(1, len(parts)):
        found = compared(whole, node(tmp_path, 2, parts[:length]))
        assert states(found) == [REFERENCE, BEHIND]
        assert (found.verdicts[1].since, found.verdicts[1].to) == (0, length)


@pytest.mark.parametrize("at", range(1, 5))
def test_a_tail_that_an_election_left_behind(tmp_path: Path, at: int) -> None:
    one = node(tmp_path, 1, [*log(*[1] * at), *log(2, 2, start=at)])
    two = node(tmp_path, 2, log(*[1] * (at + 6)))
    for paths, place in (((one, two), 1), ((two, one), 0)):
        standing = compared(*paths).verdicts[place]
        assert (standing.state, standing.to) == (DIVERGED, at)
        assert standing.divergence is not None
        assert standing.divergence[0::3] == (at, None)
        assert (standing.divergence.batch.epoch, standing.divergence.other_batch.epoch) == (1, 2)
        assert standing.uncommitted is not None and standing.uncommitted <= at


def test_the_last_epoch_decides_and_not_the_one_where_they_part(tmp_path: Path) -> None:
    """Figure 8 of the Raft paper: the leader of epoch 4 never saw what the one of epoch 3 wrote."""
    one = node(tmp_path, 1, log(1, 2, 4))
    two = node(tmp_path, 2, log(1, 3))
    found = compared(two, one)
    assert found.reference.path == str(one)
    parted = found.verdicts[0].divergence
    assert parted is not None
    assert (parted.offset, parted.batch.epoch, parted.other_batch.epoch, parted.contradiction) == (1, 3, 2, None)


def test_no_election_explains_two_records_of_one_epoch(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(1, 1, 1, 1))
    two = node(tmp_path, 2, [*log(1, 1), record(2, 1, "b"), record(3, 1, "b")])
    standing = compared(one, two).verdicts[1]
    assert standing.divergence is not None
    assert standing.divergence.offset == 2
    assert "an epoch has one leader" in str(standing.divergence.contradiction)


def test_no_election_explains_an_epoch_that_both_have_later(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(1, 1, 2, 4))
    two = node(tmp_path, 2, log(1, 1, 3, 4))
    standing = compared(one, two).verdicts[1]
    assert standing.divergence is not None
    assert standing.divergence.offset == 2
    assert "epoch 4" in str(standing.divergence.contradiction)


def test_no_election_takes_back_what_a_snapshot_says_was_committed(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(1, 1, 2))
    two = node(tmp_path, 2, log(1, 1, 1, 1))
    write_snapshot(inner(two), snapshot([]), 4)
    found = compared(one, two)
    parted = found.verdicts[1].divergence
    assert parted is not None
    assert "snapshot 4-1" in str(parted.contradiction)
    assert found.committed == 0
    write_snapshot(inner(one), snapshot([], 2), 3, 2)
    found = compared(one, two)
    assert found.committed == 3
    assert [standing.uncommitted for standing in found.verdicts] == [None, 2]


def test_the_epoch_is_compared_which_no_crc_covers(tmp_path: Path) -> None:
    one, two = (
        node(tmp_path, epoch, [*log(1), control_batch([control(2, leaderId=1)], 1, epoch), record(2, epoch)])
        for epoch in (2, 3)
    )
    parted = compared(one, two).verdicts[0].divergence
    assert parted is not None
    assert (parted.offset, parted.batch.crc) == (1, parted.other_batch.crc)


def test_what_only_a_parted_copy_has_is_not_compared(tmp_path: Path) -> None:
    parts = log(*[1] * 6)
    ahead = node(tmp_path, 1, log(2, start=5), start=5)
    parted = node(tmp_path, 2, parts[3:], start=3)
    found = compared(ahead, parted, node(tmp_path, 3, parts[:4]))
    assert states(found) == [REFERENCE, DIVERGED, NOT_COMPARED]


def test_batches_that_were_cut_elsewhere(tmp_path: Path) -> None:
    values = [value("TOPIC", name=str(number), topicId=builders.uuid(number)) for number in range(4)]
    one = node(tmp_path, 1, [*log(1), batch(values, 1)])
    two = node(tmp_path, 2, [*log(1), batch(values[:2], 1), batch(values[2:], 3)])
    late = tmp_path / "late" / f"{3:020d}.log"
    late.parent.mkdir()
    late.write_bytes(batch(values[2:], 3))
    assert [one.divergence and one.divergence.offset for one in compared(one, two).verdicts] == [None, 1]
    assert [one.divergence and one.divergence.offset for one in compared(one, late).verdicts] == [None, 3]


def test_what_parts_before_the_reference_begins(tmp_path: Path) -> None:
    parts = log(1, 1, 1, 1, 1, 1)
    ahead = node(tmp_path, 1, [*parts[4:], record(6, 1)], start=4)
    two = node(tmp_path, 2, parts)
    three = node(tmp_path, 3, [*parts[:2], record(2, 1, "b"), *parts[3:]])
    found = compared(ahead, two, three)
    assert states(found) == [REFERENCE, BEHIND, DIVERGED]
    last = found.verdicts[2]
    assert last.peer is found.verdicts[1].copy
    assert last.divergence is not None and last.divergence.offset == 2


def test_a_chain_of_logs(tmp_path: Path) -> None:
    parts = log(*[1] * 9)
    one = node(tmp_path, 1, parts[6:], start=6)
    two = node(tmp_path, 2, parts[3:7], start=3)
    three = node(tmp_path, 3, parts[:4])
    found = compared(three, two, one)
    assert states(found) == [BEHIND, BEHIND, REFERENCE]
    assert found.verdicts[0].peer is found.verdicts[1].copy
    assert states(compared(three, one)) == [NOT_COMPARED, REFERENCE]


def test_any_histories(tmp_path: Path) -> None:
    """Against a comparison of everything, offset by offset."""
    rng = random.Random(5)
    for round_number in range(60):
        folder = tmp_path / str(round_number)
        logs = [history(rng) for _ in range(rng.randint(2, 4))]
        found = compared(*[node(folder, number, parts) for number, parts in enumerate(logs, 1)])
        ends = [(one.copy.last_epoch, one.copy.end) for one in found.verdicts]
        place = max(range(len(logs)), key=lambda at: (*ends[at], -at))
        assert found.verdicts[place].state == REFERENCE
        for parts, one in zip(logs, found.verdicts, strict=True):
            if one.peer is not None:
                other = logs[[two.copy for two in found.verdicts].index(one.peer)]
                expected = next((at for at, (a, b) in enumerate(zip(parts, other, strict=False)) if a != b), None)
                assert (one.divergence.offset if one.divergence else None) == expected
                assert one.to == (expected if expected is not None else min(len(parts), len(other))) or one.to is None


def history(rng: random.Random) -> list[bytes]:
    epochs = sorted(rng.choice((1, 1, 1, 2, 3)) for _ in range(rng.randint(1, 12)))
    return log(1, *epochs)


# --- what is committed -----------------------------------------------------------------------------------------------


def test_most_voters_have_it(tmp_path: Path) -> None:
    parts = log(1, 1, 1, 1, 1)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts[:3])
    found = compared(one, two)
    assert found.committed == 3
    assert [standing.uncommitted for standing in found.verdicts] == [3, None]
    assert compared(one).committed == 0
    assert compared(one, node(tmp_path, 9, parts)).committed == 0  # no voter
    assert compared(one, node(tmp_path / "again", 1, parts)).committed == 0  # one voter, twice


def test_most_voters_prove_nothing_for_an_older_epoch(tmp_path: Path) -> None:
    one, two = node(tmp_path, 1, log(1, 1, 2)), node(tmp_path, 2, log(1, 1))
    assert compared(one, two).committed == 0
    (inner(two) / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":2,"data_version":1}')
    same = node(tmp_path, 3, log(1, 1))
    assert compared(two, same).committed == 0


def test_voters_are_their_directories_too(tmp_path: Path) -> None:
    ids = [builders.uuid(number) for number in (1, 2, 3)]
    named = [{"voterId": number, "voterDirectoryId": one} for number, one in enumerate(ids, 1)]
    opening = control_batch([control(2, version=1, leaderId=1, voters=named)])
    one, two = (node(tmp_path, number, [opening, record(1, 1)]) for number in (1, 2))
    for path, directory in ((one, ids[0]), (two, builders.uuid(99))):
        with (path / "meta.properties").open("a") as file:
            file.write(f"directory.id={directory}\n")
    assert compared(one, two).committed == 0
    (two / "meta.properties").write_text(f"cluster.id=one\nnode.id=2\ndirectory.id={ids[1]}\n")
    assert compared(one, two).committed == 2


def test_two_copies_of_the_only_voter(tmp_path: Path) -> None:
    parts = [leader(1, 0, (1,)), record(1, 1)]
    assert compared(node(tmp_path, 1, parts), node(tmp_path / "again", 1, parts)).committed == 2


def test_a_snapshot_beyond_the_log_is_the_end(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(1, 1))
    write_snapshot(inner(one), snapshot([], 4), 9, 4)
    found = compared(one, node(tmp_path, 2, log(1, 1, 3)))
    assert found.reference.path == str(one)
    assert (found.reference.end, found.reference.last_epoch, found.reference.log_end) == (9, 4, 2)


def test_a_snapshot_holds_what_is_committed(tmp_path: Path) -> None:
    one = node(tmp_path, 1, log(1, 1, 1, 1))
    write_snapshot(inner(one), snapshot([]), 3)
    found = compared(one, node(tmp_path, 2, log(1, 1)))
    assert found.committed == 3
    assert [standing.uncommitted for standing in found.verdicts] == [3, None]


# --- damage, and what is no directory --------------------------------------------------------------------------------


def test_damage_is_told_and_the_rest_compared(tmp_path: Path) -> None:
    parts = log(1, 1, 1, 1, 1)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, parts)
    file = inner(two) / f"{0:020d}.log"
    raw = bytearray(file.read_bytes())
    raw[len(parts[0]) + len(parts[1]) + 70] ^= 1
    file.write_bytes(raw)
    found = compared(one, two)
    assert states(found) == [REFERENCE, SAME]
    (error,) = found.verdicts[1].copy.damage
    assert isinstance(error, CorruptDataError) and error.file == str(file)


def test_a_damaged_snapshot_proves_nothing(tmp_path: Path) -> None:
    one, two = node(tmp_path, 1, log(1, 1, 1)), node(tmp_path, 2, log(1, 1, 1))
    write_snapshot(inner(two), snapshot([])[:-1], 2)
    (inner(one) / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    found = compared(one, two)
    assert found.verdicts[1].copy.newest is None
    assert len(found.verdicts[1].copy.damage) == 1


def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    parts = log(1, 1, 1)
    one, two = node(tmp_path, 1, parts), node(tmp_path, 2, [*parts[:2], parts[2][:-3]])
    found = compared(one, two)
    assert (found.verdicts[1].state, found.verdicts[1].copy.damage) == (BEHIND, [])
    assert found.verdicts[1].copy.torn is not None


def test_an_empty_log_is_the_beginning_of_every_other(tmp_path: Path) -> None:
    empty, also = node(tmp_path, 1, []), node(tmp_path, 2, [])
    assert states(compared(empty, node(tmp_path, 3, log(1, 1)))) == [BEHIND, REFERENCE]
    assert states(compared(empty, also)) == [REFERENCE, SAME]


def test_a_server_that_cleans_its_log_meanwhile(tmp_path: Path) -> None:
    directory = node(tmp_path, 1, log(*[1] * 60))
    copy = Copy(str(directory))
    write_snapshot(inner(directory), snapshot([]), 50)
    write_log(inner(directory), *log(*[1] * 60)[50:], base_offset=50)
    (inner(directory) / builders.LOG).unlink()
    read_together([copy])
    assert copy.damage == []
    again = Copy(str(directory))
    (inner(directory) / f"{50:020d}-{1:010d}.checkpoint").unlink()
    again.snapshots.clear()
    read_together([again])
    assert "no whole snapshot reaches it" in again.damage[0].message


def test_single_files(tmp_path: Path) -> None:
    parts = log(1, 1, 1)
    one = node(tmp_path, 1, parts)
    lone = write_log(tmp_path / "lone", *parts)
    assert states(compared(one, lone)) == [REFERENCE, SAME]
    file = write_snapshot(tmp_path / "other", snapshot([]), 9)
    found = compared(one, file)
    assert states(found) == [NOT_COMPARED, REFERENCE]
    assert (found.reference.end, found.reference.last_epoch, found.reference.log_end) == (9, 1, None)
    with pytest.raises(SourceNotFoundError):
        compared(one, tmp_path / "nothing")


def test_progress_tells_of_all(tmp_path: Path) -> None:
    copies = [Copy(str(node(tmp_path, number, log(1, 1, 1)))) for number in (1, 2)]
    told: list[tuple[int, int]] = []
    read_together(copies, lambda done, total, what: told.append((done, total)))
    assert told[-1][0] == told[-1][1] == sum(copy.size for copy in copies)
    assert all(one[0] <= other[0] for one, other in pairwise(told))


def test_voters_that_cannot_be_decoded_are_damage_and_name_file_and_byte(tmp_path: Path) -> None:
    whole = leader(2, 2)
    longer = whole + bytes(3)  # three bytes after the last record, and a CRC that says that they belong there
    parts = [*log(1, 1), builders.sealed(longer[:8] + struct.pack(">i", len(longer) - 12) + longer[12:]), record(3, 2)]
    directory = node(tmp_path, 1, parts)
    copy = Copy(str(directory))
    assert [batch.base_offset for batch in copy.batches(None)] == [0, 1, 2, 3]
    (damage,) = copy.damage
    file, at = inner(directory) / "00000000000000000000.log", len(b"".join(parts[:2]))
    assert damage.message.startswith(f"{file}: byte {at}: 3 bytes too many after the last record")
