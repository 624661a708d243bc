"""What is to be read of a lone copy: every record once, and eras whose states are those that the shell shows."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise
from pathlib import Path

import pytest

from kshell.errors import DataError, SourceError, UsageError
from kshell.metadata.image import Image
from kshell.sources.directory import source as directories
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.points import Point
from kshell.spark import reconcile as package
from kshell.spark.files.read import CRC
from kshell.spark.files.scan import find
from kshell.spark.reconcile import Checkpoint, ReplayRange, Request, by_cluster, reconcile
from kshell.spark.schemas import CLUSTER_FIELDS, COPY_FIELDS, FILE_FIELDS, QUARANTINE_FIELDS
from kshell.spark.stream.directory_walk import ResumedBoundaries
from tests.builders import (
    FIXTURES,
    LOG,
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
from tests.spark.damaging import damaged_copy, fault
from tests.spark.reading import dumped, needs_arrow
from tests.spark.reconcile.tables import Tables, rows

pytestmark = needs_arrow
ROLLED = FIXTURES / "4.2.1-rolled/controller-3002"
NODE = FIXTURES / "4.3.1/controller-3001"


def read(path: Path, **more: int) -> Tables:
    tables = Tables()
    tables.step(path, **more)  # type: ignore[arg-type]
    return tables


def shown(path: Path, offset: int | None) -> Image | None:
    """What the shell shows as of an offset, if it does."""
    try:
        return DirectorySource(str(path)).load(until=offset).image
    except DataError:
        return None


def assert_as_the_shell(tables: Tables, path: Path, stride: int) -> int:
    """Holds states against the shell's, at eras' ends and in between; how many there were."""
    edges = {at for era in tables.ranges for at in (era.since - 1, era.since, era.to - 1, era.to)}
    compared = 0
    for offset in sorted(edges | set(tables.offsets[::stride])):
        expected = shown(path, offset) if offset >= 0 else None
        if expected is not None:
            compared += 1
            ours = tables.at(offset)
            assert (metadata(ours) if ours else {}) == metadata(expected), offset
    newest, ours = shown(path, None), tables.at(1 << 60)
    assert newest is None or (metadata(ours) if ours else {}) == metadata(newest)
    return compared


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "PAUSE", 0)


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_every_recorded_directory(node: Path) -> None:
    tables = read(node)
    printed, damage = dumped(node)
    assert tables.log == [row[:6] for row in printed] and not damage
    assert tables.findings == []
    assert assert_as_the_shell(tables, node, 61) > 3
    made = tables.last
    assert made is not None and pickle.loads(pickle.dumps(made)) == made
    assert tables.step(node)._replace(files=()) == made._replace(slices=(), ranges=(), size=0, files=())


def test_what_kafka_storage_wrote_counts_where_the_log_has_it(tmp_path: Path) -> None:
    """Of the snapshot of offset 0 the voters count, not the metadata (KIP-1170), whether there is a log yet or not."""
    twin = copy_of(FIXTURES / "4.4.0/controller-3000", tmp_path)
    bootstrap = twin / f"{0:020d}-{0:010d}.checkpoint"
    others = [file for file in twin.iterdir() if file != bootstrap]
    for file in others:
        file.rename(tmp_path / file.name)
    tables = read(twin)
    names = ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    assert [row["type"] for row in tables.rows] == names
    for file in others:
        (tmp_path / file.name).rename(file)
    tables.step(twin)
    features = [row["offset"] for row in tables.rows if row["type"] == "FEATURE_LEVEL_RECORD"]
    assert features and min(features) > 2
    assert assert_as_the_shell(tables, twin, 61) > 3


def test_rows_have_their_declared_columns() -> None:
    made = read(ROLLED).last
    assert made is not None
    assert [list(row) for row in made.copies] == [[field.name for field in COPY_FIELDS]]
    assert {tuple(row) for row in made.files} == {tuple(field.name for field in FILE_FIELDS)}
    assert list(made.cluster) == [field.name for field in CLUSTER_FIELDS]
    (row,) = made.copies
    assert (row["state"], row["nodeId"]) == ("reference", 3002)
    stated = dict(line.split("=", 1) for line in (ROLLED / "meta.properties").read_text().split() if "=" in line)
    assert row["directoryId"] == stated["directory.id"]
    assert made.cluster["endOffset"] == row["endOffset"] == made.checkpoint.offset
    last = rows(made)[-1]
    assert made.cluster["lastTimestampMs"] == last["timestampMs"] and made.cluster["lastEpoch"] == last["epoch"]


# --- what is missing from a directory --------------------------------------------------------------------------------


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_the_log_alone(node: Path, tmp_path: Path) -> None:
    twin = copy_of(node, tmp_path)
    for file in twin.glob("*.checkpoint"):
        file.unlink()
    tables = read(twin)
    assert tables.ranges == [ReplayRange(None, 0, len(dumped(node)[0]))]
    assert assert_as_the_shell(tables, twin, 97) > 3


@pytest.mark.parametrize("node", [ROLLED, NODE], ids=node_name)
def test_snapshots_alone(node: Path, tmp_path: Path) -> None:
    """One state each, as far as one can be told from the next."""
    twin = copy_of(node, tmp_path)
    for file in twin.glob("*.log"):
        file.unlink()
    files = sorted(file for file in twin.glob("*.checkpoint") if not file.name.startswith("0" * 20))
    for file in files[1:]:
        file.rename(tmp_path / file.name)
    tables = read(twin)
    for count, file in enumerate(files[1:], 2):
        (tmp_path / file.name).rename(file)
        made = tables.step(twin)
        end = int(file.name[:20])
        assert made.ranges == (ReplayRange(str(file), end, end),) and not made.restart
        assert len(tables.ranges) == count and {row["file"] for row in rows(made)} == {str(file)}
        assert tables.step(twin).slices == ()
    assert tables.ranges == read(twin).ranges
    assert assert_as_the_shell(tables, twin, 61) >= len(files)


def test_each_older_snapshot_as_the_newest(tmp_path: Path) -> None:
    twin = copy_of(ROLLED.with_name("controller-3001"), tmp_path)
    for file in sorted(twin.glob("*.checkpoint"))[::-1]:
        assert_as_the_shell(read(twin), twin, 211)
        file.unlink()
    tables = read(twin)  # no state can be told
    assert tables.ranges == [] and tables.log == [row[:6] for row in dumped(twin)[0]]
    (gap,) = tables.findings
    assert gap["kind"] == "gap" and "no whole snapshot reaches the log" in gap["reason"]
    assert tables.last is not None and tables.last.cluster["stateOffset"] is None


@pytest.mark.parametrize("seed", range(24))
def test_whatever_is_missing_or_damaged(seed: int, tmp_path: Path) -> None:
    ragged(seed, tmp_path)


@pytest.mark.soak
def test_whatever_is_missing_or_damaged_again_and_again(tmp_path: Path, soak_count: int) -> None:
    for seed in range(1000, 1000 + 100 * soak_count):
        ragged(seed, tmp_path / str(seed))


def ragged(seed: int, folder: Path) -> None:
    """Files go, bytes change; what the shell can show, the tables show."""
    rng = random.Random(seed)
    node = rng.choice(recorded())
    directory = damaged_copy(node, folder, rng) if rng.random() < 0.6 else copy_of(node, folder)
    for file in sorted(directory.glob("*.log")):
        if rng.random() < 0.15:
            file.unlink()
    for file in sorted(directory.glob("*.checkpoint")):
        if rng.random() < 0.3:
            file.unlink()
        elif rng.random() < 0.1:
            file.chmod(0o600)
            file.write_bytes(fault(bytearray(file.read_bytes()), rng))
    if not [*directory.glob("*.log"), *directory.glob("*.checkpoint")]:
        return
    tables = read(directory)
    if list(directory.glob("*.log")):
        assert tables.log == [row[:6] for row in dumped(directory)[0]]
    assert_as_the_shell(tables, directory, 83)


def test_an_empty_log(tmp_path: Path) -> None:
    write_log(tmp_path / METADATA_DIRECTORY)
    tables = read(tmp_path)
    assert (tables.ranges, tables.rows) == ([], [])
    assert tables.checkpoint is not None and tables.checkpoint.offset == 0
    first = write_snapshot(
        tmp_path / METADATA_DIRECTORY, snapshot([value("TOPIC", name="t", topicId=uuid(1))], 0), 0, 0
    )
    assert read(tmp_path).ranges == [ReplayRange(str(first), 0, 0)]
    write_log(tmp_path / METADATA_DIRECTORY, batch([value("NO_OP")] * 2))
    assert read(tmp_path).ranges == [ReplayRange(str(first), 0, 2)]


def test_a_lone_file() -> None:
    segment = sorted((ROLLED / METADATA_DIRECTORY).glob("*.log"))[-1]
    assert [era.base for era in read(segment).ranges] == [None]
    assert_as_the_shell(read(segment), segment, 83)
    file = sorted((ROLLED / METADATA_DIRECTORY).glob("*.checkpoint"))[-1]
    assert [era.base for era in read(file).ranges] == [str(file)]
    assert_as_the_shell(read(file), file, 83)


# --- damage that planning does not see -------------------------------------------------------------------------------


def logs_of(tmp_path: Path, count: int = 12, *, bad: int | None = None, start: int = 0) -> Path:
    """A log of batches of ten topics each, in one segment; the CRC of one is wrong."""
    parts = [control_batch([leader_change()], start)]
    for number in range(count):
        at = start + 1 + 10 * number
        parts.append(batch([value("TOPIC", name=f"t{at + n}", topicId=uuid(at + n)) for n in range(10)], at))
    raw = bytearray(b"".join(parts))
    if bad is not None:
        raw[batches(bytes(raw))[bad].position + 90] ^= 1
    return write_log(tmp_path / METADATA_DIRECTORY, bytes(raw), base_offset=start)


def test_a_batch_that_its_reader_finds_damaged(tmp_path: Path) -> None:
    """Only then it is known where states end; a second truth that is told of it has the same records."""
    segment = logs_of(tmp_path, bad=5)
    ((name, copies),) = by_cluster(find([str(tmp_path)])).items()
    first = reconcile(copies, Request(name, 1 << 20))
    assert first.ranges == (ReplayRange(None, 0, 121),) and first.findings == ()
    position = batches(segment.read_bytes())[5].position
    told = reconcile(copies, Request(name, 1 << 20, bad={(str(segment), position, CRC)}))
    assert told.ranges == (ReplayRange(None, 0, 41),)
    assert rows(told) == rows(first)
    assert [row["reason"] for row in told.findings] == [CRC, "offsets 41 to 50 are missing in every copy"]
    assert told.copies[0]["damage"] == [f"{segment}: byte {position}: {CRC}"]
    assert told.checkpoint.state_end == 41 and told.checkpoint.offset == 121


def test_a_snapshot_makes_damage_good(tmp_path: Path) -> None:
    logs_of(tmp_path, bad=5)
    tables = read(tmp_path)
    base = write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot([value("NO_OP")]), 61)
    made = tables.step(tmp_path)
    assert made.restart  # it is inside of what was read without a state
    assert tables.ranges == [ReplayRange(None, 0, 41), ReplayRange(str(base), 61, 121)]
    assert not tables.step(tmp_path).restart
    assert_as_the_shell(tables, tmp_path, 7)


def test_damage_without_a_missing_offset_ends_states(tmp_path: Path) -> None:
    one, two = batch([value("NO_OP")] * 5), batch([value("NO_OP")] * 5, 5)
    write_log(tmp_path / METADATA_DIRECTORY, one, b"\x07" * 100, two)
    tables = read(tmp_path)
    assert tables.ranges == [ReplayRange(None, 0, 5)] and tables.offsets == list(range(10))
    assert_as_the_shell(tables, tmp_path, 1)


# --- one step after another ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_in_portions_as_at_once(seed: int, tmp_path: Path) -> None:
    """A recorded directory grows by bytes, so that tails are torn; old segments go behind a snapshot."""
    rng = random.Random(seed)
    node = rng.choice([ROLLED, NODE, FIXTURES / "3.6.2/broker-0", FIXTURES / "4.1.1/broker-0"])
    node = node if node.exists() else ROLLED
    source, target = node / METADATA_DIRECTORY, tmp_path / METADATA_DIRECTORY
    target.mkdir()
    (tmp_path / "meta.properties").write_bytes((node / "meta.properties").read_bytes())
    logs = {file.name: file.read_bytes() for file in sorted(source.glob("*.log"))}
    total = sum(map(len, logs.values()))
    oldest = min(source.glob("*.checkpoint"))
    (target / oldest.name).write_bytes(oldest.read_bytes())
    tables, whole = Tables(), read(node)
    for done in [*sorted(rng.randrange(1, total) for _ in range(7)), total]:
        left = done
        for name, raw in logs.items():
            if left > 0:
                (target / name).write_bytes(raw[:left])
                left -= len(raw)
        behind = tables.checkpoint is not None and tables.checkpoint.offset < int(oldest.name[:20])
        made = tables.step(tmp_path, cut=rng.choice((500, 4000, 1 << 20)))
        assert behind or not made.restart
        names = sorted(file.name for file in target.glob("*.log"))
        for name, following in pairwise(names):
            if rng.random() < 0.3 and tables.checkpoint and int(following[:20]) < tables.checkpoint.offset:
                (target / name).write_bytes(b"")  # gone, but the next portion writes it again
        for file in source.glob("*.checkpoint"):
            if (
                tables.checkpoint
                and int(file.name[:20]) <= tables.checkpoint.offset
                and not (target / file.name).exists()
            ):
                (target / file.name).write_bytes(file.read_bytes())
    assert tables.log == whole.log
    assert tables.checkpoint is not None and whole.checkpoint is not None
    assert tables.checkpoint.offset == whole.checkpoint.offset


def test_segments_deleted_before_they_were_read(tmp_path: Path) -> None:
    twin = copy_of(ROLLED, tmp_path)
    held = {file.name: file.read_bytes() for file in twin.glob("*.log")}
    names = sorted(held)
    for name in names[2:]:
        (twin / name).unlink()
    for file in sorted(twin.glob("*.checkpoint"))[1:]:
        file.rename(tmp_path / file.name)
    tables = read(twin)
    assert tables.checkpoint is not None
    end = tables.checkpoint.offset
    for name in names:
        (twin / name).unlink(missing_ok=True)
    for name in names[4:]:
        (twin / name).write_bytes(held[name])
    for file in tmp_path.glob("*.checkpoint"):
        file.rename(twin / file.name)
    made = tables.step(twin)
    first = int(names[4][:20])
    assert not made.restart and tables.offsets[-1] == len(dumped(ROLLED)[0]) + int(names[0][:20]) - 1
    (gap,) = made.findings
    assert (gap["kind"], gap["offset"]) == ("gap", end) and f"offsets {end} to {first - 1} are" in gap["reason"]
    assert all(era.base is not None for era in made.ranges)
    assert made.ranges[-1].since >= first and made.ranges[-1].to == tables.checkpoint.offset
    assert assert_as_the_shell(tables, twin, 83) > 3
    assert tables.step(twin).findings == ()


def test_a_second_step_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = logs_of(tmp_path, 200)
    raw = segment.read_bytes()
    cut = batches(raw)[-3].position
    segment.write_bytes(raw[:cut])
    tables = read(tmp_path)
    segment.write_bytes(raw)
    begun: list[int] = []
    original = ResumedBoundaries.__init__

    def noted(self: ResumedBoundaries, listing: object, start: object, *more: object) -> None:
        begun.append(start.begin)  # type: ignore[attr-defined]
        original(self, listing, start, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(ResumedBoundaries, "__init__", noted)
    made = tables.step(tmp_path)
    assert begun == [batches(raw)[-4].position]
    assert made.size == len(raw) - cut
    assert tables.offsets == list(range(2001))
    (row,) = made.files
    assert (row["firstOffset"], row["lastOffset"], row["records"], row["goodBytes"]) == (0, 2000, 2001, len(raw))


def test_until(tmp_path: Path) -> None:
    logs_of(tmp_path)
    base = write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot([value("NO_OP")]), 41)
    tables = Tables()
    for until, end in ((0, 0), (30, 21), (31, 31), (20, 31), (44, 41), (1 << 40, 121)):
        made = tables.step(tmp_path, until=until)
        assert tables.offsets == list(range(end)) and not made.restart
        assert str(base) not in {piece.file.path for piece in made.slices}
    assert [era[1:] for era in tables.ranges] == [(0, 21), (21, 31), (31, 41), (41, 121)]


def test_since(tmp_path: Path) -> None:
    logs_of(tmp_path)
    inner = tmp_path / METADATA_DIRECTORY
    times = {41: 1000, 61: 2000, 64: 3000, 121: 4000}
    files = {end: write_snapshot(inner, snapshot([value("NO_OP")], timestamp=ms), end) for end, ms in times.items()}
    points = [(Point(), 0, 0), (Point(offset=40), 0, 0), (Point(offset=41), 41, 41), (Point(offset=63), 61, 61)]
    points += [(Point(offset=70), 64, 61), (Point(time_ms=2999), 61, 61), (Point(time_ms=999), 0, 0)]
    points += [(Point(offset=500), 121, 121)]
    for point, since, first in points:
        tables = Tables()
        tables.step(tmp_path, since=point)
        base = str(files[since]) if since else None
        assert tables.ranges == [ReplayRange(base, since, 121)], point
        assert tables.offsets == list(range(first, 121)), point
        assert tables.findings == []
    raw = bytearray(files[61].read_bytes())
    raw[-1] ^= 1
    files[61].write_bytes(raw)
    tables = Tables()
    tables.step(tmp_path, since=Point(offset=63))
    assert [era.since for era in tables.ranges] == [41]
    assert [row["file"] for row in tables.findings] == [str(files[61])]
    assert list(tables.findings[0]) == [field.name for field in QUARANTINE_FIELDS]


def test_a_directory_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = copy_of(ROLLED, tmp_path)
    first = sorted(twin.glob("*.log"))[0]
    ((name, copies),) = by_cluster(find([str(twin)])).items()
    first.unlink()  # after it was listed
    made = reconcile(copies, Request(name, 4000))
    assert made.slices and str(first) not in {piece.file.path for piece in made.slices}
    for file in twin.iterdir():
        file.unlink()
    with pytest.raises(SourceError):
        reconcile(copies, Request(name, 4000))


def test_the_public_names() -> None:
    values = {"BadBatches", "Checkpoint", "ReconciledLog", "ReplayRange", "Request"}
    assert set(package.__all__) == values | {"by_cluster", "cluster_of", "copy_row", "reconcile"}
    assert LOG  # the first segment of a log from offset 0


def test_a_snapshot_that_is_ahead_of_the_log(tmp_path: Path) -> None:
    """Who copies a directory may bring the snapshot first: its log is read, and not passed over."""
    segment = logs_of(tmp_path)
    raw = segment.read_bytes()
    segment.write_bytes(raw[: batches(raw)[3].position])
    topics = [value("TOPIC", name=f"t{at}", topicId=uuid(at)) for at in range(1, 71)]
    base = write_snapshot(tmp_path / METADATA_DIRECTORY, snapshot(topics), 71)
    tables = read(tmp_path)
    assert tables.ranges == [ReplayRange(None, 0, 21), ReplayRange(str(base), 71, 71)]
    segment.write_bytes(raw[: batches(raw)[5].position])
    assert not tables.step(tmp_path, until=21).restart
    assert tables.step(tmp_path).ranges == (ReplayRange(None, 0, 41), ReplayRange(str(base), 71, 71))
    assert not tables.step(tmp_path).restart
    segment.write_bytes(raw)
    assert tables.step(tmp_path).ranges == (ReplayRange(None, 0, 121),)
    assert tables.offsets == list(range(121)) and tables.findings == [] and tables.restarts == 2
    assert_as_the_shell(tables, tmp_path, 9)


def test_a_checkpoint_of_another_release_is_refused() -> None:
    values = Checkpoint(5)._asdict()
    assert Checkpoint.from_json(values) == Checkpoint(5)
    with pytest.raises(UsageError, match="another release of kshell"):
        Checkpoint.from_json(values | {"known": []})
