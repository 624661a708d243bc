"""A log read in pieces is the log that ``dump`` reads whole: every record, and all damage, whatever the pieces."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory import source
from kshell.spark.files import pack, read
from kshell.spark.files.pack import Slice, partitions
from kshell.spark.files.plan import Boundaries, FilePlan, Run
from kshell.spark.files.scan import CopyOrigin
from kshell.spark.options import parse
from tests.builders import (
    FIXTURES,
    batch,
    batches,
    control_batch,
    copy_of,
    leader_change,
    node_name,
    recorded,
    snapshot,
    value,
    write_log,
    write_snapshot,
)
from tests.rights import locked
from tests.spark.damaging import damaged_copy
from tests.spark.reading import dumped, findings, needs_arrow, records, rows

pytestmark = needs_arrow
SIZES = ("200", "3000", "16777216")
NODE = FIXTURES / "4.3.1/controller-3001"


@pytest.mark.parametrize("node", recorded(), ids=node_name)
@pytest.mark.parametrize("size", SIZES)
def test_every_recorded_directory(node: Path, size: str) -> None:
    assert (records(node, sliceBytes=size), findings(node, sliceBytes=size)) == dumped(node)


@pytest.mark.parametrize("seed", range(40))
def test_every_kind_of_damage(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PAUSE", 0)
    rng = random.Random(seed)
    directory = damaged_copy(rng.choice(recorded()), tmp_path, rng)
    expected = dumped(directory)
    for size in SIZES:
        assert records(directory, sliceBytes=size) == expected[0], size
        found = findings(directory, sliceBytes=size)
        assert found >= expected[1], size
        # Of two damaged batches in a row dump, which looks for the next good one, names the first.
        assert all(reason == read.CRC for _, _, reason in found - expected[1]), size


@pytest.mark.soak
@pytest.mark.long
def test_damage_again_and_again(tmp_path: Path, soak_count: int) -> None:
    for seed in range(1000, 1000 + 100 * soak_count):
        with pytest.MonkeyPatch.context() as patch:
            test_every_kind_of_damage(seed, tmp_path, patch)


def long_log(tmp_path: Path, count: int = 60, per_batch: int = 200) -> Path:
    """One segment whose batches are much longer than their headers."""
    parts, offset = [control_batch([leader_change()])], 1
    for _ in range(count):
        parts.append(batch([value("TOPIC", name="n" * 100, topicId=bytes(16))] * per_batch, offset))
        offset += per_batch
    return write_log(tmp_path / "__cluster_metadata-0", *parts)


def test_a_large_segment_is_planned_by_its_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = long_log(tmp_path)
    taken = 0
    pread = os.pread

    def counting(descriptor: int, size: int, position: int) -> bytes:
        nonlocal taken
        raw = pread(descriptor, size, position)
        taken += len(raw)
        return raw

    def verified(*given: Any, **more: Any) -> Any:
        raise AssertionError("nothing is odd: no need to read the whole")

    monkeypatch.setattr(os, "pread", counting)
    monkeypatch.setattr(Boundaries, "_walk", verified)
    made = partitions(parse({"path": str(tmp_path), "sliceBytes": "100000", "parallelism": "1"}))
    assert taken < segment.stat().st_size * 0.8
    runs = [run for (piece,) in made for run in piece.file.runs]
    assert len(made) > 10
    assert [run.start for run in runs] == [0, *(run.end for run in runs[:-1])]
    assert [run.first for run in runs] == [0, *(run.after for run in runs[:-1])]
    assert runs[-1].end == segment.stat().st_size


def test_a_crc_failure_is_found_by_who_reads(tmp_path: Path) -> None:
    segment = long_log(tmp_path, 8)
    raw = bytearray(segment.read_bytes())
    bad = batches(bytes(raw))[4]
    raw[bad.position + 100] ^= 1
    segment.write_bytes(raw)
    (plan,) = [piece.file for (piece,) in partitions(parse({"path": str(tmp_path)}))]
    assert not plan.findings
    assert findings(tmp_path) == {(segment.name, bad.position, read.CRC)}
    assert len(records(tmp_path)) == 1 + 8 * 200 - 200
    (row,) = rows(tmp_path, view="files")
    assert (row["crcFailures"], row["isDamaged"], row["batches"], row["tornAt"]) == (1, True, 8, None)
    assert row["findings"] == [{"position": bad.position, "kind": "batch", "reason": read.CRC}]


def test_of_a_snapshot_nothing_counts_after_damage(tmp_path: Path) -> None:
    values = [value("TOPIC", name=f"t{n}", topicId=bytes(16)) for n in range(400)]
    raw = bytearray(snapshot(values, per_batch=20))
    bad = batches(bytes(raw))[6]
    raw[bad.position + 100] ^= 1
    write_snapshot(tmp_path, bytes(raw), 402)
    for size in ("500", "100000"):
        assert (records(tmp_path, sliceBytes=size), findings(tmp_path, sliceBytes=size)) == dumped(tmp_path)
    assert len(partitions(parse({"path": str(tmp_path), "sliceBytes": "500"}))) > 3


def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    segment = long_log(tmp_path, 3)
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-10])
    (row,) = rows(tmp_path, view="files")
    assert (row["isDamaged"], row["tornAt"]) == (False, batches(whole)[-1].position)
    assert row["lastOffset"] == 400 and row["goodBytes"] == row["tornAt"]
    assert [one["kind"] for one in rows(tmp_path, view="quarantine")] == ["torn"]


def test_a_missing_segment_is_a_gap(tmp_path: Path) -> None:
    directory = copy_of(FIXTURES / "4.2.1-rolled/controller-3002", tmp_path)
    sorted(directory.glob("*.log"))[3].unlink()
    gaps = [one for one in rows(directory, view="quarantine") if one["kind"] == "gap"]
    assert len(gaps) == 1 and gaps[0]["position"] is None and "was expected" in gaps[0]["reason"]
    assert records(directory) == dumped(directory)[0]


def test_offsets_that_come_twice_are_given_once_and_checked_twice(tmp_path: Path) -> None:
    write_log(tmp_path, batch([value("NO_OP")] * 9))
    twice = bytearray(batch([value("NO_OP")] * 3, 3) + batch([value("NO_OP")] * 6, 6) + batch([value("NO_OP")], 12))
    segment = write_log(tmp_path, bytes(twice), base_offset=3)
    assert records(tmp_path) == dumped(tmp_path)[0]
    assert rows(tmp_path, view="files")[1]["batches"] == 3
    twice[70] ^= 1
    segment.write_bytes(twice)
    assert (records(tmp_path), findings(tmp_path)) == dumped(tmp_path)
    assert findings(tmp_path)


def test_undecoded_records_are_rows_with_their_bytes(tmp_path: Path) -> None:
    odd = [b"\x01\x7f\x00abc", b"\x02\x02\x00", b"", value("TOPIC", name="t", topicId=bytes(16)) + b"!"]
    odd.append(b"\x01\x02\xff\xff\xff\xff\x0f")  # a version that no column of Kafka's can hold
    write_log(tmp_path, batch(odd))
    made = rows(tmp_path)
    assert [row["raw"] for row in made] == odd
    assert all(row["reason"] for row in made)
    assert made[4]["version"] is None
    kept = rows(tmp_path, view="quarantine")
    assert [row["kind"] for row in kept] == ["record"] * len(odd)
    assert [(row["raw"], row["reason"]) for row in kept] == [(row["raw"], row["reason"]) for row in made]
    assert rows(tmp_path, view="TOPIC") == []


def test_snapshots_beside_the_log() -> None:
    log = records(NODE)
    every = rows(NODE, snapshots="all")
    assert len([row for row in every if not row["isSnapshot"]]) == len(log)
    assert {row["file"] for row in every if row["isSnapshot"]} == set(map(str, NODE.glob("*/*.checkpoint")))
    assert all(row["isSnapshot"] for row in rows(NODE, snapshots="only"))
    assert rows(NODE, snapshots="none") == rows(NODE)


def test_narrowing() -> None:
    every = rows(NODE)
    middle = every[len(every) // 2]
    some = rows(NODE, since="100", until="200", sliceBytes="500")
    assert some == [row for row in every if 100 <= row["offset"] <= 200]
    assert rows(NODE, types="TOPIC,config") == [r for r in every if r["type"] in ("TOPIC_RECORD", "CONFIG_RECORD")]
    assert rows(NODE, clusters="another") == []
    assert rows(NODE, clusters=every[0]["clusterId"]) == every
    by_time = rows(NODE, until=f"{iso(middle['timestampMs'])}")
    assert by_time == [row for row in every if row["timestampMs"] <= middle["timestampMs"]]
    assert rows(NODE, columns="type,offset") == [{"type": row["type"], "offset": row["offset"]} for row in every]


def iso(timestamp: int) -> str:
    """Milliseconds as a time that an option takes."""
    import datetime

    return datetime.datetime.fromtimestamp(timestamp / 1000, datetime.UTC).isoformat()


def plan(size: int) -> Slice:
    """A slice of so many bytes."""
    return Slice(CopyOrigin(None, None), FilePlan("x", size, False, (Run(0, size, 0, 1),)))


def test_small_files_are_packed_in_order() -> None:
    small = [plan(size) for size in range(600)]
    packed = pack.pack(small, 4 << 20)
    assert 1 < len(packed) < 5
    assert [piece for pieces in packed for piece in pieces] == small
    assert len(pack.pack([plan(5 << 20)] * 3, 4 << 20)) == 3


def test_every_node_in_few_partitions() -> None:
    assert len(partitions(parse({"path": f"{FIXTURES}/*/*"}))) <= 6


@pytest.mark.parametrize("change", ["gone", "cut", "other"])
def test_a_file_that_changes_after_it_was_listed(tmp_path: Path, change: str) -> None:
    segment = long_log(tmp_path, 4)
    asked = parse({"path": str(tmp_path), "view": "quarantine"})
    made = partitions(asked)
    if change == "gone":
        segment.unlink()
    else:
        segment.write_bytes(segment.read_bytes()[:3000] if change == "cut" else batch([b"x"] * 40, 7) * 40)
    from kshell.spark.decoding.decode import View

    view = View(asked.view, asked.fields(), asked.narrowing)
    found: list[dict[str, Any]] = [row for pieces in made for one in view.batches(pieces) for row in one.to_pylist()]
    assert [row["kind"] for row in found] == ["unread"]


def test_a_directory_that_changes_while_it_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = copy_of(FIXTURES / "4.2.1-rolled/controller-3002", tmp_path)
    first = sorted(directory.glob("*.log"))[0]
    expected = len([row for row in rows(directory) if row["file"] != str(first)])
    original = Boundaries.files

    def files(self: Any) -> Any:
        first.unlink(missing_ok=True)  # after it was listed
        return original(self)

    monkeypatch.setattr(source, "PAUSE", 0)
    monkeypatch.setattr(Boundaries, "files", files)
    assert len(rows(directory)) == expected


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    segment = long_log(tmp_path, 2)
    with locked(segment):
        (row,) = rows(tmp_path, view="files")
    assert row["isDamaged"] and "permission denied" in row["findings"][0]["reason"]
