"""stat: the record behind a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.engine.result import Report
from kshell.engine.session import Session
from tests.builders import batch, snapshot, uuid, value, write_log, write_snapshot
from tests.commands.shell import opened, rows, run, sections


def test_a_value_that_the_log_wrote(sample: Session) -> None:
    facts = sections(sample, "stat /image/topics/byName/orders/0")[""]
    record = rows(sample, f"dump --from {facts['offset']} --to {facts['offset']}")[0]
    assert facts["record"] == record["type"] == "PARTITION_CHANGE_RECORD"
    assert (facts["version"], facts["epoch"], facts["timeMs"]) == (
        record["version"],
        record["epoch"],
        record["timestampMs"],
    )
    assert facts["file"] == "00000000000000000158.log"
    assert facts["snapshot"] is None


def test_a_value_older_than_the_snapshot_has_its_record_in_the_log(sample: Session) -> None:
    facts = sections(sample, "stat /image/topics/byName/orders")[""]
    record = rows(sample, f"dump --from {facts['offset']} --to {facts['offset']}")[0]
    assert (facts["record"], record["data"]["name"]) == ("TOPIC_RECORD", "orders")
    assert facts["snapshot"] is None


def test_a_value_out_of_a_snapshot(cut_sample: Session) -> None:
    facts = sections(cut_sample, "stat /image/topics/byName/orders")[""]
    inside = rows(cut_sample, "dump --snapshot 159-1 --type TOPIC_RECORD")
    assert facts["snapshotOffset"] == next(row["offset"] for row in inside if row["data"]["name"] == "orders")
    assert facts["written"] == "at or before offset 158, in snapshot 159-1"
    assert (facts["offset"], facts["time"], facts["timeMs"], facts["epoch"]) == (None, None, None, None)
    assert facts["children"] == 10


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_oldest_snapshot_that_has_the_value(tmp_path: Path, is_damaged: bool) -> None:
    """Unless damage hides what was written since."""

    def topic(number: int) -> bytes:
        return value("TOPIC", name=f"t{number}", topicId=uuid(number))

    other, same = (
        value("CONFIG", resourceType=2, resourceName="t1", name="retention.ms", value=text) for text in ("2", "1")
    )
    between = bytearray(batch([other if is_damaged else topic(3)], 4))
    between[-2] ^= is_damaged
    last = batch([same] if is_damaged else [topic(4)], 5)
    write_snapshot(tmp_path, snapshot([topic(1), same]), 3)
    write_log(tmp_path, batch([topic(2)], 3), bytes(between), last, base_offset=3)
    write_snapshot(tmp_path, snapshot([topic(1), topic(2), same]), 6)
    facts = sections(opened(tmp_path), "stat /image/configs/TOPIC:t1/retention.ms")[""]
    wanted = "at or before offset 5, in snapshot 6-1" if is_damaged else "at or before offset 2, in snapshot 3-1"
    assert facts["written"] == wanted


def test_a_value_that_no_record_wrote(sample: Session) -> None:
    facts = sections(sample, "stat /quorum/leaderId")[""]
    assert facts["written"] == "by no single record"
    assert facts["offset"] is None


def test_several(sample: Session) -> None:
    result = run(sample, "stat /image/cluster/brokers/*")
    assert isinstance(result, Report)
    assert [section.key for section in result.sections] == [f"/image/cluster/brokers/{n}" for n in (1, 2, 3)]
