"""Files that are larger than Kafka's, or say so: read in pieces, or refused with the reason, before the deadline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kshell.errors import CorruptDataError
from kshell.protocol.batches import MAX_BATCH
from kshell.protocol.verify import Chain, LeaderEpochs, Torn, find_batch
from kshell.sources.directory.ranges import FileWindows
from tests.builders import LOG, batch, control_batch, leader_change, snapshot, uuid, value, write_log
from tests.hostile.measured import MEMORY, ROOT, check, measured

GIB = 1 << 30
CHECKPOINT = "00000000000000000002-0000000001.checkpoint"
ORDERS = value("TOPIC", name="orders", topicId=uuid(1))
GOOD = control_batch([leader_change()]) + batch([ORDERS], 1)
EVERY = ("info", "ls /", "dump", "status", "health", "quorum", "controllers", "find /image")
DEADLINE = 20
"""Seconds, for all of these commands in one process."""


def sparse(path: Path, raw: bytes = b"", size: int = 10 * GIB) -> Path:
    """A file that begins with some bytes, and goes on with zeros that take no place on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(raw)
        file.truncate(size)
    return path


def claiming(raw: bytes, size: int) -> bytes:
    """A batch that says that it has so many bytes."""
    return raw[:8] + (size - 12).to_bytes(4, "big") + raw[12:]


def huge_claim() -> bytes:
    return GOOD + claiming(batch([ORDERS], 2), 2_000_000_000)


LOGS: dict[str, tuple[bytes, str]] = {
    "nothing but zeros": (b"", "zero bytes"),
    "batches, then zeros": (GOOD, "zero bytes"),
    "a batch that claims two gigabytes": (huge_claim(), f"claims 2000000000 bytes, the maximum is {MAX_BATCH}"),
    "damage, then zeros": (GOOD + b"\x01" * 100, "magic 1"),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("lone", [False, True])
def test_a_sparse_log_of_ten_gigabytes_costs_what_is_in_it(tmp_path: Path, name: str, lone: bool) -> None:
    raw, reason = LOGS[name]
    path = sparse(tmp_path / LOG, raw)
    commands = [word for command in EVERY for word in ("-c", command)]
    took = measured("-d", str(path if lone else tmp_path), "--keep-going", "--timeout", str(DEADLINE), *commands)
    check(took, 3 if not raw else 0, 4)  # zeros are no record: nobody can tell
    assert took.seconds < DEADLINE
    assert reason in took.text
    assert "gave up" not in took.text


@pytest.mark.parametrize(
    "raw",
    [b"", snapshot([ORDERS]), snapshot([ORDERS])[:-70], huge_claim()],
    ids=["zeros", "a whole one", "a cut one", "a claim"],
)
@pytest.mark.parametrize("lone", [False, True])
def test_a_sparse_snapshot_of_ten_gigabytes_costs_what_is_in_it(tmp_path: Path, raw: bytes, lone: bool) -> None:
    path = sparse(tmp_path / CHECKPOINT, raw)
    commands = [word for command in EVERY for word in ("-c", command)]
    took = measured("-d", str(path if lone else tmp_path), "--keep-going", "--timeout", str(DEADLINE), *commands)
    check(took, 4)
    assert took.seconds < DEADLINE
    assert "gave up" not in took.text
    assert str(path) in took.text


def test_zeros_between_two_segments_are_damage_that_is_stepped_over(tmp_path: Path) -> None:
    sparse(tmp_path / LOG, GOOD)
    write_log(tmp_path, batch([value("TOPIC", name="later", topicId=uuid(2))], 2), base_offset=2)
    took = measured("-d", str(tmp_path), "--timeout", str(DEADLINE), "dump")
    check(took, 4)
    assert "later" in took.text
    assert f"byte {len(GOOD)}: the file ends in {10 * GIB - len(GOOD)} zero bytes" in took.text


def test_copies_of_sparse_logs_are_compared(tmp_path: Path) -> None:
    for node in ("one", "two"):
        sparse(tmp_path / node / LOG, GOOD)
        sparse(tmp_path / node / CHECKPOINT, snapshot([ORDERS]))
    took = measured("--timeout", str(DEADLINE), "compare-logs", str(tmp_path / "one"), str(tmp_path / "two"))
    check(took, 0, 1, 4)
    assert took.seconds < DEADLINE


def test_the_deadline_holds_where_a_gigabyte_of_noise_is_searched(tmp_path: Path) -> None:
    """The noise is written: nothing of it can be left out."""
    noise = bytes(range(256)) * (1 << 12)
    with (tmp_path / LOG).open("wb") as file:
        file.write(GOOD)
        for _ in range(300):
            file.write(noise)
    took = measured("-d", str(tmp_path), "--timeout", "2", "info")
    check(took, 3, 4)
    assert took.seconds < 12  # two, and the start of a process on a machine that does much else


def test_a_large_log_is_read_in_little_memory(tmp_path: Path) -> None:
    """Three hundred megabytes: the walk has some of them in memory at a time."""
    large = value("CONFIG", resourceType=2, resourceName="orders", name="x", value="y" * 1_000_000)
    with (tmp_path / LOG).open("wb") as file:
        for offset in range(300):
            file.write(batch([large], offset))
    took = measured("-d", str(tmp_path), "dump", "--from", "299", "-o", "jsonl")
    check(took, 0)
    assert took.text.count('"CONFIG_RECORD"') == 1
    assert took.memory < 160


def test_a_pipelines_plan_of_sparse_files_costs_what_is_in_them(tmp_path: Path) -> None:
    """What the pipeline makes of headers, without Spark."""
    sparse(tmp_path / LOG, GOOD)
    sparse(tmp_path / CHECKPOINT, huge_claim())
    program = f"""
from kshell.spark.files.pack import plans
from kshell.spark.files.scan import find
from kshell.spark.files.read import file_row
from tests.server.guarded import peak_memory
for plan in plans(find([{str(tmp_path)!r}])[0], "all", 1 << 20):
    print(file_row(plan)["records"])
peak = peak_memory()
assert peak < 256 << 20, peak
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "2"]  # the snapshot does not even begin with its header


# --- windows ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[0, 1 << 20])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that hold hardly a batch, all of which is near their end, or nothing."""
    monkeypatch.setattr("kshell.sources.directory.ranges._READ", 64)
    monkeypatch.setattr("kshell.sources.directory.ranges._MAPPED", 64)
    monkeypatch.setattr("kshell.protocol.verify._PIECE", 64)
    monkeypatch.setattr("kshell.protocol.verify._NEAR", request.param)


def epochs(*starts: tuple[int, int]) -> bytes:
    """Batches of (epoch, offset), each epoch opened by its LeaderChange."""
    last, out = 0, b""
    for epoch, offset in starts:
        out += control_batch([leader_change()], offset, epoch) if epoch != last else batch([ORDERS], offset, epoch)
        last = epoch
    return out


WALKS: dict[str, Callable[[], bytes]] = {
    "whole": lambda: epochs((1, 0), (1, 1), (2, 2), (2, 3)),
    "an epoch that only the next batch contradicts": lambda: (
        epochs((1, 0), (1, 1)) + batch([ORDERS], 2, 7) + epochs((1, 3), (1, 4))
    ),
    "a record before its LeaderChange": lambda: epochs((1, 0)) + batch([ORDERS], 1, 2) + epochs((2, 2)),
    "torn": lambda: epochs((1, 0), (1, 1))[:-9],
    "zeros": lambda: epochs((1, 0), (1, 1)) + bytes(1000),
    "a length that is too long": lambda: GOOD + claiming(batch([ORDERS], 2), 5000) + batch([ORDERS], 3),
}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", WALKS)
def test_a_walk_through_windows_finds_what_one_through_memory_finds(tmp_path: Path, name: str, mapped: bool) -> None:
    raw = WALKS[name]()
    path = tmp_path / LOG
    path.write_bytes(raw)

    def walk(data: bytes | FileWindows) -> tuple[list[tuple[int, int, bytes]], Torn | None, str | None]:
        chain, found, message = Chain(LeaderEpochs(), 0), [], None
        try:
            for one in chain.walk(data, "f"):
                found.append((one.position, one.end, one.raw()))
        except CorruptDataError as error:
            message = error.message
        return found, chain.torn, message

    with FileWindows(str(path), mapped=mapped) as windows:
        assert walk(windows) == walk(raw)
        for start in range(0, len(raw), 7):
            mine, theirs = find_batch(windows, start), find_batch(raw, start)
            assert (mine and (mine.position, mine.raw())) == (theirs and (theirs.position, theirs.raw()))


def test_a_batch_behind_a_hole_is_found_wherever_the_hole_ends(tmp_path: Path) -> None:
    """The first bytes of its header, which are zeros, may be part of the hole."""
    raw = batch([ORDERS], 5)
    for start in (1 << 20, (1 << 20) - 3, (1 << 20) + 5):
        path = tmp_path / f"{start}"
        with path.open("wb") as file:
            file.seek(start)
            file.write(raw)
        with FileWindows(str(path)) as windows:
            found = find_batch(windows, 0)
            assert found is not None
            assert (found.position, found.raw()) == (start, raw)


def test_a_file_that_is_cut_while_it_is_read_ends_where_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(GOOD + batch([ORDERS], 2))
    with FileWindows(str(path)) as windows:
        path.write_bytes(GOOD)
        chain = Chain(LeaderEpochs(), 0)
        assert len(list(chain.walk(windows, "f"))) == 2
        assert chain.torn is None


def test_a_log_of_a_quarter_gigabyte_is_let_go_of_while_it_is_read(tmp_path: Path) -> None:
    """One-shots run without the collector of cycles: a cycle that holds the log's bytes would keep all of them."""
    made = [value("PARTITION", partitionId=number, topicId=uuid(1), replicas=[1, 2]) for number in range(100)]
    isr = [1, 2] * 100  # large records, because each one takes time
    changes = [value("PARTITION_CHANGE", partitionId=at % 100, topicId=uuid(1), isr=isr) for at in range(20_000)]
    one = batch(changes)
    log = write_log(tmp_path, batch([ORDERS, *made]))
    with log.open("ab") as file:
        for at in range(16):
            file.write((101 + at * len(changes)).to_bytes(8, "big") + one[8:])  # the CRC does not cover the offset
    assert log.stat().st_size > 250 << 20
    took = measured("-d", str(tmp_path), "status")
    check(took, 0, 1)
    assert "100 partitions" in took.text
    assert took.memory < MEMORY - 64
