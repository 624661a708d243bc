"""A snapshot in pieces: progress, and what is kept between connections."""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kshell.client.address import addresses
from kshell.client.leader import SnapshotId
from kshell.client.nodes import CONTROLLER, Nodes
from kshell.errors import AuthorizationError, ConnectError, NodeError, ProtocolError, ServerError, SourceTimeoutError
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.quorum.download import Downloader
from tests.builders import uuid, value
from tests.server import Quorum, faults, guarded, settings

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


def test_another_node_has_another_file_of_that_name() -> None:
    """Each controller writes its snapshots itself: the pieces of two files make none."""
    with Quorum(2) as quorum:
        quorum.append(*VALUES)
        quorum.snapshot(VALUES)
        quorum.max_piece = 200
        quorum.on("FetchSnapshot", faults.hang_up, times=1, skip=2)
        downloader, nodes = Downloader(), quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings()))
        first, second = (("127.0.0.1", node.port) for node in quorum.controllers)
        wanted = SnapshotId(*max(quorum.log.snapshots))
        with pytest.raises(ConnectError):
            downloader.get(nodes.at(first), quorum.epoch, wanted, quorum.cluster_id)
        quorum.elect(quorum.controllers[1].id)
        quorum.well()
        assert downloader.get(nodes.at(second), quorum.epoch, wanted, quorum.cluster_id) is not None
        assert positions(quorum)[:5] == [0, 200, 400, 0, 200]


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
        ("position", 7, "a piece from byte 7 came, but byte 200 was requested"),
        (
            "snapshotId",
            {"endOffset": 30, "epoch": 1},
            r"a piece of snapshot \(30, 1\) came, but \(31, 1\) was requested",
        ),
        ("size", 1 << 40, "the snapshot's size is reported as"),
        ("size", 777, "is reported as 777 bytes, and was reported as"),
        ("size", -1, "is reported as -1 bytes"),
        ("unalignedRecords", b"", "a piece of 0 bytes at byte 200"),
        ("unalignedRecords", b"x" * 70_000, "a piece of 70000 bytes at byte 200 does not fit"),
    ],
)
def test_a_piece_of_something_else_is_refused(quorum: Quorum, field: str, value: Any, reason: str) -> None:
    def other(body: dict[str, Any]) -> None:
        body["topics"][0]["partitions"][0][field] = value

    quorum.on("FetchSnapshot", faults.change(other), skip=1)
    with pytest.raises(ProtocolError, match=reason):
        get(Downloader(), quorum)


@pytest.mark.parametrize("size", [0, -1, -(1 << 63), 64 << 30, (1 << 63) - 1])
def test_a_size_that_no_snapshot_has_is_refused_with_the_first_piece(quorum: Quorum, size: int) -> None:
    quorum.on("FetchSnapshot", faults.change(lambda body: claim(body, size=size)))
    with pytest.raises(ProtocolError, match=f"is reported as {size} bytes") as caught:
        get(Downloader(), quorum)
    assert caught.value.api == "FetchSnapshot"
    assert caught.value.node == quorum.leader.address
    assert "*.checkpoint" in (caught.value.hint or "")
    assert len(positions(quorum)) == 1


def claim(body: dict[str, Any], **fields: Any) -> None:
    for topic in body.get("topics", ()):
        topic["partitions"][0].update(fields)


def test_a_snapshot_without_room_for_it_says_what_to_do(quorum: Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1 << 30))
    quorum.on("FetchSnapshot", faults.change(lambda body: claim(body, size=1 << 30)))
    with pytest.raises(NodeError, match=r"is reported to have 1073741824 bytes, and there is no room for it") as caught:
        get(Downloader(), quorum)
    assert "TMPDIR" in (caught.value.hint or "")


@pytest.mark.parametrize("how", ["open", "write"])
def test_a_disk_that_is_full_is_a_typed_error(quorum: Quorum, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    class Full:
        def write(self, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    def made(**_: object) -> Full:
        if how == "open":
            raise OSError(errno.ENOSPC, "No space left on device")
        return Full()

    monkeypatch.setattr("tempfile.TemporaryFile", made)
    quorum.on("FetchSnapshot", faults.change(lambda body: claim(body, size=1 << 25)))
    with pytest.raises(NodeError, match="no room for it: No space left on device"):
        get(Downloader(), quorum)


def test_a_large_snapshot_goes_through_a_file_that_has_no_name(
    quorum: Quorum, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    whole = os.urandom(40 << 20)
    quorum.log.snapshots = {(31, 1): whole}
    quorum.max_piece = 8 << 20
    quorum.on("FetchSnapshot", faults.hang_up, times=1, skip=2)
    downloader = Downloader()
    with pytest.raises(ConnectError):
        get(downloader, quorum)
    found = get(downloader, quorum)
    assert found is not None
    assert isinstance(found.data, mmap.mmap)
    assert found.data[:] == whole
    assert list(tmp_path.iterdir()) == []


def test_pieces_of_a_byte_end(quorum: Quorum) -> None:
    quorum.max_piece = 1
    quorum.log.snapshots = {(31, 1): bytes(5000)}
    with pytest.raises(ProtocolError, match="1001 pieces of the snapshot have fewer than 1024 bytes"):
        get(Downloader(), quorum)
    assert len(positions(quorum)) == 1001


def test_a_snapshot_that_trickles_ends(quorum: Quorum) -> None:
    quorum.max_piece = 20
    quorum.log.snapshots = {(31, 1): bytes(5000)}
    quorum.on("FetchSnapshot", faults.slow(0.2))
    connection = quorum.keep(Nodes(CONTROLLER, addresses(quorum.bootstrap), settings())).any()
    connection.timeout = 1.0
    begin = time.monotonic()
    with pytest.raises(SourceTimeoutError, match=r"comes too slowly: .* of 5000"):
        Downloader().get(connection, quorum.epoch, SnapshotId(31, 1), quorum.cluster_id)
    assert time.monotonic() - begin < 2


def test_a_claim_of_64_gb_costs_neither_memory_nor_disk() -> None:
    """And one that is believed costs what came, not what was said."""
    for size, kind in ((64 << 30, "ProtocolError"), (7 << 30, "ConnectError")):
        with Quorum() as quorum:
            quorum.append(*VALUES)
            quorum.snapshot(VALUES)
            quorum.on("FetchSnapshot", faults.change(partial(claim, size=size)))
            quorum.on("FetchSnapshot", faults.hang_up, skip=1)
            outcome = guarded.load("quorum", quorum.bootstrap, default_api_timeout_ms="1000")
            assert outcome.error == kind or (outcome.error == "NodeError" and "no room" in outcome.message)
            assert "FetchSnapshot" in outcome.message
            assert outcome.seconds < 2
            assert outcome.memory < guarded.MOST_MEMORY
