"""Every state of a source from one pass over its log: the same as loading it for that offset alone."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import DataError
from kshell.history.story import story_of
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.history import Recorder
from kshell.metadata.image import Image
from kshell.metadata.partitions import Topic
from kshell.metadata.values import Origin
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from kshell.sources.quorum.source import QuorumSource
from kshell.sources.source import Loaded
from tests.builders import (
    FIXTURES,
    LOG,
    TIME,
    batch,
    batches,
    control_batch,
    copy_of,
    leader_change,
    metadata,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.server import Log, Quorum, settings

STRIDE = int(os.environ.get("KSHELL_AS_OF_STRIDE", "9"))


def plain(source: DirectorySource, offset: int) -> Loaded | None:
    try:
        return source.load(until=offset)
    except DataError:
        return None


def origins(image: Image) -> dict[tuple[str, int], Origin]:
    """The offset of the record behind each partition."""
    found: dict[tuple[str, int], Origin] = {}
    for topic in image[TOPICS].values():
        for number, entry in topic.partitions():
            if not entry.origin.place.in_snapshot:
                found[topic.name, number] = entry.origin
    return found


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_is_what_loading_gives(node: Path) -> None:
    source = DirectorySource(str(node))
    past = Past(source)
    end = source.load().log_end_offset
    found = past.history()
    assert end is not None and found is not None
    start = found[0].log.start
    compared = 0
    for offset in range(0, end + 2, STRIDE):
        ours, theirs = past.at(offset), plain(source, offset)
        assert (ours is None) == (theirs is None or offset < start), offset
        if ours is None or theirs is None:
            continue
        compared += 1
        assert metadata(ours.image) == metadata(theirs.image), offset
        assert ours.image.provenance == theirs.image.provenance
        for name in ("log_end_offset", "last_timestamp", "torn", "open_transaction", "notes"):
            assert getattr(ours, name) == getattr(theirs, name), (offset, name)
        assert len(ours.problems) == len(theirs.problems)
        there = origins(ours.image)
        assert all(there[key] == origin for key, origin in origins(theirs.image).items())
    assert compared > 0


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_the_newest_state_is_what_loading_gives_or_left_to_it(node: Path) -> None:
    source = DirectorySource(str(node))
    ours, theirs = Past(source).newest(), source.load()
    listing = source.listing(full_log=True)
    bases = [segment.base_offset or 0 for segment in listing.segments]
    alone = all((file.end_offset or 0) <= min(bases, default=0) for file in listing.snapshots)
    if ours is None:
        assert not alone
        return
    assert ours.image == theirs.image
    assert [problem.reason for problem in ours.problems] == [problem.reason for problem in theirs.problems]
    for name in theirs._fields:
        if name not in ("image", "problems", "listing"):
            assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("is_before", [True, False], ids=["before the batch", "after it"])
def test_a_reading_of_what_came_that_is_interrupted_leaves_nothing_behind(
    tmp_path: Path, at: int, is_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, a deadline, a key in ``top``, a cancelled call: the next answer is whole."""
    node = FIXTURES / "4.3.1/controller-3001" / METADATA_DIRECTORY
    whole = (node / LOG).read_bytes()
    ends = [part.end for part in batches(whole)]
    (tmp_path / LOG).write_bytes(whole[: ends[len(ends) // 2]])
    past = Past(DirectorySource(str(tmp_path)))
    assert past.newest() is not None
    (tmp_path / LOG).write_bytes(whole)
    log_batch, calls = Recorder.log_batch, itertools.count()

    def interrupted(recorder: Recorder, *args: Any) -> None:
        is_now = next(calls) == at * 5
        if is_now and is_before:
            raise KeyboardInterrupt
        log_batch(recorder, *args)
        if is_now:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Recorder, "log_batch", interrupted)
        past.newest()
    ours, theirs = past.newest(), DirectorySource(str(tmp_path)).load()
    assert ours is not None and metadata(ours.image) == metadata(theirs.image)
    assert ours.log_end_offset == theirs.log_end_offset


def test_the_newest_state_stays_as_it_was_when_the_log_grows(tmp_path: Path) -> None:
    past = Past(written(tmp_path, RECORDS[:2]))
    newest = past.newest()
    written(tmp_path, [*RECORDS[:2], change(2)])
    assert past.at(3) is not None
    assert newest is not None and newest.image[TOPICS][uuid(1)].partition(0).value.leader == 1


def test_with_a_snapshot_and_problems_of_the_log_the_newest_state_is_left_to_loading(tmp_path: Path) -> None:
    directory = tmp_path / METADATA_DIRECTORY
    write_snapshot(directory, snapshot(topic(1, [partition(0, 1)])), 5)
    write_log(directory, batch([value("REMOVE_TOPIC", topicId=uuid(9))], 5), base_offset=5)
    assert Past(DirectorySource(str(tmp_path))).newest() is None


def test_a_story_reads_the_log_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path)
    monkeypatch.setattr(source, "load", lambda **_: pytest.fail("the log is read once more"))
    session = Session(source)
    assert story_of(session, "why").numbers(uuid(3)) == [0]
    assert session.loaded.open_transaction == 20


def topic(number: int, partition_values: list[bytes]) -> list[bytes]:
    return [value("TOPIC", name=f"t{number}", topicId=uuid(number)), *partition_values]


def partition(number: int, leader: int, topic_number: int = 1) -> bytes:
    return value(
        "PARTITION", 2, partitionId=number, topicId=uuid(topic_number), replicas=[1, 2], isr=[1, 2], leader=leader,
        leaderEpoch=0, partitionEpoch=0, directories=[uuid(8), uuid(9)],
    )  # fmt: skip


def change(leader: int) -> bytes:
    return value("PARTITION_CHANGE", 2, partitionId=0, topicId=uuid(1), leader=leader)


def config(text: str | None) -> bytes:
    return value("CONFIG", resourceType=2, resourceName="t1", name="retention.ms", value=text)


RECORDS = [
    *topic(1, [partition(0, 1)]),  # 1, 2
    config("1"),  # 3
    value("BEGIN_TRANSACTION"),  # 4
    change(2),  # 5
    config("2"),
    *topic(2, [partition(0, 1, 2)]),  # 7, 8
    value("END_TRANSACTION"),  # 9
    value("BEGIN_TRANSACTION"),  # 10
    change(1),
    value("ABORT_TRANSACTION"),
    config(None),  # 13
    value("NO_OP"),
    value("REMOVE_TOPIC", topicId=uuid(2)),  # 15
    config("3"),
    value("REMOVE_TOPIC", topicId=uuid(1)),  # 17: its config goes, too
    *topic(3, [partition(0, 2, 3)]),
    value("BEGIN_TRANSACTION"),  # 20
    config("4"),
]


def written(directory: Path, records: list[bytes] = RECORDS, start: int = 0) -> DirectorySource:
    parts = [control_batch([leader_change()], start)]
    parts += [batch([one], start + 1 + at) for at, one in enumerate(records)]
    write_log(directory / METADATA_DIRECTORY, *parts, base_offset=start)
    return DirectorySource(str(directory))


def test_transactions_and_removals(tmp_path: Path) -> None:
    source = written(tmp_path)
    past = Past(source)
    for offset in range(len(RECORDS) + 3):
        ours, theirs = past.at(offset), source.load(until=offset)
        assert ours is not None
        assert metadata(ours.image) == metadata(theirs.image), offset
        assert (ours.image.provenance, ours.open_transaction) == (theirs.image.provenance, theirs.open_transaction)
    inside, after = past.at(8), past.at(9)
    assert inside is not None and after is not None
    assert len(inside.image[TOPICS]) == 1 and len(after.image[TOPICS]) == 2


def test_a_log_on_a_snapshot(tmp_path: Path) -> None:
    held = [*topic(1, [partition(0, 1), partition(1, 2)]), config("1")]
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(held), 100)
    source = written(tmp_path, [change(2), config("2"), config(None), change(1)], start=100)
    past = Past(source)
    for offset in range(100, 106):
        ours, theirs = past.at(offset), source.load(until=offset)
        assert ours is not None
        assert metadata(ours.image) == metadata(theirs.image), offset
    assert past.at(99) is None


def test_what_is_not_touched_is_the_snapshots_own(tmp_path: Path) -> None:
    held = [*topic(1, [partition(0, 1)]), *topic(2, [partition(0, 1, 2)])]
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(held), 100)
    past = Past(written(tmp_path, [change(2)], start=100))
    before, after = past.at(100), past.at(101)
    assert before is not None and after is not None
    one: Topic = before.image[TOPICS][uuid(1)]
    assert before.image[TOPICS][uuid(2)] is after.image[TOPICS][uuid(2)]
    assert not one.is_same(after.image[TOPICS][uuid(1)])
    assert [one.partition(0).value.leader, after.image[TOPICS][uuid(1)].partition(0).value.leader] == [1, 2]  # type: ignore[union-attr]


def test_the_first_offset_behind_a_snapshot_reads_less_than_the_log(tmp_path: Path) -> None:
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(topic(1, [partition(0, 1)])), 4)
    session = Session(written(tmp_path, [*topic(1, [partition(0, 1)]), *(change(1 + at % 2) for at in range(6))]))
    session.travels()
    assert session.past is not None

    def leader(point: str) -> int:
        session.travel(session.reshape(point=point))
        return int(session.loaded.image[TOPICS][uuid(1)].partition(0).value.leader)

    assert [leader("5"), session.past.is_recorded] == [1, False]
    assert [leader("5"), session.past.is_recorded] == [1, False]
    assert [leader("6"), session.past.is_recorded] == [2, True]
    assert leader("5") == 1


def test_problems_before_the_snapshot_that_an_answer_begins_with_are_not_its_own(tmp_path: Path) -> None:
    """Whether the log was read for other offsets meanwhile must not show."""
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(topic(1, [partition(0, 1)])), 5)
    unknown = value("REMOVE_TOPIC", topicId=uuid(9))
    source = written(tmp_path, [*topic(1, [partition(0, 1)]), unknown, change(2), unknown, change(1)])
    past = Past(source)
    for offset in range(7):
        ours, theirs = past.at(offset), source.load(until=offset)
        assert ours is not None
        assert [problem.origin.offset for problem in ours.problems] == [one.origin.offset for one in theirs.problems]
    assert len(past.history()[0].problems) == 2  # type: ignore[index]


def test_an_offset_before_every_snapshot_is_read_out_of_the_log(tmp_path: Path) -> None:
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(topic(1, [partition(0, 1)])), 5)
    past = Past(written(tmp_path, [*topic(1, [partition(0, 1)]), *(change(1 + at % 2) for at in range(6))]))
    assert [past.skips_log_for(offset) for offset in (3, 4, 6)] == [False, True, False]


def test_a_log_that_grows_is_read_on(tmp_path: Path) -> None:
    source = written(tmp_path, RECORDS[:5])
    past = Past(source)
    assert past.at(3) is not None
    first = past.recorded()
    written(tmp_path, RECORDS)
    last = past.at(19)
    assert last is not None and past.recorded() is first
    assert metadata(last.image) == metadata(source.load(until=19).image)


def test_a_tail_that_was_taken_back_is_read_anew(tmp_path: Path) -> None:
    source = written(tmp_path, [*RECORDS[:3], config("5")])
    past = Past(source)
    assert past.at(4) is not None
    written(tmp_path, [*RECORDS[:3], config("6"), config("7")])
    found = past.at(5)
    assert found is not None
    assert metadata(found.image) == metadata(source.load(until=5).image)
    again = past.at(4)
    assert again is not None and metadata(again.image) == metadata(source.load(until=4).image)


def test_a_tail_that_another_leader_replaced_is_read_anew(tmp_path: Path) -> None:
    """No batch of the new tail begins where the last one of the old tail did; a shorter log has none at all."""
    write_log(tmp_path, batch(RECORDS[:3]), batch([config("4"), config("5")], 3), batch([config("6")] * 2, 5))
    source = DirectorySource(str(tmp_path))
    past = Past(source)
    assert past.at(6) is not None
    replaced = batch([config("7"), config("8"), config("9"), config("10")], 4, 2)
    write_log(tmp_path, batch(RECORDS[:3]), control_batch([leader_change(2)], 3, 2), replaced)
    for offset in (7, 6, 4, 2):
        found = past.at(offset)
        assert found is not None
        assert metadata(found.image) == metadata(source.load(until=offset).image), offset
    write_log(tmp_path, batch(RECORDS[:2]))
    recorded_log = past.recorded()
    assert recorded_log is not None and recorded_log.history.log.end == 2


def test_a_snapshot_of_what_the_log_has_grown_by_is_passed(tmp_path: Path) -> None:
    source = written(tmp_path, RECORDS[:3])
    past = Past(source)
    assert past.at(2) is not None
    written(tmp_path, [*RECORDS[:3], config("5"), config("6")])
    write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot([*RECORDS[:3], config("7")]), 5)
    for offset in (5, 4):
        found, loaded = past.at(offset), source.load(until=offset)
        assert found is not None and found.snapshot is not None and loaded.snapshot is not None
        assert found.snapshot.end_offset == loaded.snapshot.end_offset == 5
        assert metadata(found.image) == metadata(loaded.image)


def test_past_damage_the_next_snapshot_is_begun_with(tmp_path: Path) -> None:
    node = next(node for node in recorded(log_from_zero=True) if node_name(node) == "4.3.1/broker-0")
    target = copy_of(node, tmp_path)
    file = target / f"{0:020d}.log"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 4] ^= 0xFF
    file.write_bytes(raw)
    source = DirectorySource(str(target))
    past = Past(source)
    early, late = past.at(50), past.at(573)
    theirs = source.load(until=573)
    assert early is None and source.load(until=50).image.provenance.offset == 50
    assert late is not None and metadata(late.image) == metadata(theirs.image)
    assert [str(error) for error in late.damage] == [str(error) for error in theirs.damage] != []


def test_a_gap(tmp_path: Path) -> None:
    """Each offset is the same from all images as from one, or in neither: never the state from before the gap."""
    node = next(node for node in recorded(log_from_zero=True) if node_name(node) == "4.2.1-rolled/controller-3002")
    whole, target = DirectorySource(str(node)), copy_of(node, tmp_path)
    segments = sorted(target.glob("*.log"))
    segments[4].unlink()
    first, after = int(segments[4].stem), int(segments[5].stem)
    source = DirectorySource(str(target))
    past = Past(source)
    ends = {int(file.name[:20]) for file in target.glob("*.checkpoint")}
    joined = min(end for end in ends if end >= after)
    last = (whole.load().log_end_offset or 0) - 1
    assert first < joined - 1 < last
    for offset in range(0, last + 1, STRIDE):
        ours, theirs = past.at(offset), plain(source, offset)
        assert (theirs is not None) == (offset < first or offset >= joined - 1 or offset + 1 in ends), offset
        assert (ours is not None) == (offset >= joined), offset
        for found in (ours, theirs):
            assert found is None or metadata(found.image) == metadata(whole.load(until=offset).image), offset


def test_snapshots_without_a_log(tmp_path: Path) -> None:
    for end in (100, 200):
        write_snapshot(tmp_path, snapshot([config(str(end))], timestamp=TIME + end), end)
    source = DirectorySource(str(tmp_path))
    past = Past(source)
    for offset in (99, 199, 300):
        theirs = plain(source, offset)
        assert theirs is not None and theirs.image.provenance.offset == min(offset, 199)
        ours = past.at(offset)
        assert ours is None or metadata(ours.image) == metadata(theirs.image)
    for offset in (98, 100, 198):
        assert past.at(offset) is None and plain(source, offset) is None
    assert past.offset_by(TIME + 150) is None


def test_times_are_found(tmp_path: Path) -> None:
    node = recorded(log_from_zero=True)[0]
    source = DirectorySource(str(node))
    past = Past(source)
    loaded = source.load()
    moment = loaded.image.provenance.timestamp
    assert past.offset_by(moment) == source.offset_of(f"{_iso(moment)}")
    assert past.offset_by(moment // 2) is None


def _iso(moment: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC).isoformat()


def test_of_a_running_quorum() -> None:
    node = next(node for node in recorded(log_from_zero=True) if node_name(node) == "4.3.1-more/controller-3000")
    directory = DirectorySource(str(node))
    with Quorum(log=Log.of_directory(node / METADATA_DIRECTORY)) as quorum:
        election = quorum.log.entries[-1].base  # that of this pretend quorum is no record of the directory
        source = quorum.keep(QuorumSource(quorum.bootstrap, settings()))
        past = Past(source)
        compared = 0
        for offset in range(1, election, 10):
            ours = past.at(offset)
            assert ours is not None, offset
            assert metadata(ours.image) == metadata(directory.load(until=offset).image), offset
            compared += 1
        assert compared > 15
        quorum.elect(1)
        quorum.append(value("TOPIC", name="new", topicId=uuid(99)))
        source.refresh()
        grown = past.at(quorum.log.end - 1)
        assert grown is not None and uuid(99) in grown.image[TOPICS]
