"""What a partition, a broker and a name held over time: held against the image at every offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.history.story import IN_SNAPSHOT, LogRevisions
from kshell.metadata.history import History
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.builders import node_name, recorded


def history_of(node: Path) -> History:
    known = Past(DirectorySource(str(node))).history()
    assert known is not None
    return known[0]


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_is_what_the_image_holds_at_every_offset(node: Path) -> None:
    history = history_of(node)
    whole = LogRevisions(history, history.log.end)
    topics = {one for name in whole.names() for one in whole.topic_ids(name)}
    brokers = {number for (number,) in history.keys("brokers", history.log.end)} | set(history.base["brokers"])
    assert topics
    step = max(1, (history.log.end - history.log.start) // 60)
    for offset in range(history.log.start, history.log.end, step):
        image = history.at(offset)
        for topic_id in topics:
            there = image["topics"].get(topic_id)
            for number, held in whole.partitions(topic_id).items():
                then = [one.value for one in held if one.since <= offset]
                entry = None if there is None else there.partition(number)
                assert (then[-1] if then else None) == (None if entry is None else entry.value), (offset, number)
        for broker in brokers:
            revisions = whole.values("brokers", (broker,), "UNREGISTER_BROKER_RECORD")
            known = [one.value for one in revisions if one.since <= offset]
            entry = image["brokers"].get(broker)
            assert (known[-1] if known else None) == (None if entry is None else entry.value), (offset, broker)


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_ends_where_it_is_told_to(node: Path) -> None:
    history = history_of(node)
    until = history.log.end // 2
    cut, whole = LogRevisions(history, until), LogRevisions(history, history.log.end)
    assert cut.names() <= whole.names()
    for name in cut.names():
        for topic_id in cut.topic_ids(name):
            for number, held in cut.partitions(topic_id).items():
                assert held == [one for one in whole.partitions(topic_id)[number] if one.since <= until]


def test_a_log_that_begins_later_begins_with_a_state() -> None:
    node = next(node for node in recorded() if node_name(node) == "4.2.1-rolled/controller-3000")
    chronicle = LogRevisions(history_of(node), 10**9)
    assert chronicle.starts_with_snapshot
    (topic_id,) = chronicle.topic_ids(min(chronicle.names()))
    first = chronicle.partitions(topic_id)[0][0]
    assert (first.since, first.record_type) == (IN_SNAPSHOT, None)
    assert first.offset == chronicle.start - 1
