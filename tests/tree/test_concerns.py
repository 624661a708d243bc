"""What a place is not concerned with is passed over, and nothing else."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kshell.history.records import ONE_FAMILY, PathRecordFilter
from kshell.metadata.image import EMPTY
from kshell.metadata.records import decode_record, record_types
from kshell.metadata.tracking import Tracker
from kshell.metadata.values import BatchPosition, Origin
from kshell.protocol.batches import RawRecord, iter_records
from kshell.sources.directory.records import BatchWalk
from kshell.sources.directory.source import DirectorySource
from kshell.tree.paths import Segments, is_under, paths
from tests.bench import logs
from tests.builders import node_name, recorded, uuid, value

RECORDS = 400
PLACES: list[Segments] = [
    (), ("image",), ("quorum",), ("image", "topics"), ("image", "topics", "byName"), ("image", "configs"),
    ("image", "cluster"), ("image", "cluster", "brokers", "1"), ("image", "acls"), ("image", "scram"),
    ("image", "clientQuotas"), ("image", "producerIds"), ("image", "delegationToken"), ("image", "features"),
]  # fmt: skip


def raws(path: Path) -> list[tuple[RawRecord, bool]]:
    walk = BatchWalk(DirectorySource(str(path)))
    return [(raw, found.batch.is_control) for found in walk for raw in iter_records(found.batch)]


def touched(tracker: Tracker, raw: RawRecord, control: bool) -> list[Segments]:
    decoded = decode_record(raw, control=control)
    found = tracker.touched(
        decoded, Origin(raw.offset, 0, decoded.name, decoded.version, BatchPosition("", 0, 0, False))
    )
    return [path for touch in found for path in paths(touch)]


def compare(records: list[tuple[RawRecord, bool]]) -> None:
    """Every record that touches a place is looked at, and touches the same when the others are left out."""
    whole = Tracker(EMPTY)
    truth = [touched(whole, *one) for one in records]
    topics = {path[:4] for path in itertools.chain(*truth) if path[:2] == ("image", "topics") and len(path) > 3}
    for place in [*PLACES, *sorted(topics)[:6], *sorted(topics)[-6:]]:
        concern = PathRecordFilter(place)
        concern.tracker = Tracker(EMPTY)
        for one, all_paths in zip(records, truth, strict=True):
            found = touched(concern.tracker, *one) if concern(*one) else []
            near = [path for path in all_paths if is_under(path, place)]
            assert [path for path in found if is_under(path, place)] == near, (place, one[0].offset)


@pytest.mark.parametrize("kind", logs.KINDS)
def test_nothing_is_missed(kind: str, tmp_path: Path) -> None:
    compare(raws(logs.made(kind, RECORDS, tmp_path)))


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_nothing_is_missed_in_real_logs(node: Path) -> None:
    compare(raws(node)[:RECORDS])


def test_the_types_are_what_they_are_called() -> None:
    """The numbers are Kafka's; that each touches one family is what the tests above hold."""
    names = {record_types()[key].name for key in ONE_FAMILY}
    assert {"PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "NO_OP_RECORD"} < names
    assert not names & {"TOPIC_RECORD", "REMOVE_TOPIC_RECORD", "CLEAR_ELR_RECORD"}


def test_other_topics_are_passed_over() -> None:
    concern = PathRecordFilter(("image", "topics", "byName", "a"))
    concern.tracker = Tracker(EMPTY)
    for number, name in ((1, "a"), (2, "b")):
        raw = RawRecord(number, 0, None, value("TOPIC", name=name, topicId=uuid(number)))
        assert concern(raw, False)
        touched(concern.tracker, raw, False)
    change = [RawRecord(3, 0, None, value("PARTITION_CHANGE", partitionId=0, topicId=uuid(one))) for one in (1, 2)]
    assert [concern(one, False) for one in change] == [True, False]
    assert [PathRecordFilter(("image", "topics", "byId", str(uuid(2))))(one, False) for one in change] == [False, True]
    assert not PathRecordFilter(("image", "acls"))(change[0], False)
    assert PathRecordFilter(("image",))(change[1], False)


def test_what_is_not_known_is_looked_at() -> None:
    concern = PathRecordFilter(("image", "acls"))
    assert all(concern(RawRecord(1, 0, None, raw), False) for raw in (None, b"", b"\x02\x05\x00", b"\x01\x63\x00"))
    assert concern(RawRecord(1, 0, b"", value("NO_OP")), control=True)
