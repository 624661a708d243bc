"""Copies that cannot be of one history are not chosen between; copies that can be are joined."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.copies.agreement import startable_majority
from kshell.sources.copies.logs import twins
from kshell.sources.copies.recovery import Survivors, survey
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests import builders
from tests.builders import batch, control, control_batch, flip, snapshot, uuid, value, write_epochs, write_log
from tests.builders import write_snapshot as add_snapshot
from tests.made_logs import leader

FIXTURES = Path(__file__).parents[1] / "fixtures"
OTHER_ID = "another-cluster"


def topic(at: int, name: str = "a") -> bytes:
    """The record of a topic with an id that is not one of Kafka's own."""
    return value("TOPIC", name=f"{name}-{at}", topicId=uuid(ord(name) * 1000 + at))


def log(*spans: tuple[int, int], name: str = "a", voters: tuple[int, ...] = (1, 2, 3)) -> list[bytes]:
    """One batch an offset; a span is an epoch, which begins with its LeaderChange, and the offset that it ends at."""
    out: list[bytes] = []
    for epoch, end in spans:
        out.append(leader(epoch, len(out), voters))
        out += [batch([topic(at, name)], at, epoch) for at in range(len(out), end)]
    return out


def state_of(end: int, epoch: int, name: str = "a") -> tuple[int, int, bytes]:
    """A snapshot: its end offset, its epoch, its bytes."""
    return end, epoch, snapshot([topic(at, name) for at in range(1, end)], epoch)


def node(
    folder: Path,
    number: int,
    parts: list[bytes] | None,
    *snapshots: tuple[int, int, bytes],
    start: int = 0,
    stated: int | None = None,
    name: str | None = None,
    meta: Mapping[str, str] | None = None,
) -> Path:
    """A node's log directory; ``start`` is the offset of the first of ``parts`` that is there, ``None``: no log."""
    directory = folder / (name or f"node-{number}")
    inner = directory / METADATA_DIRECTORY
    inner.mkdir(parents=True)
    if parts is not None:
        write_log(inner, *parts[start:], base_offset=start)
    for end, epoch, raw in snapshots:
        add_snapshot(inner, raw, end, epoch)
    properties = {"version": "1", "cluster.id": "one", "node.id": str(number)} | dict(meta or {})
    (directory / "meta.properties").write_text("".join(f"{key}={text}\n" for key, text in properties.items()))
    if stated is not None:
        (inner / "quorum-state").write_text(json.dumps({"leaderId": -1, "leaderEpoch": stated}))
    return directory


def broken(folder: Path, parts: list[bytes], end: int, start: int, **more: Any) -> Path:
    """As :func:`node`, of node 1, without what is from offset ``end`` to ``start``."""
    directory = node(folder, 1, parts[:end], **more)
    write_log(directory / METADATA_DIRECTORY, *parts[start:], base_offset=start)
    return directory


def anonymous(directory: Path) -> Path:
    """A node's directory without the files that say whose it is."""
    (directory / "meta.properties").unlink()
    return directory


def found(*directories: Path) -> Survivors:
    return survey([str(directory) for directory in directories], None)


def refused(*directories: Path) -> str:
    """What shows the two histories, whatever the order of the copies; at least one sentence."""
    texts = {one.text for one in found(*directories).contradictions}
    assert texts
    assert bool(found(*reversed(directories)).contradictions)
    return "\n".join(sorted(texts))


# --- records that a copy lacks ---------------------------------------------------------------------------------------


def test_what_is_lost_between_the_newest_snapshot_and_the_log_comes_from_another_node(tmp_path: Path) -> None:
    for name in ("controller-3000", "controller-3001"):
        shutil.copytree(FIXTURES / "4.2.1-rolled" / name, tmp_path / name)
    lacking, other = tmp_path / "controller-3000", tmp_path / "controller-3001"
    whole = found(lacking, other).log
    end, image = whole.end, builders.metadata(whole.load(None).image)
    inner = lacking / METADATA_DIRECTORY
    (inner / f"{453:020d}.log").unlink()
    for file in inner.glob("*.checkpoint"):
        if int(file.name[:20]) >= 539:
            file.unlink()
    now = found(lacking, other)
    assert (now.log.end, now.log.certain) == (end, end)
    assert builders.metadata(now.log.load(None).image) == image
    assert "no whole snapshot reaches it" in str(now.copies[0].damage[0])
    assert not startable_majority(now.comparison)


def test_a_new_epoch_inside_a_gap_keeps_nothing_from_filling_it(tmp_path: Path) -> None:
    """The leader of epoch 2 wrote offset 95; so whoever has a record of epoch 2 has that leader's log up to there."""
    parts = log((1, 20), (2, 100))
    gapped = broken(tmp_path, parts, 10, 95)
    now = found(gapped, node(tmp_path, 2, parts[:90]))
    assert (now.log.certain, now.log.end) == (90, 90)
    assert [(part.start, part.end) for part in now.log.lacking] == [(95, 100)]


def test_the_first_segment_comes_from_another_node(tmp_path: Path) -> None:
    parts = log((1, 100))
    now = found(node(tmp_path, 1, parts, start=50), node(tmp_path, 2, parts[:80]))
    assert (now.log.certain, now.log.end) == (100, 100)


def test_what_is_not_certain_is_taken_and_called_so(tmp_path: Path) -> None:
    """Epoch 3 begins behind the gap: whether its leader had the records of epoch 2 is not known."""
    parts = log((1, 20), (2, 40), (3, 60))
    gapped = broken(tmp_path, parts, 20, 50)
    now = found(gapped, node(tmp_path, 2, parts[:35]))
    assert (now.log.certain, now.log.end) == (20, 35)
    assert [(part.start, part.end) for part in now.log.lacking] == [(50, 60)]


def test_a_diverged_copy_fills_a_gap_before_the_offset_where_it_diverges(tmp_path: Path) -> None:
    shared = log((1, 40))
    mine = [*shared, *log((1, 40), (3, 60))[40:]]
    gapped = broken(tmp_path, mine, 10, 30, stated=3)
    now = found(gapped, node(tmp_path, 2, log((1, 40), (2, 50)), stated=2))
    assert (now.log.certain, now.log.end) == (60, 60)
    assert [(part.copy.node_id, part.start, part.end) for part in now.log.lacking] == [(2, 40, 50)]


def test_records_that_a_later_epoch_replaced_are_pointed_out(tmp_path: Path) -> None:
    damaged = node(tmp_path, 1, log((1, 90), (2, 91)), stated=2)
    inner = damaged / METADATA_DIRECTORY
    write_epochs(inner, (1, 0), (2, 90))
    flip(inner / builders.LOG, len(b"".join(log((1, 90)))) + 30)
    now = found(damaged, node(tmp_path, 2, log((1, 95)), stated=1))
    assert now.reference.node_id == 2
    assert "knows of epoch 2 from offset 90 on" in now.known_losses[0]


def test_an_epoch_that_begins_after_the_end_of_the_log_is_missing(tmp_path: Path) -> None:
    """A whole last segment is gone, at the border of a batch: only the file beside it knows."""
    directories = [node(tmp_path, number, log((1, 60)), stated=2) for number in (1, 2)]
    write_epochs(directories[0] / METADATA_DIRECTORY, (1, 0), (2, 64))
    now = found(*directories)
    assert "says that epoch 2 begins at 64" in str(now.copies[0].damage[0])
    assert now.known_losses
    assert not startable_majority(now.comparison)


def test_an_epoch_that_begins_at_the_end_of_the_log_is_normal(tmp_path: Path) -> None:
    directory = node(tmp_path, 1, log((1, 60)), stated=2)
    write_epochs(directory / METADATA_DIRECTORY, (1, 0), (2, 60))
    assert found(directory).copies[0].damage == []


def test_a_torn_log_whose_node_knew_a_later_epoch(tmp_path: Path) -> None:
    """Its last segment is all zeros, as after a power failure."""
    directories = [node(tmp_path, number, log((1, 60)), stated=1) for number in (1, 2, 3)]
    inner = directories[2] / METADATA_DIRECTORY
    (inner / f"{60:020d}.log").write_bytes(bytes(4096))
    write_epochs(inner, (1, 0), (5, 60))
    now = found(*directories)
    assert "knows of epoch 5 from offset 60 on" in now.known_losses[0]
    assert not found(*directories[:2]).known_losses


def test_the_name_of_a_damaged_snapshot_says_what_was_committed(tmp_path: Path) -> None:
    fetched = node(tmp_path, 1, [], state_of(100, 1), stated=1)
    flip(fetched / METADATA_DIRECTORY / f"{100:020d}-{1:010d}.checkpoint", 300)
    now = found(fetched, *(node(tmp_path, number, log((1, 60)), stated=1) for number in (2, 3)))
    assert now.log.end == 60
    assert "records up to offset 99 had been committed" in now.known_losses[0]


# --- two histories ---------------------------------------------------------------------------------------------------


def test_a_lone_snapshot_of_another_cluster(tmp_path: Path) -> None:
    foreign = anonymous(node(tmp_path, 9, None, state_of(60, 4, "x")))
    assert "nothing shows that they are of one cluster" in refused(node(tmp_path, 1, log((1, 5), (2, 100))), foreign)


def test_a_log_of_another_cluster_that_has_no_offset_in_common(tmp_path: Path) -> None:
    whole = [node(tmp_path, number, log((1, 5), (2, 100))) for number in (1, 2)]
    foreign = anonymous(node(tmp_path, 9, log((5, 340), name="x"), state_of(300, 5, "x"), start=300))
    assert "nothing shows that they are of one cluster" in refused(*whole, foreign)


@pytest.mark.parametrize(("epoch", "why"), [(3, "epoch 2, not 3"), (2, "time ")])
def test_a_snapshot_that_the_log_of_another_copy_contradicts(epoch: int, why: str, tmp_path: Path) -> None:
    raw = snapshot([topic(1)], epoch, timestamp=builders.TIME + (10**9 if epoch == 2 else 0))
    lagging = node(tmp_path, 2, log((1, 20), (2, 30)), (60, epoch, raw), stated=epoch)
    assert why in refused(node(tmp_path, 1, log((1, 20), (2, 80), (4, 100))), lagging)


def test_snapshots_whose_epochs_fall(tmp_path: Path) -> None:
    earlier = node(tmp_path, 1, log((1, 5), (2, 40)), state_of(60, 3), stated=3)
    later = node(tmp_path, 2, log((1, 5), (2, 80)), state_of(70, 2), stated=2)
    assert "an epoch never falls" in refused(earlier, later)


def test_what_most_voters_have_cannot_be_replaced(tmp_path: Path) -> None:
    majority = [node(tmp_path, number, log((1, 5), (2, 20)), stated=2) for number in (1, 2)]
    assert "most voters (1, 2)" in refused(*majority, node(tmp_path, 3, log((1, 5), (2, 12), (3, 15)), stated=3))


def test_what_most_voters_had_before_they_knew_a_later_epoch_can_be(tmp_path: Path) -> None:
    """Figure 8 of the Raft paper."""
    majority = [node(tmp_path, number, log((1, 5), (2, 20)), stated=3) for number in (1, 2)]
    now = found(*majority, node(tmp_path, 3, log((1, 5), (2, 12), (4, 15)), stated=4))
    assert not now.contradictions


def test_what_voters_know_who_say_no_epoch_proves_nothing(tmp_path: Path) -> None:
    majority = [node(tmp_path, number, log((1, 5), (2, 20))) for number in (1, 2)]
    assert not found(*majority, node(tmp_path, 3, log((1, 5), (2, 12), (4, 15)), stated=4)).contradictions


def test_two_logs_that_the_newest_does_not_reach(tmp_path: Path) -> None:
    newest = node(tmp_path, 1, log((1, 120)), state_of(100, 1), start=100, stated=1)
    mine, theirs = node(tmp_path, 2, log((1, 60))), node(tmp_path, 3, log((1, 60), name="x"))
    assert "an epoch has one leader" in refused(newest, mine, theirs)


def test_controllers_that_were_formatted_again(tmp_path: Path) -> None:
    formatted = [node(tmp_path, number, log((3, 20), name="x")) for number in (1, 2)]
    left = node(tmp_path, 3, log((1, 5), (2, 500)))
    assert "was a controller formatted again?" in refused(*formatted, left)


def test_a_cluster_id_that_cannot_be_right(tmp_path: Path) -> None:
    parts = log((1, 5), (2, 100))
    right = [node(tmp_path, number, parts[:80]) for number in (1, 3)]
    wrong = node(tmp_path, 2, parts, meta={"cluster.id": OTHER_ID})
    assert "one of the cluster ids in meta.properties is wrong" in refused(*right, wrong)


def test_as_many_copies_of_one_cluster_as_of_another(tmp_path: Path) -> None:
    mine = node(tmp_path, 1, log((1, 5), (2, 100)))
    foreign = node(tmp_path, 2, log((1, 50), name="x", voters=(2, 3)), meta={"cluster.id": OTHER_ID})
    assert "nothing says which of them is to be recovered" in refused(mine, foreign)
    assert not found(mine, node(tmp_path, 3, log((1, 5), (2, 90))), foreign).contradictions


# --- one history, although it looks strange --------------------------------------------------------------------------


def test_one_cluster_id_is_enough_where_all_else_has_changed(tmp_path: Path) -> None:
    lagged = node(tmp_path, 1, log((1, 10)), stated=1)
    now = found(lagged, *(node(tmp_path, n, log((2, 120), name="z"), state_of(100, 2, "z"), start=100) for n in (2, 3)))
    assert not now.contradictions


def test_a_copy_whose_ids_cannot_be_read(tmp_path: Path) -> None:
    without_base = node(tmp_path, 2, log((1, 80)), start=50)
    now = found(anonymous(node(tmp_path, 1, log((1, 120)), state_of(100, 1), start=100)), without_base)
    assert not now.contradictions


def test_older_copies_of_most_voters_and_a_log_that_goes_on_to_the_snapshot(tmp_path: Path) -> None:
    old = [node(tmp_path, number, log((1, 60)), stated=1) for number in (1, 3)]
    assert not found(*old, node(tmp_path, 10, log((1, 79)), state_of(80, 1), stated=1)).contradictions


def test_a_snapshot_that_was_copied_after_quorum_state_and_that_another_log_confirms(tmp_path: Path) -> None:
    parts = log((1, 40), (2, 100))
    copied = node(tmp_path, 1, parts[:40], state_of(80, 2), stated=1)
    assert found(copied).contradictions
    assert not found(copied, node(tmp_path, 2, parts, stated=2)).contradictions


def test_a_stale_leader_and_a_snapshot_of_what_replaced_its_records(tmp_path: Path) -> None:
    snapshot_of_later = node(tmp_path, 1, log((1, 5), (2, 40)), state_of(60, 3), stated=3)
    now = found(snapshot_of_later, node(tmp_path, 2, log((1, 5), (2, 80)), stated=2))
    assert not now.contradictions
    assert [verdict.state for verdict in now.verdicts] == ["reference", "diverged"]
    assert [(part.start, part.end) for part in now.log.lacking] == [(60, 80)]


def test_an_observer_on_a_new_disk(tmp_path: Path) -> None:
    """Its snapshot names the directory that the voter had before."""
    named = [{"voterId": number, "voterDirectoryId": uuid(500 + number)} for number in (1, 2, 3)]
    values = [topic(at) for at in range(1, 80)]
    raw = b"".join((
        control_batch([control(3, lastContainedLogTimestamp=builders.TIME), control(6, voters=named)], 0, 1),
        batch(values, 2),
        control_batch([control(4)], 2 + len(values)),
    ))  # fmt: skip
    observer = node(tmp_path, 3, log((1, 70)), (80, 1, raw), stated=1, meta={"directory.id": str(uuid(900))})
    assert not found(observer, node(tmp_path, 10, log((1, 75)), stated=1)).contradictions


def test_all_topics_are_new_in_the_snapshot_but_another_log_knows_them(tmp_path: Path) -> None:
    renamed = [*log((1, 30)), *log((1, 75), name="z")[30:]]
    ahead = node(tmp_path, 1, renamed[:30], (80, 1, snapshot([topic(at, "z") for at in range(41, 80)])), stated=1)
    assert not found(ahead, node(tmp_path, 10, renamed, stated=1)).contradictions


def test_voters_of_before_are_no_majority(tmp_path: Path) -> None:
    old = [node(tmp_path, number, log((1, 40)), stated=1) for number in (1, 2)]
    named = [{"voterId": number, "voterDirectoryId": uuid(500 + number)} for number in (4, 5, 6)]
    values = [topic(at) for at in range(1, 60)]
    raw = b"".join((
        control_batch([control(3, lastContainedLogTimestamp=builders.TIME), control(6, voters=named)], 0, 1),
        batch(values, 2),
        control_batch([control(4)], 2 + len(values)),
    ))  # fmt: skip
    now = found(*old, node(tmp_path, 4, log((1, 40)), (60, 1, raw), stated=1))
    assert not now.contradictions
    assert sorted(now.reference.voters) == [4, 5, 6]
    assert not startable_majority(now.comparison)


# --- who can start as it is ------------------------------------------------------------------------------------------


def test_empty_controllers_are_no_majority(tmp_path: Path) -> None:
    lagging = node(tmp_path, 1, log((1, 5), (2, 50)))
    now = found(lagging, node(tmp_path, 2, []), node(tmp_path, 3, []))
    assert startable_majority(now.comparison) == []


def test_a_backup_does_not_stand_for_the_damaged_log_of_its_node(tmp_path: Path) -> None:
    parts = log((1, 5), (2, 100))
    damaged = node(tmp_path, 2, parts[:95])
    flip(damaged / METADATA_DIRECTORY / builders.LOG, 3000)
    backup, other = node(tmp_path, 2, parts[:50], name="backup"), node(tmp_path, 1, parts)
    assert startable_majority(found(other, backup).comparison) == [1, 2]
    assert startable_majority(found(other, backup, damaged).comparison) == []


def test_static_voters_are_known_although_the_log_no_longer_names_them(tmp_path: Path) -> None:
    parts = log((1, 200))
    directories = [node(tmp_path, number, parts, state_of(100, 1), start=100) for number in (1, 2, 3)]
    for directory in directories:
        state: dict[str, Any] = {"leaderId": 1, "leaderEpoch": 1, "currentVoters": [{"voterId": n} for n in (1, 2, 3)]}
        (directory / METADATA_DIRECTORY / "quorum-state").write_text(json.dumps(state))
    assert startable_majority(found(*directories).comparison) == [1, 2, 3]


def test_static_voters_are_those_of_quorum_state(tmp_path: Path) -> None:
    """A voter was added to server.properties; no leader has been elected since."""
    directory = node(tmp_path, 1, log((1, 60)))
    state: dict[str, Any] = {
        "leaderId": 1,
        "leaderEpoch": 1,
        "currentVoters": [{"voterId": n} for n in (1, 2, 3, 4, 5)],
    }
    (directory / METADATA_DIRECTORY / "quorum-state").write_text(json.dumps(state))
    now = found(directory, node(tmp_path, 2, log((1, 60))))
    assert sorted(now.reference.voters) == [1, 2, 3, 4, 5]
    assert startable_majority(now.comparison) == []


def test_older_copies_of_voters_who_had_elected_another_leader(tmp_path: Path) -> None:
    voters = [node(tmp_path, number, log((1, 60)), stated=1) for number in (1, 2)]
    broker = node(tmp_path, 10, log((1, 60)))
    assert startable_majority(found(*voters, broker).comparison) == [1, 2]
    (broker / METADATA_DIRECTORY / "quorum-state").write_text(json.dumps({"leaderId": 3, "leaderEpoch": 9}))
    assert startable_majority(found(*voters, broker).comparison) == []


def test_voters_that_a_gap_may_hide_prove_nothing(tmp_path: Path) -> None:
    named = [{"voterId": number, "voterDirectoryId": uuid(500 + number)} for number in (1, 2, 3)]
    parts = [control_batch([control(6, voters=named)], 0, 1), *log((1, 60))[1:]]
    ids = {number: {"directory.id": str(uuid(500 + number))} for number in (1, 2)}
    whole = [node(tmp_path, number, parts, meta=ids[number]) for number in (1, 2)]
    assert found(*whole).comparison.committed == 60
    gapped = broken(tmp_path, parts, 20, 40, meta=ids[1], name="broken")
    assert found(gapped, node(tmp_path, 2, parts[:50], meta=ids[2], name="behind")).comparison.committed == 0


def test_two_nodes_with_one_directory_id(tmp_path: Path) -> None:
    same = {"directory.id": str(uuid(900))}
    nodes = [node(tmp_path, number, log((1, 10)), meta=same) for number in (1, 2)]
    (remark,) = twins(found(*nodes).copies)
    assert "have one directory.id" in remark


@pytest.mark.parametrize("text", ["", "garbage"])
def test_a_directory_id_that_is_none_is_not_used(text: str, tmp_path: Path) -> None:
    (copy,) = found(node(tmp_path, 1, log((1, 10)), meta={"directory.id": text})).copies
    assert copy.directory_id is None
    assert any("directory.id in meta.properties is no UUID" in note for note in copy.notes)
