"""A snapshot in pieces: progress, and what is kept between connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.client.nodes import CONTROLLER, Nodes
from kshell.client.observe import SnapshotId
from kshell.client.settings import addresses
from kshell.errors import AuthorizationError, ConnectError, ProtocolError, ServerError
from kshell.sources.download import Downloader
from kshell.sources.files import SnapshotFile
from tests.builders import uuid, value
from tests.server import Quorum, faults, settings

VALUES = [value("TOPIC", name=f"topic-{number}", topicId=uuid(number)) for number in range(30)]


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with Quorum() as made:
        made.append(*VALUES)
        made.snapshot(VALUES)
        made.max_piece = 200
        yield made


def get(downloader: Downloader, quorum: Quorum, named: SnapshotId | None = None) -> SnapshotFile | None:
    nodes = quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings()))
    wanted = SnapshotId(*max(quorum.log.snapshots)) if named is None else named
    return downloader.get(nodes.any(), quorum.epoch, wanted, quorum.cluster_id)


def positions(quorum: Quorum) -> list[int]:
    return [asked.body["topics"][0]["partitions"][0]["position"] for asked in quorum.asked_for("FetchSnapshot")]


def test_the_file_is_named_as_kafka_names_it(quorum: Quorum) -> None:
    found = get(Downloader(), quorum)
    assert found is not None
    assert found.path == "00000000000000000031-0000000001.checkpoint"
    assert (found.end_offset, found.epoch, found.size) == (31, 1, len(quorum.log.snapshots[31, 1]))
    assert found.data is not None
    assert bytes(found.data[:]) == quorum.log.snapshots[31, 1]


def test_progress_is_told_after_each_piece(quorum: Quorum) -> None:
    seen: list[tuple[int, int, str]] = []
    downloader = Downloader()
    downloader.progress = lambda done, whole, name: seen.append((done, whole, name))
    get(downloader, quorum)
    size = len(quorum.log.snapshots[31, 1])
    assert [done for done, _, _ in seen] == [*range(200, size, 200), size]
    assert {whole for _, whole, _ in seen} == {size}


def test_what_a_connection_brought_is_kept(quorum: Quorum) -> None:
    quorum.on("FetchSnapshot", faults.hang_up, times=1, skip=2)
    downloader = Downloader()
    with pytest.raises(ConnectError):
        get(downloader, quorum)
    found = get(downloader, quorum)
    assert found is not None
    assert found.data is not None
    assert bytes(found.data[:]) == quorum.log.snapshots[31, 1]
    assert positions(quorum)[:4] == [0, 200, 400, 400]


def test_another_snapshot_begins_at_its_start(quorum: Quorum) -> None:
    quorum.on("FetchSnapshot", faults.hang_up, times=1, skip=2)
    downloader = Downloader()
    with pytest.raises(ConnectError):
        get(downloader, quorum)
    quorum.append(VALUES[0])
    quorum.snapshot(VALUES)
    found = get(downloader, quorum)
    assert found is not None
    assert found.end_offset == 32
    assert positions(quorum)[3] == 0


def test_a_snapshot_that_is_not_there_is_none(quorum: Quorum) -> None:
    quorum.writes_refusals = True
    assert get(Downloader(), quorum, SnapshotId(9, 1)) is None


def test_kafkas_way_to_refuse_may_pass_and_begins_again_the_second_time(quorum: Quorum) -> None:
    downloader = Downloader()
    quorum.on("FetchSnapshot", faults.error(-1, whole=True), times=1, skip=2)
    with pytest.raises(ConnectError, match="does not hand out the snapshot"):
        get(downloader, quorum)
    quorum.on("FetchSnapshot", faults.error(-1, whole=True), times=1)
    with pytest.raises(ConnectError):
        get(downloader, quorum)
    assert get(downloader, quorum) is not None
    assert positions(quorum)[:6] == [0, 200, 400, 400, 0, 200]


@pytest.mark.parametrize(("code", "kind"), [(31, AuthorizationError), (-1, ServerError), (6, ConnectError)])
@pytest.mark.parametrize("whole", [False, True])
def test_refusals(quorum: Quorum, code: int, kind: type[Exception], whole: bool) -> None:
    quorum.on("FetchSnapshot", faults.error(code, whole=whole))
    if whole and code in (6, -1):
        kind = {6: ServerError, -1: ConnectError}[code]
    with pytest.raises(kind):
        get(Downloader(), quorum)


def test_a_download_does_not_end_for_an_answer_of_one_byte(quorum: Quorum) -> None:
    quorum.max_piece = 1
    quorum.log.snapshots = {(31, 1): quorum.log.snapshots[31, 1][:300]}
    found = get(Downloader(), quorum)
    assert found is not None
    assert len(positions(quorum)) == 300


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("position", 7, "a piece from byte 7 on came, 200 was asked for"),
        ("snapshotId", {"endOffset": 30, "epoch": 1}, r"a piece of snapshot \(30, 1\) came, \(31, 1\) was asked for"),
        ("size", 1 << 40, "the snapshot's size is said to be"),
    ],
)
def test_a_piece_of_something_else_is_refused(quorum: Quorum, field: str, value: Any, reason: str) -> None:
    def other(body: dict[str, Any]) -> None:
        body["topics"][0]["partitions"][0][field] = value

    quorum.on("FetchSnapshot", faults.change(other), skip=1)
    with pytest.raises(ProtocolError, match=reason):
        get(Downloader(), quorum)
