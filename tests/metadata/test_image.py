"""Images: the same under every batching, from every snapshot, and never changed by what comes after."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.metadata.delta import Delta
from kshell.metadata.image import EMPTY, Image, families, family
from kshell.metadata.replay import Replayer
from kshell.metadata.values import Provenance
from kshell.protocol.batches import iter_records, write_batch
from kshell.sources.directory.source import DirectorySource
from tests.builders import (
    LOG,
    TIME,
    batches,
    control_batch,
    copy_of,
    metadata,
    node_name,
    parsed,
    recorded,
    replayed,
    uuid,
    value,
)

WHOLE = recorded(log_from_zero=True)
every_whole_log = pytest.mark.parametrize("node", WHOLE, ids=node_name)


def load(path: Path, until: int | None = None) -> Image:
    loaded = DirectorySource(str(path)).load(until=until)
    assert loaded.damage == []
    assert [problem for problem in loaded.problems if not problem.unknown] == []
    return loaded.image


@cache
def log_records(node: Path) -> list[tuple[bool, bytes | None, bytes | None]]:
    """(is it a control record, key, value) of every record of a recorded log."""
    out = []
    for segment in sorted((node / "__cluster_metadata-0").glob("*.log")):
        for found in batches(segment.read_bytes()):
            out += [(found.is_control, raw.key, raw.value) for raw in iter_records(found)]
    return out


@cache
def image_of_log(node: Path) -> Image:
    """Replayed by the batches that Kafka made."""
    replayer = Replayer()
    for segment in sorted((node / "__cluster_metadata-0").glob("*.log")):
        for found in batches(segment.read_bytes()):
            replayer.log_batch(found, segment.name)
    return replayer.image()


def rebatched(node: Path, cuts: set[int]) -> list[bytes]:
    """The log again, its batches ended at ``cuts`` and where control records begin or end."""
    records = log_records(node)
    out, start = [], 0
    for at in range(1, len(records) + 1):
        if at == len(records) or at in cuts or records[at][0] != records[start][0]:
            pairs = [(key, content) for _, key, content in records[start:at]]
            out.append(write_batch(pairs, base_offset=start, epoch=1, timestamp=TIME, control=records[start][0]))
            start = at
    return out


@pytest.mark.parametrize(
    "node", [n for n in WHOLE if n.name == "broker-0" or n.parent.name == "4.2.1-rolled"], ids=node_name
)
@settings(max_examples=12)
@given(data=st.data())
def test_the_image_is_the_same_under_every_batching(node: Path, data: st.DataObject) -> None:
    size = len(log_records(node))
    cuts = data.draw(st.sets(st.integers(1, size)) | st.just(set()) | st.just(set(range(size))))
    in_one, image = Replayer(), EMPTY
    for raw in rebatched(node, cuts):
        in_one.log_batch(parsed(raw), LOG)
    assert in_one.image() == image_of_log(node)
    open_at_the_end = False
    for raw in rebatched(node, cuts):
        step = Replayer(image)
        step.log_batch(parsed(raw), LOG)
        if step.open_transaction is not None:  # a delta a batch cannot hold a transaction over two of them
            open_at_the_end = True
            break
        image = step.image()
    assert open_at_the_end or image == image_of_log(node)


@every_whole_log
def test_a_delta_a_batch_gives_the_same_image(node: Path) -> None:
    """Kafka 4.3.1 itself lost a SCRAM user when the whole log was one delta."""
    image = EMPTY
    for segment in sorted((node / "__cluster_metadata-0").glob("*.log")):
        step = Replayer(image)
        for found in batches(segment.read_bytes()):
            step.log_batch(found, segment.name)
            if step.open_transaction is None:
                problems, image = step.problems, step.image()
                assert problems == []
                step = Replayer(image)
    assert image == image_of_log(node)


@every_whole_log
def test_each_snapshot_with_its_tail_is_the_whole_log(node: Path, tmp_path: Path) -> None:
    inner = copy_of(node, tmp_path)
    full = image_of_log(node)
    log_end = full.provenance.offset + 1
    snapshots = sorted(inner.glob("*.checkpoint"))
    assert snapshots
    for newest in reversed(snapshots):
        image = load(inner)
        if int(newest.name[:20]) <= log_end:
            assert metadata(image) == metadata(full), newest.name
        newest.unlink()
    assert load(inner) == full


@every_whole_log
def test_each_snapshot_is_the_log_up_to_it(node: Path, tmp_path: Path) -> None:
    inner = copy_of(node, tmp_path)
    log_end = image_of_log(node).provenance.offset + 1
    snapshots = [path for path in sorted(inner.glob("*.checkpoint")) if 0 < int(path.name[:20]) <= log_end]
    for path in sorted(inner.glob("*.checkpoint")):
        lone = load(path)
        shutil.move(path, tmp_path)
        assert lone.provenance.offset == int(path.name[:20]) - 1
    for path in snapshots:
        lone = load(tmp_path / path.name)
        until = load(inner, until=lone.provenance.offset)
        assert metadata(lone) == metadata(until), path.name


@every_whole_log
def test_as_of_an_offset_is_the_replay_of_what_came_before(node: Path, tmp_path: Path) -> None:
    inner = copy_of(node, tmp_path)
    records = log_records(node)
    image, replayer = EMPTY, Replayer()
    for offset, (is_control, key, content) in enumerate(records):
        raw = write_batch([(key, content)], base_offset=offset, epoch=1, timestamp=TIME, control=is_control)
        replayer.log_batch(parsed(raw), LOG)
        if replayer.open_transaction is None:
            image = replayer.image()
            replayer = Replayer(image)
        if offset % 23 == 0 or offset == len(records) - 1:
            found = load(inner, until=offset)
            assert metadata(found) == metadata(image), offset
            assert found.provenance.offset in (image.provenance.offset, offset)


def test_an_image_stays_as_it_is() -> None:
    """Every later record of a real log is applied to a delta over it, and the values are looked at again."""
    node = WHOLE[0]
    raw = b"".join(rebatched(node, set(range(0, 10_000, 37))))
    image, kept = EMPTY, []
    for found in batches(raw):
        step = Replayer(image)
        step.log_batch(found, LOG)
        image = step.image()
        kept.append((image, found.base_offset, found.last_offset))
    for old, _, last in kept:
        again = Replayer(until=last)
        for found in batches(raw):
            again.log_batch(found, LOG)
        assert old == again.image(), last


def test_tables_that_did_not_change_are_shared() -> None:
    config = value("CONFIG", resourceType=2, resourceName="a", name="k", value="1")
    other = value("CONFIG", resourceType=2, resourceName="b", name="k", value="1")
    topics = [value("TOPIC", name=f"t{n}", topicId=uuid(n)) for n in (1, 2)]
    first, _ = replayed(config, other, *topics)
    more = value("CONFIG", resourceType=2, resourceName="b", name="k2", value="2")
    second, _ = replayed(more, value("PARTITION", partitionId=0, topicId=uuid(2)), base=first, start=4)
    assert second["topicNames"] is first["topicNames"]
    assert second["topics"][uuid(1)] is first["topics"][uuid(1)]
    assert second["topics"][uuid(2)] is not first["topics"][uuid(2)]
    assert second["configs"]["TOPIC", "a"] is first["configs"]["TOPIC", "a"]
    assert list(first["configs"]["TOPIC", "b"]) == ["k"]
    assert list(second["configs"]["TOPIC", "b"]) == ["k", "k2"]
    assert len(first["topics"][uuid(2)]) == 0


def test_removing_what_is_shared_leaves_the_older_image_alone() -> None:
    config = value("CONFIG", resourceType=2, resourceName="t", name="k", value="1")
    topic = value("TOPIC", name="t", topicId=uuid(1))
    first, _ = replayed(topic, config, value("PARTITION", partitionId=0, topicId=uuid(1)))
    gone, _ = replayed(value("REMOVE_TOPIC", topicId=uuid(1)), base=first, start=3)
    assert gone == EMPTY
    assert list(first["topics"]) == [uuid(1)]
    assert list(first["configs"]["TOPIC", "t"]) == ["k"]
    back, _ = replayed(topic, value("PARTITION", partitionId=1, topicId=uuid(1)), base=gone, start=4)
    assert back["topics"][uuid(1)].partition_ids() == [1]
    assert first["topics"][uuid(1)].partition_ids() == [0]


def test_a_topic_that_is_dropped_and_made_again_in_one_delta() -> None:
    topic = value("TOPIC", name="t", topicId=uuid(1))
    first, _ = replayed(topic, value("PARTITION", partitionId=0, topicId=uuid(1)))
    second, found = replayed(
        value("REMOVE_TOPIC", topicId=uuid(1)), topic, value("PARTITION", partitionId=7, topicId=uuid(1)), base=first
    )
    assert not found.problems
    assert second["topics"][uuid(1)].partition_ids() == [7]
    assert first["topics"][uuid(1)].partition_ids() == [0]


def test_images_differ_by_content_alone() -> None:
    config = value("CONFIG", resourceType=2, resourceName="t", name="k", value="1")
    one, _ = replayed(config)
    same, _ = replayed(value("NO_OP"), config)
    other, _ = replayed(value("CONFIG", resourceType=2, resourceName="t", name="k", value="2"))
    assert one == same
    assert one.provenance != same.provenance
    assert one != other
    assert one != EMPTY
    assert one != "an image"
    assert "1" not in repr(one["configs"]["TOPIC", "t"]["k"])


def test_an_empty_table_is_no_table() -> None:
    delta = Delta(EMPTY)
    delta.table("acls")
    assert delta.apply(Provenance(0, 0, 0)) == EMPTY


def test_a_family_is_declared_once() -> None:
    known = families()
    assert {"features", "brokers", "controllers", "configs", "clientQuotas", "producerIds", "acls", "scram"} <= set(
        known
    )
    with pytest.raises(ValueError, match="the family acls is declared twice"):
        family(known["acls"]._replace(leaf="other"))


def test_control_records_move_no_provenance() -> None:
    replayer = Replayer()
    replayer.log_batch(parsed(control_batch([(b"\x00\x00\x00\x05", b"\x00\x00\x00\x01\x00")])), LOG)
    assert replayer.image().provenance == EMPTY.provenance
